/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of the dependencies: each pair of modes, long and wide tasks, and random programs against
 * the definition. */
#include "core/testing_script.h"

enum { PROGRAMS = 60, TASKS = 120, HANDLES = 7, ACCESSES = 5, WORKERS = 4 };

struct program {
    unsigned count[TASKS], handle[TASKS][ACCESSES];
    uint8_t mode[TASKS][ACCESSES];
    bool submitted[TASKS], running[TASKS], done[TASKS];
};

static bool conflict(const struct program *p, unsigned a, unsigned b)
{
    for (unsigned i = 0; i < p->count[a]; i++)
        for (unsigned j = 0; j < p->count[b]; j++)
            if (p->handle[a][i] == p->handle[b][j] && ((p->mode[a][i] | p->mode[b][j]) & DUET_W))
                return true;
    return false;
}

/* The definition: every earlier task it conflicts with is done. */
static bool runnable(const struct program *p, unsigned task)
{
    if (!p->submitted[task] || p->done[task])
        return false;
    for (unsigned i = 0; i < task; i++)
        if (!p->done[i] && conflict(p, i, task))
            return false;
    return true;
}

static void check_ready(const struct program *p, struct testing *t)
{
    struct duet_view view = testing_view(t, DUET_SUBMITTER);
    size_t ready = duet_list_length(duet_view_shared(&view)), expected = 0;
    for (unsigned i = 0; i < TASKS; i++) {
        expected += runnable(p, i);
        ready += p->running[i] && !p->done[i];
    }
    g_assert_cmpuint(ready, ==, expected);
}

static void submit(struct program *p, struct testing *t, struct duet_handle *const *handles,
                   uint64_t *rng, unsigned task)
{
    struct duet_access accesses[ACCESSES];
    double flops = 1;
    p->count[task] = duet_random_below(rng, ACCESSES + 1);
    for (unsigned i = 0; i < p->count[task]; i++) {
        p->handle[task][i] = duet_random_below(rng, HANDLES);
        p->mode[task][i] =
            duet_random_below(rng, 2) ? DUET_R : (uint8_t)(DUET_W + duet_random_below(rng, 2));
        accesses[i] =
            (struct duet_access){handles[p->handle[task][i]], (enum duet_mode)p->mode[task][i]};
    }
    struct duet_task_desc desc = {.codelet = t->any,
                                  .accesses = accesses,
                                  .access_count = p->count[task],
                                  .args = &flops,
                                  .args_bytes = sizeof flops};
    g_assert_cmpint(duet_submit(t->core, &desc), ==, DUET_OK);
    p->submitted[task] = true;
}

static void random_program(uint64_t seed)
{
    struct program p = {.count = {0}};
    struct duet_handle *handles[HANDLES];
    struct duet__engine_command commands[WORKERS] = {{.kind = DUET_IDLE}};
    unsigned submitted = 0, done = 0;
    uint64_t rng = seed;
    OWNED(testing_end)
    struct testing *t = testing_init(&(struct testing_machine){.cpus = WORKERS}, "eager", seed);
    for (unsigned h = 0; h < HANDLES; h++)
        handles[h] = testing_handle(t, 8);
    while (done < TASKS) {
        unsigned w = duet_random_below(&rng, WORKERS);
        if (submitted < TASKS && duet_random_below(&rng, 2)) {
            submit(&p, t, handles, &rng, submitted++);
        } else if (commands[w].kind == DUET_RUN) {
            p.done[duet_task_id(commands[w].task) - 1] = true;
            testing_done(t, &commands[w], 1e-6, 0);
            commands[w].kind = DUET_IDLE;
            done++;
        } else {
            commands[w] = testing_next(t, w);
            if (commands[w].kind == DUET_RUN) {
                unsigned task = (unsigned)duet_task_id(commands[w].task) - 1;
                g_assert_true(runnable(&p, task) && !p.running[task]);
                p.running[task] = true;
            }
        }
        check_ready(&p, t);
    }
    g_assert_cmpint(duet_wait(t->core), ==, DUET_OK);
    g_assert_cmpuint(duet_tasks_done(t->core), ==, TASKS);
}

static void test_random(void)
{
    for (uint64_t seed = 0; seed < PROGRAMS; seed++)
        random_program(seed);
}

static const struct script scripts[] = {
    {"two readers run at once", "cpus=2",
     "data a; 2 any a:r; cpu0 run 1; cpu1 run 2; done 1; done 2"},
    {"two run one after the other if one writes", "cpus=2",
     "data a; any a:{r|r|w|w|w|rw|rw|rw}; any a:{w|rw|r|w|rw|r|w|rw}; cpu0 run 1; cpu1 idle;"
     "done 1; cpu1 run 2; done 2"},
    {"readers after a writer start together; the next writer waits for all; none overtakes",
     "cpus=5",
     "data a; any a:rw; 2 any a:r; any a:w; any a:r; cpu0 run 1; cpu1 idle; done 1; cpu1 run 2;"
     "cpu2 run 3; cpu3 idle; done 3; cpu3 idle; done 2; cpu3 run 4; cpu4 idle; done 4;"
     "cpu4 work 1"},
    {"the application's acquisition takes its turn like a task, and so does a release", "cpus=1 ws",
     "data a; release a EINVAL; any a:rw; acquire a:r; finished 1; acquire a:r EINVAL; any a:rw;"
     "wait ESTUCK; says 1 task cannot go on: task 2 (for_cpus) waits for handle 1, which the "
     "application has acquired and not released; release a; wait"},
    {"unregistering waits for readers as well", "cpus=1 ws",
     "data a; any a:r; cpu0 run 1; unregister a ESTUCK; done 1; wait"},
};

/* A handle named twice is one access, RW if mixed; the buffers keep their positions. */
static void test_duplicates(void)
{
    OWNED(testing_end)
    struct testing *t = testing_init(&(struct testing_machine){.cpus = 2}, "eager", 1);
    struct duet_handle *h = testing_handle(t, 8);
    (void)testing_submit(t, t->any, h, DUET_R, h, DUET_W, 0);
    struct duet__engine_command command = testing_next(t, 0);
    g_assert_cmpuint(duet_task_accesses(command.task), ==, 2);
    g_assert_true(duet_task_reads(command.task, 0) && duet_task_writes(command.task, 0));
    g_assert_false(duet_task_reads(command.task, 1) || duet_task_writes(command.task, 1));
    g_assert_false(duet_task_reads(command.task, 2) || duet_task_writes(command.task, 2));
    (void)testing_submit(t, t->any, h, DUET_R, h, DUET_R, 0);
    g_assert_cmpint(testing_next(t, 1).kind, ==, DUET_IDLE);
    testing_done(t, &command, 1e-6, 0);
    g_assert_cmpuint(testing_work(t, 1, NULL), ==, 1);
}

/* Tasks of 0, 1000 and 65,535 accesses; one access more is refused. */
static void test_wide(void)
{
    enum { WIDE = 1000, MOST = 65535 };
    double flops = 1;
    OWNED(testing_end)
    struct testing *t = testing_init(&(struct testing_machine){.cpus = 1}, "ws", 1);
    g_autofree struct duet_access *accesses = g_new0(struct duet_access, MOST + 1);
    for (unsigned i = 0; i <= MOST; i++) {
        accesses[i].handle = i < WIDE ? testing_handle(t, 8) : accesses[i % WIDE].handle;
        accesses[i].mode = i % 2 ? DUET_R : DUET_RW;
    }
    struct duet_task_desc desc = {.codelet = t->any,
                                  .accesses = accesses,
                                  .args = &flops,
                                  .args_bytes = sizeof flops};
    static const unsigned counts[] = {0, WIDE, 1, WIDE, 9, WIDE};
    for (unsigned i = 0; i < G_N_ELEMENTS(counts); i++) {
        desc.access_count = counts[i];
        g_assert_cmpint(duet_submit(t->core, &desc), ==, DUET_OK);
    }
    desc.access_count = MOST;
    g_assert_cmpint(duet_submit(t->core, &desc), ==, DUET_OK);
    desc.access_count = MOST + 1;
    g_assert_cmpint(duet_submit(t->core, &desc), ==, DUET_EINVAL);
    g_assert_cmpint(duet_wait(t->core), ==, DUET_OK);
    g_assert_cmpuint(duet_tasks_done(t->core), ==, G_N_ELEMENTS(counts) + 1);
}

/* A chain runs in order, and its length is the critical path. */
static void test_chain(void)
{
    enum { LENGTH = 2000 };
    struct duet_stats stats;
    OWNED(testing_end)
    struct testing *t = testing_init(&(struct testing_machine){.cpus = 2}, "ws", 1);
    struct duet_handle *h = testing_handle(t, 8);
    for (unsigned i = 0; i < LENGTH; i++) {
        (void)testing_submit(t, t->any, h, DUET_RW, NULL, 0, 0);
        (void)testing_submit(t, t->any, NULL, 0, NULL, 0, 0);
    }
    uint64_t last = 0;
    while (duet_tasks_done(t->core) < 2 * LENGTH) {
        struct duet__engine_command command = testing_next(t, 0);
        g_assert_cmpint(command.kind, ==, DUET_RUN);
        uint64_t id = duet_task_id(command.task);
        g_assert_true(id % 2 == 0 || id == last + 2 || id == 1);
        last = id % 2 ? id : last;
        testing_done(t, &command, 1e-6, 0);
    }
    duet_stats(t->core, &stats);
    g_assert_cmpfloat_with_epsilon(stats.critical_path_s, LENGTH * 1e-3, 1e-6);
}

SCRIPTS_MAIN(test_scripts, test_duplicates, test_wide, test_chain, test_random)
