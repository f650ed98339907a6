/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of tasks that are submitted from inside a kernel or an expansion. */
#include "core/testing_expand.h"
#include "core/testing_lost.h"

enum { BLOCK = SLAB_ALIGN };

/* Submits a task as from the kernel that this worker runs. Returns its number. */
static uint64_t nested(struct testing *t, unsigned worker, struct duet_codelet *codelet,
                       struct duet_handle *handle, int mode)
{
    struct duet_task *task = testing_create(t, codelet, handle, mode, NULL, 0, 0);
    uint64_t id = duet_task_id(task);
    duet__link(t->core, task, (int)worker, t->now, &t->ops);
    return id;
}

/* Submits a task as from this kernel of a device. */
static void nested_after(struct testing *t, const struct duet__engine_command *run,
                         struct duet_codelet *codelet, struct duet_handle *handle, int mode)
{
    duet__link_after(run->task, testing_create(t, codelet, handle, mode, NULL, 0, 0));
}

/*
 * A nested task that conflicts with the current one runs after it, and after all submitted before.
 */
static void test_order(void)
{
    for (size_t p = 0; duet_policy_at(p); p++) {
        uint64_t ids[4];
        struct testing *t =
            lost_start(&(struct testing_machine){.cpus = 2}, duet_policy_at(p)->name);
        struct duet_handle *h = testing_handle(t, BLOCK);
        uint64_t outer = testing_submit(t, t->cpu, h, DUET_RW, NULL, 0, 0);
        unsigned worker = t->woken[0] ? 0 : 1;
        struct duet__engine_command run = expect_run(t, worker);
        uint64_t before = testing_submit(t, t->cpu, h, DUET_R, NULL, 0, 0);
        uint64_t inner = nested(t, worker, t->cpu, h, DUET_RW);
        uint64_t after = testing_submit(t, t->cpu, h, DUET_R, NULL, 0, 0);
        g_assert_cmpuint(go(t, NULL), ==, 0);
        testing_done(t, &run, 1e-6, 0);
        t->woken[worker] = true;
        g_assert_cmpuint(go(t, NULL), ==, 3);
        g_assert_cmpuint(plan_order(t, ids, 4), ==, 4);
        const uint64_t expected[] = {outer, before, inner, after};
        g_assert_cmpmem(ids, sizeof ids, expected, sizeof expected);
        lost_end(t, DUET_OK, "");
    }
}

/* A nested task without conflicts is run by an idle worker while the kernel goes on. */
static void test_taken_by_others(void)
{
    for (size_t p = 0; duet_policy_at(p); p++) {
        struct testing *t =
            lost_start(&(struct testing_machine){.cpus = 3}, duet_policy_at(p)->name);
        (void)testing_submit(t, t->cpu, NULL, 0, NULL, 0, 0);
        unsigned worker = 0;
        while (!t->woken[worker])
            worker++;
        struct duet__engine_command run = expect_run(t, worker);
        for (unsigned i = 0; i < 3; i++) {
            (void)nested(t, worker, t->cpu, NULL, 0);
            if (duet_policy_at(p)->steal)
                g_assert_cmpuint(go(t, NULL), ==, 1);
        }
        g_assert_cmpuint(unfinished(t->core), >=, 1);
        testing_done(t, &run, 1e-6, 0);
        t->woken[worker] = true;
        (void)go(t, NULL);
        lost_end(t, DUET_OK, "");
    }
}

/* A device's kernel submits tasks for CPUs and for itself: they may run once it has ended. */
static void test_from_device(void)
{
    struct testing_machine make = {.cpus = 1, .gpus = 1, .capacity_bytes = BLOCK};
    enum { GPU = 1 };
    struct testing *t = lost_start(&make, "ws");
    struct duet_handle *a = testing_handle(t, BLOCK), *b = testing_handle(t, BLOCK);
    (void)testing_submit(t, t->gpu, a, DUET_W, NULL, 0, 0);
    struct duet__engine_command run = expect_run(t, GPU);
    nested_after(t, &run, t->gpu, b, DUET_W);
    nested_after(t, &run, t->cpu, b, DUET_R);
    nested_after(t, &run, t->cpu, NULL, 0);
    g_assert_cmpuint(unfinished(t->core), ==, 4);
    g_assert_cmpuint(go(t, NULL), ==, 0);
    testing_done(t, &run, 1e-6, 0);
    t->woken[GPU] = true;
    g_assert_cmpuint(go(t, NULL), ==, 3);
    lost_end(t, DUET_OK, "");
}

/*
 * The device is lost while its kernel runs, which has submitted tasks: the kernel runs again
 * elsewhere, if there is somebody left, and what it submits then is all there is.
 */
static void test_from_lost_device(void)
{
    enum { CPU, GPU, NESTED = 3 };
    static const struct {
        bool elsewhere, cancelled;
        int error;
        uint64_t tasks;
    } ways[] = {{true, false, DUET_OK, 1 + NESTED},
                {false, false, DUET_ELOST, 0},
                {true, true, DUET_ECANCELED, 0}};
    for (unsigned way = 0; way < G_N_ELEMENTS(ways); way++) {
        struct testing *t = lost_start(&(struct testing_machine){.cpus = 1, .gpus = 1}, "eager");
        struct duet_handle *a = testing_handle(t, BLOCK), *b = testing_handle(t, BLOCK);
        (void)testing_submit(t, ways[way].elsewhere ? t->any : t->gpu, a, DUET_W, NULL, 0, 0);
        struct duet__engine_command run = expect_run(t, GPU);
        for (unsigned i = 0; i < NESTED; i++)
            nested_after(t, &run, t->cpu, b, DUET_RW);
        if (ways[way].cancelled)
            duet_cancel(t->core);
        lose(t, GPU);
        done_lost(t, &run);
        if (!ways[way].error) {
            run = expect_run(t, CPU);
            for (unsigned i = 0; i < NESTED; i++)
                (void)nested(t, CPU, t->cpu, b, DUET_RW);
            testing_done(t, &run, 1e-6, 0);
        }
        t->woken[CPU] = true;
        (void)go(t, NULL);
        g_assert_cmpuint(duet_worker_stats(t->core, CPU).tasks, ==, ways[way].tasks);
        lost_end(t, ways[way].error, "");
    }
}

/* Submits one task on other data, as any task may, beside its child. */
static int submits(struct plan *plan, struct duet_expansion *expansion,
                   const struct duet_call *call)
{
    (void)testing_submit(plan->t, plan->t->cpu, plan->blocks[0], DUET_RW, NULL, 0, 0);
    return plan_child(plan, expansion, plan->t->cpu, NULL, 0, NULL, 0);
}

/* A nested task belongs to the application: a wait for the expanded task does not wait for it. */
static void test_from_expansion(void)
{
    struct testing *t = lost_start(&(struct testing_machine){.cpus = 2}, "eager");
    struct duet_handle *a = testing_handle(t, BLOCK), *b = testing_handle(t, BLOCK);
    struct plan plan = {.expand = submits, .blocks = {b}};
    (void)plan_submit(t, &plan, a, DUET_RW, NULL, 0);
    (void)testing_submit(t, t->cpu, a, DUET_RW, NULL, 0, 0);
    unsigned worker = t->woken[0] ? 0 : 1;
    struct duet__engine_command free_one = expect_run(t, worker);
    g_assert_cmpuint(go(t, NULL), ==, 2); /* the child and the successor */
    g_assert_cmpuint(unfinished(t->core), ==, 1);
    testing_done(t, &free_one, 1e-6, 0);
    lost_end(t, DUET_OK, "");
}

/* ------------------------------------------------------------------------------------------- */
/* Tasks that a worker keeps to itself                                                          */

/* The worker's kernel submits a task. Its number, if it is kept. */
static uint64_t submit_inside(struct testing *t, unsigned worker)
{
    t->in_kernel = 1 + worker;
    (void)testing_submit(t, t->cpu, NULL, 0, NULL, 0, 0);
    t->in_kernel = 0;
    const struct duet_task *newest = t->core->workers[worker].nested.newest;
    return newest ? newest->id : 0;
}

/* The kernel is known to take so long, and a task of it waits for the worker that was woken. */
static struct testing *keep_start(unsigned cpus, double seconds)
{
    struct testing *t = lost_start(&(struct testing_machine){.cpus = cpus}, "ws");
    for (unsigned i = 0; i < 10; i++) {
        (void)testing_submit(t, t->cpu, NULL, 0, NULL, 0, 0);
        unsigned worker = 0;
        while (!t->woken[worker])
            worker++;
        struct duet__engine_command command = expect_run(t, worker);
        testing_done(t, &command, seconds, 0);
        expect_idle(t, worker);
    }
    (void)testing_submit(t, t->cpu, NULL, 0, NULL, 0, 0);
    return t;
}

static uint64_t next_kept(struct testing *t, unsigned worker)
{
    struct duet_task *task = duet__nested_next(t->core, worker, t->now, &t->ops);
    if (!task)
        return 0;
    uint64_t id = task->id;
    struct duet__completion report = {.start_s = t->now, .end_s = t->now + 1e-6};
    t->now = report.end_s;
    duet__nested_done(t->core, worker, task, &report);
    return id;
}

/* The newest runs first, and nobody waits for a wake; the recording has all of them. */
static void test_newest_first(void)
{
    uint64_t ids[4];
    struct testing *t = keep_start(1, 1e-6);
    struct duet__engine_command run = expect_run(t, 0);
    for (unsigned i = 0; i < 3; i++)
        ids[i] = submit_inside(t, 0);
    g_assert_cmpuint(t->ops.pushes, ==, 11);
    testing_done(t, &run, 1e-6, 0);
    double start_s = t->now;
    g_assert_true(duet__nested_any(t->core, 0));
    g_assert_cmpuint(next_kept(t, 0), ==, ids[2]);
    g_assert_cmpuint(next_kept(t, 0), ==, ids[1]);
    g_assert_cmpuint(unfinished(t->core), >, 0);
    g_assert_cmpuint(next_kept(t, 0), ==, ids[0]);
    g_assert_cmpuint(next_kept(t, 0), ==, 0);
    duet__nested_end(t->core, 0, start_s, t->now, &t->ops);
    g_assert_false(duet__nested_any(t->core, 0));
    g_assert_cmpuint(unfinished(t->core), ==, 0);
    g_assert_cmpuint(t->ops.pushes, ==, 11);
    expect_idle(t, 0);
    struct duet_event *events = NULL;
    size_t count;
    g_assert_cmpint(duet_trace_events(t->core, &events, &count), ==, DUET_OK);
    g_assert_cmpuint(count, ==, 14);
    for (unsigned i = 0; i < 3; i++)
        g_assert_cmpuint(events[11 + i].id, ==, ids[2 - i]);
    free(events);
    t->woken[0] = true;
    lost_end(t, DUET_OK, "");
}

/* An idle worker is given the oldest, one after another, and what is left at the end. */
static void test_oldest_given(void)
{
    uint64_t ids[4];
    struct testing *t = keep_start(2, 1e-6);
    unsigned worker = t->woken[0] ? 0 : 1, other = 1 - worker;
    struct duet__engine_command run = expect_run(t, worker);
    for (unsigned i = 0; i < 4; i++)
        ids[i] = submit_inside(t, worker);
    testing_done(t, &run, 1e-6, 0);
    g_assert_false(t->woken[other]);
    g_assert_cmpuint(next_kept(t, worker), ==, ids[3]);
    g_assert_true(t->woken[other]);
    struct duet__engine_command given = expect_run(t, other);
    g_assert_cmpuint(given.task->id, ==, ids[0]);
    g_assert_cmpuint(next_kept(t, worker), ==, ids[2]);
    duet__nested_end(t->core, worker, t->now, t->now, &t->ops);
    testing_done(t, &given, 1e-6, 0);
    struct duet__engine_command last = expect_run(t, other);
    g_assert_cmpuint(last.task->id, ==, ids[1]);
    testing_done(t, &last, 1e-6, 0);
    expect_idle(t, other);
    expect_idle(t, worker);
    lost_end(t, DUET_OK, "");
}

/* Tasks kept by a worker cannot be taken while a kernel runs, so long ones go to the policy. */
static void test_long_not_kept(void)
{
    struct testing *t = keep_start(1, 1e-3);
    struct duet__engine_command run = expect_run(t, 0);
    g_assert_cmpuint(submit_inside(t, 0), ==, 0);
    g_assert_false(duet__nested_any(t->core, 0));
    g_assert_cmpuint(t->ops.pushes, ==, 12);
    testing_done(t, &run, 1e-6, 0);
    t->woken[0] = true;
    g_assert_cmpuint(go(t, NULL), ==, 1);
    lost_end(t, DUET_OK, "");
}

/* A run that has failed begins none of them. */
static void test_kept_and_failed(void)
{
    struct testing *t = keep_start(1, 1e-6);
    struct duet__engine_command run = expect_run(t, 0);
    (void)submit_inside(t, 0);
    (void)submit_inside(t, 0);
    testing_done(t, &run, 1e-6, DUET_EIO);
    g_assert_cmpuint(next_kept(t, 0), ==, 0);
    duet__nested_end(t->core, 0, t->now, t->now, &t->ops);
    expect_idle(t, 0);
    lost_end(t, DUET_EIO, "for_cpus");
}

TEST_MAIN(test_order, test_taken_by_others, test_from_device, test_from_lost_device,
          test_from_expansion, test_newest_first, test_oldest_given, test_long_not_kept,
          test_kept_and_failed)
