/* SPDX-License-Identifier: Apache-2.0 */
/* Accesses that are more than reading and writing: commuting ones, and scratch. */
#include "core/testing_engine.h"
#include "core/testing_lost.h"

/* Numbers of the tasks that a worker ran, in order. */
static unsigned order_of(struct testing *t, uint64_t *ids)
{
    struct duet_event *events;
    size_t count;
    unsigned found = 0;
    g_assert_cmpint(duet_trace_events(t->core, &events, &count), ==, DUET_OK);
    for (size_t i = 0; i < count; i++)
        if (events[i].kind == DUET_EVENT_TASK && !events[i].failed)
            ids[found++] = events[i].id;
    free(events);
    return found;
}

/* The one that is ready first goes first; who reads waits for all of them, and they for it. */
static void test_any_order(void)
{
    uint64_t ids[8];
    struct testing *t = lost_start(&(struct testing_machine){.cpus = 1}, "eager");
    struct duet_handle *sum = testing_handle(t, 8), *late = testing_handle(t, 8);
    g_assert_cmpint(duet_acquire(t->core, late, DUET_RW), ==, DUET_OK);
    submit_to(t, t->cpu, NULL, sum, DUET_COMMUTE, late, DUET_R);
    submit_to(t, t->cpu, NULL, sum, DUET_COMMUTE, NULL, 0);
    submit_to(t, t->cpu, NULL, sum, DUET_COMMUTE, NULL, 0);
    submit_to(t, t->cpu, NULL, sum, DUET_R, NULL, 0);
    submit_to(t, t->cpu, NULL, sum, DUET_COMMUTE, NULL, 0);
    g_assert_cmpuint(go(t, NULL), ==, 2);
    g_assert_cmpint(duet_release(t->core, late), ==, DUET_OK);
    g_assert_cmpuint(go(t, NULL), ==, 3);
    g_assert_cmpuint(order_of(t, ids), ==, 5);
    static const uint64_t expected[] = {2, 3, 1, 4, 5};
    g_assert_cmpmem(ids, sizeof expected, expected, sizeof expected);
    lost_end(t, DUET_OK, NULL);
}

/*
 * Commuting tasks run one at a time and take all handles at once: a task waiting for one of them
 * holds none of the others.
 */
static void test_all_at_once(void)
{
    struct testing *t = lost_start(&(struct testing_machine){.cpus = 3}, "eager");
    struct duet_handle *a = testing_handle(t, 8), *b = testing_handle(t, 8),
                       *c = testing_handle(t, 8);
    submit_to(t, t->cpu, NULL, a, DUET_COMMUTE, b, DUET_COMMUTE);
    submit_to(t, t->cpu, NULL, b, DUET_COMMUTE, c, DUET_COMMUTE);
    submit_to(t, t->cpu, NULL, c, DUET_COMMUTE, NULL, 0);
    submit_to(t, t->cpu, NULL, c, DUET_COMMUTE, a, DUET_COMMUTE);
    struct duet__engine_command first = expect_run(t, 0), third = expect_run(t, 1);
    g_assert_cmpuint(duet_task_id(first.task), ==, 1);
    g_assert_cmpuint(duet_task_id(third.task), ==, 3);
    expect_idle(t, 2);
    testing_done(t, &third, 1e-6, 0);
    expect_idle(t, 1); /* one needs b, the other a */
    testing_done(t, &first, 1e-6, 0);
    g_assert_cmpuint(go(t, NULL), ==, 2);
    lost_end(t, DUET_OK, NULL);
}

/* The critical path does not count them one after another, since it does not know the order. */
static void test_path(void)
{
    struct duet_stats stats;
    struct testing *t = lost_start(&(struct testing_machine){.cpus = 2}, "eager");
    struct duet_handle *a = testing_handle(t, 8);
    for (unsigned i = 0; i < 4; i++)
        submit_to(t, t->cpu, NULL, a, DUET_COMMUTE, NULL, 0);
    submit_to(t, t->cpu, NULL, a, DUET_RW, NULL, 0);
    duet_stats(t->core, &stats);
    g_assert_cmpfloat_with_epsilon(stats.critical_path_s, 2e-3, 1e-9);
    (void)go(t, NULL);
    lost_end(t, DUET_OK, NULL);
}

/* A device is lost with a task that holds; the next one waits for it to run again. */
static void test_lost(void)
{
    struct testing *t = lost_start(&(struct testing_machine){.cpus = 1, .gpus = 1}, "eager");
    struct duet_handle *a = testing_handle(t, 8);
    submit_to(t, t->any, NULL, a, DUET_COMMUTE, NULL, 0);
    submit_to(t, t->any, NULL, a, DUET_COMMUTE, NULL, 0);
    struct duet__engine_command command = testing_next(t, 1);
    g_assert_cmpint(command.kind, ==, DUET_COPY);
    testing_done(t, &command, 1e-6, 0);
    command = expect_run(t, 1);
    g_assert_cmpint(duet__worker_lost(t->core, 1, t->now, &t->ops), ==, DUET_OK);
    done_lost(t, &command);
    g_assert_cmpuint(go(t, NULL), ==, 2);
    lost_end(t, DUET_OK, NULL);
}

static void test_cancelled(void)
{
    struct testing *t = lost_start(&(struct testing_machine){.cpus = 1}, "eager");
    struct duet_handle *a = testing_handle(t, 8);
    for (unsigned i = 0; i < 5; i++)
        submit_to(t, t->cpu, NULL, a, DUET_COMMUTE, a, DUET_SCRATCH);
    struct duet__engine_command run = expect_run(t, 0);
    duet_cancel(t->core);
    testing_done(t, &run, 1e-6, 0);
    g_assert_cmpuint(go(t, NULL), ==, 0);
    g_assert_true(t->core->handles == a && !a->next);
    lost_end(t, DUET_ECANCELED, "");
}

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

TEST_MAIN(test_any_order, test_all_at_once, test_path, test_lost, test_cancelled, test_scratch,
          test_refused, test_threads)
