/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests of darts on hand-made cases: which task a device begins, by the data it has; who takes what
 * others were to run; and of luf, which data makes room. A core of 1 Gflop/s and two devices of 10.
 */
#include <math.h>

#include "core/testing.h"

enum { BLOCK = SLAB_ALIGN, CPU = 0, GPU = 1, GPU2 = 2, MOST = 8 };

static struct testing *t;
static struct duet_handle *data[MOST];

static void start(unsigned blocks, bool urgent)
{
    static struct duet_policy policy;
    static struct duet_policy_parameter parameters[DUET_PARAMETERS_MAX];
    policy = *duet_policy_find("darts");
    for (unsigned i = 0; policy.parameters[i].name; i++) {
        parameters[i] = policy.parameters[i];
        if (!strcmp(parameters[i].name, "urgent"))
            parameters[i].initial = urgent;
    }
    policy.parameters = parameters;
    t = testing_init_policy(&(struct testing_machine){.cpus = 1,
                                                      .gpus = 2,
                                                      .capacity_bytes = blocks * BLOCK,
                                                      .window = 1},
                            &policy, 1);
    for (unsigned i = 0; i < MOST; i++)
        data[i] = testing_handle(t, BLOCK);
}

/* A task that reads data[a] and data[b], or one of them only; its number. */
static uint64_t submit(struct duet_codelet *codelet, unsigned a, unsigned b, int priority)
{
    return testing_submit(t, codelet, data[a], DUET_R, data[b], a == b ? 0 : DUET_R, priority);
}

/* The number of the task that the worker runs next, to its end; 0: none. */
static uint64_t runs(unsigned worker)
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

static bool valid(unsigned i, unsigned node)
{
    return bit_test(data[i]->valid, node);
}

static void test_frees_most(void)
{
    start(MOST, false);
    (void)submit(t->gpu, 0, 0, 0);
    (void)runs(GPU);
    uint64_t one = submit(t->gpu, 0, 1, 0); /* 1 frees one task, 2 frees two */
    uint64_t two = submit(t->gpu, 0, 2, 0), three = submit(t->gpu, 2, 2, 0);
    uint64_t there = submit(t->gpu, 0, 0, 0); /* what lacks nothing goes before all */
    g_assert_cmpuint(runs(GPU), ==, there);
    g_assert_cmpuint(runs(GPU), ==, two);
    there = submit(t->gpu, 0, 0, 0); /* planned tasks come before that */
    g_assert_cmpuint(runs(GPU), ==, three);
    g_assert_cmpuint(runs(GPU), ==, there);
    g_assert_cmpuint(runs(GPU), ==, one);
    g_assert_cmpuint(runs(GPU), ==, 0);
    testing_fini(t);
}

/* If no data frees a task, the data that most tasks lack with one other is brought. */
static void test_wanted_most(void)
{
    start(MOST, false);
    uint64_t first = submit(t->gpu, 0, 1, 0), second = submit(t->gpu, 2, 3, 0);
    uint64_t third = submit(t->gpu, 3, 4, 0), fourth = submit(t->gpu, 5, 4, 0);
    g_assert_cmpuint(runs(GPU), ==, second); /* 3 is lacked twice */
    g_assert_cmpuint(runs(GPU), ==, third);
    g_assert_cmpuint(runs(GPU), ==, fourth);
    g_assert_cmpuint(runs(GPU), ==, first);
    testing_fini(t);
}

/* The most urgent of the tasks that data frees comes first; with urgent=1 that of all tasks. */
static void test_priority(void)
{
    for (int urgent = 0; urgent < 2; urgent++) {
        start(MOST, urgent);
        uint64_t low = submit(t->gpu, 0, 0, 1), high = submit(t->gpu, 1, 1, 2);
        (void)submit(t->gpu, 0, 0, 0);
        uint64_t two = submit(t->gpu, 2, 3, 5);
        if (urgent)
            g_assert_cmpuint(runs(GPU), ==, two);
        g_assert_cmpuint(runs(GPU), ==, high);
        g_assert_cmpuint(runs(GPU), ==, low);
        testing_drain(t);
        testing_fini(t);
    }
}

/* A device that finds nothing takes what another one was to run; cores do not. */
static void test_steal(void)
{
    start(MOST, false);
    uint64_t tasks[4];
    for (unsigned i = 0; i < 4; i++)
        tasks[i] = submit(t->any, 0, 0, 0);
    g_assert_cmpuint(runs(CPU), ==, 0);
    g_assert_cmpuint(runs(GPU), ==, tasks[0]);
    g_assert_cmpuint(runs(GPU2), ==, tasks[3]);
    g_assert_cmpuint(runs(CPU), ==, 0);
    g_assert_cmpuint(runs(GPU), ==, tasks[1]);
    testing_drain(t);
    testing_fini(t);
}

/* A core takes what only cores can run, and what devices would not be through with before it. */
static void test_core(void)
{
    start(MOST, false);
    for (unsigned i = 0; i < 19; i++)
        (void)submit(t->any, i % 4, i % 4, 0);
    uint64_t own = submit(t->cpu, 0, 0, 0), last = submit(t->any, 7, 7, 0);
    g_assert_cmpuint(runs(CPU), ==, own);
    uint64_t first = runs(CPU); /* 20 wait: 10 for each device, which takes a tenth of its time */
    g_assert_cmpuint(first, ==, 1);
    g_assert_cmpuint(runs(CPU), ==, 0);
    g_assert_cmpuint(runs(GPU), !=, last);
    testing_drain(t);
    g_assert_cmpuint(duet_worker_stats(t->core, CPU).tasks, ==, 2);
    testing_fini(t);
}

/*
 * Data that no planned task uses makes room; a planned task that has lost its data is given back.
 */
static void test_luf(void)
{
    start(3, false);
    (void)submit(t->gpu, 0, 0, 0);
    (void)runs(GPU);
    (void)submit(t->gpu, 1, 1, 0);
    (void)runs(GPU);
    uint64_t one = submit(t->gpu, 0, 2, 0), two = submit(t->gpu, 2, 2, 0);
    g_assert_cmpuint(runs(GPU), ==, one);
    (void)submit(t->gpu, 0, 0, 0);
    struct duet__engine_command command = testing_next(t, GPU); /* two; 0 is not used by it */
    g_assert_cmpint(command.kind, ==, DUET_RUN);
    g_assert_cmpuint(duet_task_id(command.task), ==, two);
    (void)testing_submit(t, t->gpu, data[3], DUET_R, NULL, 0, 0);
    testing_done(t, &command, 1e-6, 0);
    g_assert_true(valid(0, 1) && valid(1, 1) && valid(2, 1));
    (void)runs(GPU);
    (void)runs(GPU);
    g_assert_true(valid(0, 1) && !valid(1, 1) && valid(3, 1));
    testing_fini(t);
}

/* Counts of a device: of tasks given to it, until they have ended. */
static void test_luf_counts(void)
{
    start(3, false);
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
    start(MOST, false); /* everything fits */
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
    start(3, false);
    t->core->keep_going = true;
    (void)testing_submit(t, t->gpu, data[0], DUET_W, NULL, 0, 0);
    (void)submit(t->gpu, 0, 1, 0);
    struct duet__engine_command command = testing_next(t, GPU);
    g_assert_cmpint(command.kind, ==, DUET_RUN);
    testing_done(t, &command, 1e-4, DUET_EIO);
    g_assert_cmpuint(runs(GPU), ==, 0);
    g_assert_true(duet__finished(t->core));
    struct duet_view view = testing_view(t, GPU);
    struct duet_task *task = testing_create(t, t->gpu, data[1], DUET_R, NULL, 0, 0);
    void *place = duet_task_place_state(&view, task, 0, 1);
    g_assert_cmpfloat(duet_luf_victim(NULL, &view, 1, place, false), ==, INFINITY);
    duet__link(t->core, task, DUET_SUBMITTER, t->now, &t->ops);
    testing_drain(t);
    testing_fini(t);
}

TEST_MAIN(test_frees_most, test_wanted_most, test_priority, test_steal, test_core, test_luf,
          test_luf_counts, test_luf_cancelled)
