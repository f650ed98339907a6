/* SPDX-License-Identifier: Apache-2.0 */
/* Accesses that are more than reading and writing: commuting ones, and scratch. */
#include "core/testing_engine.h"
#include "core/testing_script.h"

static const struct script scripts[] = {
    {"the one that is ready first goes first; who reads waits for all of them, and they for it",
     "cpus=1",
     "data a b; acquire b:rw; cpu a:c b:r; 2 cpu a:c; cpu a:r; cpu a:c; go 2; release b; go 3;"
     "order 2 3 1 4 5"},
    {"commuting tasks run one at a time and take all data at once, or hold none", "cpus=3",
     "data a b c; cpu a:c b:c; cpu b:c c:c; cpu c:c; cpu c:c a:c; cpu0 run 1; cpu1 run 3;"
     "cpu2 idle; done 3; cpu1 idle; done 1; go 2"},
    {"the critical path, which does not know their order, does not count one after another",
     "cpus=2", "data a; 4 cpu a:c; cpu a:rw; critical_us 2000; go 5"},
    {"a device is lost with one that holds: the next one waits for it to run again",
     "cpus=1 gpus=1",
     "data a; 2 any a:c; gpu0 copy a host>gpu0; done a; gpu0 run 1; lose gpu0; lost 1; go 2"},
    {"a run with some is cancelled", "cpus=1",
     "data a; 5 cpu a:c a:s; cpu0 run 1; cancel; done 1; go 0; handles 1; end ECANCELED"},
};

/* ------------------------------------------------------------------------------------------- */
/* Scratch                                                                                      */

/* Each has its own, however many run at once, and nothing of it is copied or left. */
static void test_scratch(void)
{
    struct duet_buffer buffers[2];
    struct testing *t = lost_start(&(struct testing_machine){.cpus = 2, .gpus = 1}, "eager");
    t->core->computes = true;
    struct duet_handle *like;
    g_assert_cmpint(duet_register_temporary(t->core, 3, 5, 8, &like), ==, DUET_OK);
    submit_to(t, t->cpu, NULL, like, DUET_SCRATCH, like, DUET_SCRATCH);
    submit_to(t, t->cpu, NULL, like, DUET_SCRATCH, NULL, 0);
    submit_to(t, t->gpu, NULL, like, DUET_SCRATCH, NULL, 0);
    struct duet__engine_command runs[3];
    void *places[3];
    for (unsigned w = 0; w < 3; w++) {
        runs[w] = expect_run(t, w);
        char slab = 0;
        g_assert_true(duet__task_buffers(runs[w].task, w == 2, &slab, buffers));
        g_assert_cmpuint(buffers[0].rows, ==, 3);
        g_assert_cmpuint(buffers[0].cols, ==, 5);
        places[w] = buffers[0].data;
        g_assert_true(w > 0 || (buffers[1].data && buffers[1].data != places[0]));
    }
    g_assert_true(places[0] && places[1] && places[0] != places[1]);
    for (unsigned w = 0; w < 3; w++)
        testing_done(t, &runs[w], 1e-6, 0);
    g_assert_true(t->core->handles == like && !like->next);
    g_assert_cmpuint(like->version, ==, 0);
    g_assert_cmpuint(t->core->nodes[1].slab.used_bytes, ==, 0);
    lost_end(t, DUET_OK, NULL);
}

/* A task that is refused has none. */
static void test_refused(void)
{
    struct testing *t = lost_start(&(struct testing_machine){.cpus = 1}, "eager");
    struct duet_handle *a = testing_handle(t, 8);
    const struct duet_access accesses[] = {{a, DUET_SCRATCH}, {a, (enum duet_mode)5}};
    struct duet_task_desc desc = {.codelet = t->cpu, .accesses = accesses, .access_count = 2};
    g_assert_cmpint(duet_submit(t->core, &desc), ==, DUET_EINVAL);
    desc.access_count = 1;
    t->refusal = DUET_ENOMODEL;
    g_assert_cmpint(duet_submit(t->core, &desc), ==, DUET_ENOMODEL);
    g_assert_true(t->core->handles == a && !a->next);
    g_assert_cmpint(duet_acquire(t->core, a, DUET_COMMUTE), ==, DUET_EINVAL);
    lost_end(t, DUET_OK, NULL);
}

/* ------------------------------------------------------------------------------------------- */
/* Commuting by threads */

enum { CELLS = 6, TASKS = 3000 };

struct cell {
    uint64_t value; /* added to without any care */
    int busy;
};

static int add_one(const struct duet_call *call)
{
    for (size_t i = 0; i < call->buffer_count; i++) {
        struct cell *cell = call->buffers[i].data;
        TESTING_MUST(cell->busy++ == 0);
    }
    if (duet_random_below(&(uint64_t){(uintptr_t)call->buffers}, 3) == 0)
        (void)sched_yield();
    for (size_t i = 0; i < call->buffer_count; i++) {
        struct cell *cell = call->buffers[i].data;
        cell->value++;
        cell->busy--;
    }
    return DUET_OK;
}

/* Sets of cells, in any order, by several workers, some of which are devices. */
static void run_threads(unsigned cpus, unsigned gpus, bool alone, uint64_t seed)
{
    struct cell cells[CELLS] = {{0}};
    uint64_t expected[CELLS] = {0}, rng = duet_random_stream(seed, 17);
    struct duet_handle *handles[CELLS];
    const struct engine_setting setting = {.machine = {.cpus = cpus, .gpus = gpus},
                                           .policy = "ws",
                                           .model = "history",
                                           .computes = true,
                                           .alone = alone,
                                           .seed = seed};
    struct engine *engine = engine_new(&setting);
    struct duet_runtime *duet = engine->core;
    engine_start(engine);
    const struct duet_implementation where[] = {{"cpu", add_one}, {"cuda", add_one}};
    const struct duet_codelet_desc codelet = {.name = "add_one",
                                              .implementations = where,
                                              .implementation_count = 2};
    struct duet_codelet *add;
    g_assert_cmpint(duet_register_codelet(duet, &codelet, &add), ==, DUET_OK);
    for (unsigned i = 0; i < CELLS; i++)
        g_assert_cmpint(duet_register_vector(duet, &cells[i], 1, sizeof cells[i], &handles[i]), ==,
                        DUET_OK);
    for (unsigned n = 0; n < TASKS; n++) {
        struct duet_access accesses[CELLS];
        size_t count = 0;
        for (unsigned i = 0; i < CELLS; i++)
            if (duet_random_below(&rng, 3) == 0) {
                accesses[count++] =
                    (struct duet_access){handles[i],
                                         duet_random_below(&rng, 50) ? DUET_COMMUTE : DUET_RW};
                expected[i]++;
            }
        const struct duet_task_desc task = {.codelet = add,
                                            .accesses = accesses,
                                            .access_count = count};
        g_assert_cmpint(duet_submit(duet, &task), ==, DUET_OK);
    }
    for (unsigned i = 0; i < CELLS; i++) {
        g_assert_cmpint(duet_unregister(duet, handles[i]), ==, DUET_OK);
        g_assert_cmpuint(cells[i].value, ==, expected[i]);
    }
    duet__core_free(duet);
}

static void test_threads(void)
{
    for (uint64_t seed = 0; seed < 3; seed++) {
        run_threads(4, 0, false, seed);
        run_threads(2, 2, false, seed);
        run_threads(2, 2, true, seed);
    }
}

SCRIPTS_MAIN(test_scripts, test_scratch, test_refused, test_threads)
