/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of tasks that are submitted from inside a kernel or an expansion. */
#include "core/testing_script.h"

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

#define BOTH "cpus=1 gpus=1 "
#define THREE "3 inside gpu0 cpu b:rw;"

static const struct script scripts[] = {
    {"what a device's kernel submits for CPUs and for itself may run once it has ended",
     BOTH "blocks=1 ws",
     "data a b; gpu a:w; gpu0 run 1; inside gpu0 gpu b:w; inside gpu0 cpu b:r; inside gpu0 cpu;"
     "unfinished 4; go 0; done 1; wake gpu0; go 3"},
    {"the device is lost while its kernel runs, which runs again elsewhere: what it submits then "
     "is "
     "all there is",
     BOTH,
     "data a b; any a:w; gpu0 run 1;" THREE "lose gpu0; lost 1; cpu0 run 1; 3 inside cpu0 cpu b:rw;"
     "done 1; wake cpu0; go 3; cpu0 ran 4"},
    {"a kernel that nobody is left to run again ends with its tasks", BOTH,
     "data a b; gpu a:w; gpu0 run 1;" THREE "lose gpu0; lost 1; wake cpu0; go 0; cpu0 ran 0;"
     "end ELOST"},
    {"a kernel whose run is cancelled ends with its tasks", BOTH,
     "data a b; any a:w; gpu0 run 1;" THREE
     "cancel; lose gpu0; lost 1; wake cpu0; go 0; cpu0 ran 0;"
     "end ECANCELED"},
    {"a task that expands submits one of the application's: a wait for it does not wait for that",
     "cpus=2",
     "data a b; plan p free cpu b:rw, cpu; split p a:rw; cpu a:rw; cpu0 run 3; go 2; unfinished "
     "1;"
     "done 3"},
};

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

SCRIPTS_MAIN(test_scripts, test_order, test_taken_by_others, test_newest_first, test_oldest_given,
             test_long_not_kept, test_kept_and_failed)
