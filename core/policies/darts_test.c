/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests of darts on hand-made cases: which task a device begins, by the data it has; who takes what
 * others were to run; and of luf, which data makes room. A core of 1 Gflop/s and two devices of 10.
 */
#include <math.h>

#include "core/testing_script.h"

enum { BLOCK = SLAB_ALIGN, CPU = 0, GPU = 1, DATA = 8 };

/* The number of the task that the worker runs next, to its end; 0: none. */
static uint64_t runs(struct testing *t, unsigned worker)
{
    for (;;) {
        struct duet__engine_command command = testing_next(t, worker);
        if (command.kind == DUET_IDLE)
            return 0;
        uint64_t number = command.kind == DUET_RUN ? duet_task_id(command.task) : 0;
        testing_done(t, &command, worker == CPU ? 1e-3 : 1e-4, 0);
        if (number)
            return number;
    }
}

/* "next gpu0 3": the worker runs task 3 next, with all copies for it; 0: none. */
static bool darts_step(struct stage *stage, char **words)
{
    if (!stage_is(words, "next"))
        return false;
    stage_same(stage, "the task", (int64_t)runs(stage->t, (unsigned)stage_worker(stage, words[1])),
               stage_number(stage, words[2]));
    return true;
}

#define MUCH "cpus=1 gpus=2 blocks=8 window=1 unasked"
#define THREE "cpus=1 gpus=2 blocks=3 window=1 unasked"

static const struct script scripts[] = {
    /* b frees one task, c frees two; what lacks nothing goes before all, but not before planned
     * tasks */
    {"the data that frees most tasks is brought", MUCH,
     "data a b c; gpu a:r; next gpu0 1; gpu a:r b:r; gpu a:r c:r; gpu c:r; gpu a:r; next gpu0 5;"
     "next gpu0 3; gpu a:r; next gpu0 4; next gpu0 6; next gpu0 2; next gpu0 0"},
    {"if no data frees a task, what most tasks lack with one other is brought", MUCH,
     "data a b c d e f; gpu a:r b:r; gpu c:r d:r; gpu d:r e:r; gpu f:r e:r; next gpu0 2; next gpu0 "
     "3;"
     "next gpu0 4; next gpu0 1"},
    {"a device that finds nothing takes what another one was to run; cores do not", MUCH,
     "data a; 4 any a:r; next cpu0 0; next gpu0 1; next gpu1 4; next cpu0 0; next gpu0 2; drain"},
    /* 20 wait: 10 for each device, which takes a tenth of a core's time */
    {"a core takes what only cores can run, and what devices are not through with before it", MUCH,
     "data a b c d e; any a:r; any b:r; any c:r; any d:r; any a:r; any b:r; any c:r; any d:r;"
     "any a:r; any b:r; any c:r; any d:r; any a:r; any b:r; any c:r; any d:r; any a:r; any b:r;"
     "any c:r; cpu a:r; any e:r; next cpu0 20; next cpu0 1; next cpu0 0; next gpu0 2; drain;"
     "cpu0 ran 2"},
    {"luf: what no planned task uses makes room; a task that has lost its data is given back",
     THREE,
     "data a b c d; gpu a:r; next gpu0 1; gpu b:r; next gpu0 2; gpu a:r c:r; gpu c:r; next gpu0 3;"
     "gpu a:r; gpu0 run 4; gpu d:r; done 4; valid a host gpu0; valid b host gpu0; valid c host "
     "gpu0;"
     "next gpu0 5; next gpu0 6; valid a host gpu0; valid b host; valid d host gpu0"},
};

static void test_scripts(void)
{
    struct duet_policy policy = *duet_policy_find("darts");
    struct duet_policy_parameter parameters[DUET_PARAMETERS_MAX] = {{NULL}};
    const struct stage_more more = {&policy, darts_step};
    unsigned urgent = 0;
    scripts_play_with(scripts, G_N_ELEMENTS(scripts), &more);
    /* the most urgent of the tasks that data frees comes first; with urgent=1 that of all tasks */
    for (unsigned i = 0; policy.parameters[i].name; i++) {
        parameters[i] = policy.parameters[i];
        urgent = strcmp(parameters[i].name, "urgent") ? urgent : i;
    }
    policy.parameters = parameters;
    for (int on = 0; on < 2; on++) {
        const struct script script = {on ? "urgent" : "not urgent", MUCH,
                                      on ? "data a b c d; gpu!1 a:r; gpu!2 b:r; gpu a:r; gpu!5 c:r "
                                           "d:r; next gpu0 4; next gpu0 2;"
                                           "next gpu0 1; drain"
                                         : "data a b c d; gpu!1 a:r; gpu!2 b:r; gpu a:r; gpu!5 c:r "
                                           "d:r; next gpu0 2; next gpu0 1;"
                                           "drain"};
        parameters[urgent].initial = on;
        scripts_play_with(&script, 1, &more);
    }
}

static struct testing *t;
static struct duet_handle *data[DATA];

static void start(unsigned blocks)
{
    t = testing_init(&(struct testing_machine){.cpus = 1,
                                               .gpus = 2,
                                               .capacity_bytes = blocks * BLOCK,
                                               .window = 1},
                     "darts", 1);
    for (unsigned i = 0; i < DATA; i++)
        data[i] = testing_handle(t, BLOCK);
}

/* Counts of a device: of tasks given to it, until they have ended. */
static void test_luf_counts(void)
{
    start(3);
    struct duet_view view = testing_view(t, GPU);
    struct duet_task *task = testing_create(t, t->gpu, data[0], DUET_R, data[1], DUET_RW, 0);
    void *first = duet_task_place_state(&view, task, 0, 1);
    void *other = duet_task_place_state(&view, task, 0, 2);
    duet_luf_count(&view, task, GPU, 1);
    duet_luf_count(&view, task, GPU, 1);
    duet_luf_count(&view, task, CPU, 1);
    g_assert_cmpfloat(duet_luf_victim(NULL, &view, 1, first, false), ==, -2);
    g_assert_cmpfloat(duet_luf_victim(NULL, &view, 1, first, true), ==, -2.5);
    g_assert_cmpfloat(duet_luf_victim(NULL, &view, 2, other, false), ==, INFINITY);
    for (unsigned i = 0; i < 3; i++)
        duet_luf_count(&view, task, GPU, -1);
    g_assert_cmpfloat(duet_luf_victim(NULL, &view, 1, first, false), ==, INFINITY);
    g_assert_cmpfloat(duet_luf_victim(NULL, &view, 1, first, true), ==, -0.5);
    duet__link(t->core, task, DUET_SUBMITTER, t->now, &t->ops);
    testing_drain(t);
    testing_fini(t);
    start(8); /* everything fits */
    view = testing_view(t, GPU);
    task = testing_create(t, t->gpu, data[0], DUET_R, NULL, 0, 0);
    duet_luf_count(&view, task, GPU, 1);
    first = duet_task_place_state(&view, task, 0, 1);
    g_assert_cmpfloat(duet_luf_victim(NULL, &view, 1, first, false), ==, INFINITY);
    duet__link(t->core, task, DUET_SUBMITTER, t->now, &t->ops);
    testing_drain(t);
    testing_fini(t);
}

/* A task that the device has taken, and that is cancelled since what it reads is not valid, is
 * counted no more. */
static void test_luf_cancelled(void)
{
    start(3);
    t->core->keep_going = true;
    (void)testing_submit(t, t->gpu, data[0], DUET_W, NULL, 0, 0);
    (void)testing_submit(t, t->gpu, data[0], DUET_R, data[1], DUET_R, 0);
    struct duet__engine_command command = testing_next(t, GPU);
    g_assert_cmpint(command.kind, ==, DUET_RUN);
    testing_done(t, &command, 1e-4, DUET_EIO);
    g_assert_cmpuint(runs(t, GPU), ==, 0);
    g_assert_true(duet__finished(t->core));
    struct duet_view view = testing_view(t, GPU);
    struct duet_task *task = testing_create(t, t->gpu, data[1], DUET_R, NULL, 0, 0);
    void *place = duet_task_place_state(&view, task, 0, 1);
    g_assert_cmpfloat(duet_luf_victim(NULL, &view, 1, place, false), ==, INFINITY);
    duet__link(t->core, task, DUET_SUBMITTER, t->now, &t->ops);
    testing_drain(t);
    testing_fini(t);
}

TEST_MAIN(test_scripts, test_luf_counts, test_luf_cancelled)
