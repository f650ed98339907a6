/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests of a device that is lost: what becomes of its tasks, whatever they were at. What becomes of
 * its data is in lost_data_test.c.
 */
#include "core/testing_lost.h"

enum { CPU = 0, GPU = 1, GPU2 = 2, GPU3 = 3, BLOCK = SLAB_ALIGN };

static const struct testing_machine two = {.cpus = 1, .gpus = 2};

static uint64_t ran_on(const struct testing *t, unsigned worker)
{
    return duet_worker_stats(t->core, worker).tasks;
}

/* ------------------------------------------------------------------------------------------- */
/* Tasks in each state                                                                          */

/* On its list: the tasks go to others, who are woken for them. */
static void test_listed(void)
{
    struct testing_machine one = {.cpus = 1, .gpus = 1};
    struct testing *t = testing_init(&one, "heft", 1);
    t->woken[CPU] = true;
    for (unsigned i = 0; i < 5; i++)
        (void)testing_submit(t, t->any, testing_handle(t, BLOCK), DUET_RW, NULL, 0, 0);
    g_assert_cmpuint(duet_list_length(&t->core->workers[GPU].list), ==, 5);
    g_assert_cmpuint(go(t, NULL), ==, 0);
    lose(t, GPU);
    g_assert_cmpuint(duet_list_length(&t->core->workers[CPU].list), ==, 5);
    g_assert_true(t->woken[CPU]);
    g_assert_cmpuint(go(t, NULL), ==, 5);
    lost_end(t, DUET_OK, "");
}

/* A task on the shared list, for which only the worker that is lost was woken. */
static void test_woken_for(void)
{
    unsigned tried = 0;
    for (unsigned seed = 0; seed < 20; seed++) {
        struct testing *t = lost_start(&two, "eager");
        for (unsigned i = 0; i < seed; i++)
            (void)duet_view_random(&(struct duet_view){.core = t->core, .by = DUET_SUBMITTER},
                                   DUET_SUBMITTER, 2);
        (void)testing_submit(t, t->any, NULL, 0, NULL, 0, 0);
        for (unsigned w = GPU; w <= GPU2; w++)
            if (t->woken[w] && ++tried)
                lose(t, w);
        g_assert_cmpuint(go(t, NULL), ==, 1);
        lost_end(t, DUET_OK, "");
    }
    g_assert_cmpuint(tried, >, 0);
}

/* The woken worker was to steal the task. */
static void test_woken_to_steal(void)
{
    unsigned tried = 0;
    for (unsigned seed = 0; seed < 20; seed++) {
        struct testing_machine make = {.cpus = 2, .gpus = 1};
        enum { THIEF = 2 };
        struct testing *t = lost_start(&make, "ws");
        for (unsigned i = 0; i < seed; i++)
            (void)duet_view_random(&(struct duet_view){.core = t->core, .by = DUET_SUBMITTER},
                                   DUET_SUBMITTER, 2);
        (void)testing_submit(t, t->cpu, NULL, 0, NULL, 0, 0);
        struct duet__engine_command busy = expect_run(t, CPU);
        (void)testing_submit(t, t->any, NULL, 0, NULL, 0, 0);
        if (t->woken[THIEF] && ++tried)
            lose(t, THIEF);
        g_assert_cmpuint(go(t, NULL), ==, 1);
        testing_done(t, &busy, 1e-6, 0);
        lost_end(t, DUET_OK, "");
    }
    g_assert_cmpuint(tried, >, 0);
}

/* Taken, with no room beside the one that runs. */
static void test_without_room(void)
{
    struct testing_log log = {0};
    struct testing_machine make = {.cpus = 1, .gpus = 1, .capacity_bytes = BLOCK};
    struct testing *t = lost_start(&make, "eager");
    struct duet_handle *a = testing_handle(t, BLOCK), *b = testing_handle(t, BLOCK);
    submit_to(t, t->any, "cuda", a, DUET_W, NULL, 0);
    submit_to(t, t->any, NULL, b, DUET_RW, NULL, 0);
    struct duet__engine_command run = expect_run(t, GPU);
    expect_idle(t, GPU);
    g_assert_cmpint(t->core->workers[GPU].slots[1]->state, ==, TASK_TAKEN);
    lose(t, GPU);
    g_assert_cmpuint(t->core->workers[GPU].taken, ==, 1);
    g_assert_cmpuint(go(t, &log), ==, 1);
    g_assert_cmpuint(log.count, ==, 0);
    done_lost(t, &run);
    lost_end(t, DUET_ELOST, "task 1 (any): every worker that could run it is lost");
}

/* Waiting for inputs, of which one is on its way and one is not yet. */
static void test_fetching(void)
{
    struct testing_log log = {0};
    struct testing *t = lost_start(&two, "eager");
    struct duet_handle *a = testing_handle(t, BLOCK), *b = testing_handle(t, BLOCK);
    (void)testing_submit(t, t->gpu, a, DUET_R, b, DUET_RW, 0);
    struct duet__engine_command copy = expect_copy(t, GPU, a, 0, 1);
    lose(t, GPU);
    g_assert_cmpuint(t->core->workers[GPU].taken, ==, 1);
    g_assert_cmpuint(go(t, NULL), ==, 0);
    done_lost(t, &copy);
    g_assert_cmpuint(t->core->workers[GPU].taken, ==, 0);
    g_assert_cmpuint(go(t, &log), ==, 1);
    g_assert_cmpuint(ran_on(t, GPU2), ==, 1);
    g_assert_cmpuint(log.count, ==, 2);
    for (unsigned i = 0; i < 2; i++)
        g_assert_true(log.copies[i].source == DUET_HOST && log.copies[i].destination == 2);
    lost_end(t, DUET_OK, "");
}

/* The copy still arrived: data in the lost memory is invalid. */
static void test_fetched(void)
{
    struct testing *t = lost_start(&two, "eager");
    struct duet_handle *a = testing_handle(t, BLOCK);
    (void)testing_submit(t, t->gpu, a, DUET_R, NULL, 0, 0);
    struct duet__engine_command copy = expect_copy(t, GPU, a, 0, 1);
    lose(t, GPU);
    testing_done(t, &copy, 1e-6, DUET_OK);
    expect_idle(t, GPU);
    g_assert_false(bit_test(a->valid, 1));
    g_assert_cmpuint(go(t, NULL), ==, 1);
    g_assert_true(bit_test(a->valid, 2));
    lost_end(t, DUET_OK, "");
}

/* All copies there, but the kernel not begun. */
static void test_arrived(void)
{
    struct testing *t = lost_start(&two, "eager");
    struct duet_handle *a = testing_handle(t, BLOCK);
    (void)testing_submit(t, t->gpu, a, DUET_R, NULL, 0, 0);
    struct duet__engine_command copy = expect_copy(t, GPU, a, 0, 1);
    testing_done(t, &copy, 1e-6, DUET_OK);
    g_assert_true(bit_test(a->valid, 1));
    lose(t, GPU);
    g_assert_false(bit_test(a->valid, 1));
    g_assert_cmpuint(go(t, NULL), ==, 1);
    lost_end(t, DUET_OK, "");
}

/* Running: reported as lost, or as done although the device is known to be gone. */
static void test_running(void)
{
    static const int statuses[] = {DUET_ELOST, DUET_OK, DUET_ETASK};
    for (unsigned i = 0; i < 3; i++) {
        struct duet_stats stats;
        struct testing_log log = {0};
        struct testing *t = lost_start(&two, "eager");
        struct duet_handle *a = testing_handle(t, BLOCK);
        (void)testing_submit(t, t->gpu, a, DUET_W, NULL, 0, 0);
        (void)testing_submit(t, t->cpu, a, DUET_R, NULL, 0, 0);
        struct duet__engine_command run = expect_run(t, GPU);
        lose(t, GPU);
        g_assert_cmpuint(go(t, NULL), ==, 0);
        testing_done(t, &run, 1e-6, statuses[i]);
        expect_idle(t, GPU);
        g_assert_cmpuint(go(t, &log), ==, 2);
        g_assert_cmpuint(log.count, ==, 1);
        g_assert_cmpuint(log.copies[0].source, ==, 2);
        duet_stats(t->core, &stats);
        g_assert_cmpuint(stats.tasks, ==, 2);
        g_assert_cmpuint(ran_on(t, GPU), ==, 0);
        lost_end(t, DUET_OK, "");
    }
}

/* Several at once: two in flight, one on the list, one not ready yet. */
static void test_window(void)
{
    struct testing *t = testing_init(&two, "heft", 1);
    struct duet_handle *h[4];
    for (unsigned i = 0; i < 4; i++)
        h[i] = testing_handle(t, BLOCK);
    for (unsigned w = 0; w < 3; w++)
        expect_idle(t, w);
    for (unsigned i = 0; i < 8; i++)
        (void)testing_submit(t, t->gpu, h[i % 4], DUET_RW, NULL, 0, 0);
    (void)testing_submit(t, t->gpu, h[0], DUET_R, h[1], DUET_RW, 0);
    struct duet__engine_command copies[] = {testing_next(t, GPU), testing_next(t, GPU)};
    testing_done(t, &copies[0], 1e-6, DUET_OK);
    struct duet__engine_command run = expect_run(t, GPU);
    lose(t, GPU);
    done_lost(t, &copies[1]);
    done_lost(t, &run);
    g_assert_cmpuint(go(t, NULL), ==, 9);
    g_assert_cmpuint(ran_on(t, GPU2), ==, 9);
    lost_end(t, DUET_OK, "");
}

/* After a failure of the run, what the lost device held ends without being tried again. */
static void test_after_failure(void)
{
    struct testing *t = lost_start(&two, "eager");
    struct duet_handle *a = testing_handle(t, BLOCK);
    (void)testing_submit(t, t->gpu, a, DUET_W, NULL, 0, 0);
    (void)testing_submit(t, t->gpu, NULL, 0, NULL, 0, 0);
    struct duet__engine_command run = expect_run(t, GPU), other = expect_run(t, GPU);
    testing_done(t, &run, 1e-6, DUET_ETASK);
    lose(t, GPU);
    done_lost(t, &other);
    g_assert_cmpuint(go(t, NULL), ==, 0);
    lost_end(t, DUET_ETASK, "task 1 (for_gpus) failed on gpu0");
}

/* ------------------------------------------------------------------------------------------- */
/* Losing all workers */

static const char *const nobody = "every worker that could run it is lost";

/* Tasks that only devices can run, listed, running, and not ready: the others are cancelled. */
static void test_only_device(void)
{
    struct duet_stats stats;
    struct testing_machine make = {.cpus = 1, .gpus = 1};
    struct testing *t = lost_start(&make, "eager");
    struct duet_handle *a = testing_handle(t, BLOCK), *b = testing_handle(t, BLOCK);
    (void)testing_submit(t, t->gpu, a, DUET_W, NULL, 0, 0);
    (void)testing_submit(t, t->gpu, a, DUET_RW, NULL, 0, 0);
    for (unsigned i = 0; i < 4; i++)
        (void)testing_submit(t, t->gpu, NULL, 0, NULL, 0, 0);
    (void)testing_submit(t, t->cpu, a, DUET_R, b, DUET_W, 0);
    struct duet__engine_command run = expect_run(t, GPU);
    lose(t, GPU);
    done_lost(t, &run);
    g_assert_cmpuint(go(t, NULL), ==, 0);
    duet_stats(t->core, &stats);
    g_assert_cmpuint(stats.tasks, ==, 0);
    g_assert_cmpint(duet_unregister(t->core, b), ==, DUET_ELOST);
    lost_end(t, DUET_ELOST, nobody);
}

/* Not ready when the device is lost, and nothing else of that kind waits: found out later. */
static void test_only_device_later(void)
{
    struct testing_machine make = {.cpus = 1, .gpus = 1};
    struct testing *t = lost_start(&make, "heft");
    struct duet_handle *a = testing_handle(t, BLOCK);
    (void)testing_submit(t, t->cpu, a, DUET_W, NULL, 0, 0);
    (void)testing_submit(t, t->gpu, a, DUET_RW, NULL, 0, 0);
    struct duet__engine_command run = expect_run(t, CPU);
    lose(t, GPU);
    g_assert_cmpint(atomic_load(&t->core->error), ==, 0);
    testing_done(t, &run, 1e-6, DUET_OK);
    lost_end(t, DUET_ELOST, "task 2 (for_gpus): every worker that could run it is lost");
}

/* A task submitted when nobody is left; the run has not failed before. */
static void test_submitted_after(void)
{
    struct testing_machine make = {.cpus = 1, .gpus = 1};
    struct testing *t = lost_start(&make, "ws");
    lose(t, GPU);
    (void)testing_submit(t, t->any, NULL, 0, NULL, 0, 0);
    g_assert_cmpuint(go(t, NULL), ==, 1);
    g_assert_cmpint(duet_wait(t->core), ==, DUET_OK);
    (void)testing_submit(t, t->gpu, NULL, 0, NULL, 0, 0);
    lost_end(t, DUET_ELOST, "task 2 (for_gpus): every worker that could run it is lost");
}

/* One of two kinds of devices is lost: tasks for it alone fail, those for either do not. */
static void test_kinds(void)
{
    for (unsigned fails = 0; fails < 2; fails++) {
        struct testing_machine make = {.cpus = 1, .gpus = 2, .gpu_archs = 2};
        struct testing *t = lost_start(&make, "heft");
        lose(t, GPU);
        submit_to(t, t->gpu, "card1", NULL, 0, NULL, 0);
        submit_to(t, t->gpu, "cuda", NULL, 0, NULL, 0);
        g_assert_cmpuint(go(t, NULL), ==, 2);
        if (fails)
            submit_to(t, t->gpu, "card0", NULL, 0, NULL, 0);
        lost_end(t, fails ? DUET_ELOST : DUET_OK, "task 3 (for_gpus): every worker");
    }
}

/* Devices of one kind are lost one after another, until none is left. */
static void test_one_after_another(void)
{
    struct testing_machine make = {.cpus = 1, .gpus = 3};
    struct duet__engine_command runs[3];
    struct testing *t = lost_start(&make, "eager");
    for (unsigned i = 0; i < 6; i++)
        (void)testing_submit(t, t->gpu, testing_handle(t, BLOCK), DUET_W, NULL, 0, 0);
    for (unsigned i = 0; i < 3; i++) {
        runs[i] = expect_run(t, GPU + i);
        (void)expect_run(t, GPU + i); /* still in flight at the end */
    }
    lose(t, GPU);
    done_lost(t, &runs[0]);
    testing_done(t, &runs[1], 1e-6, DUET_OK);
    struct duet__engine_command again = expect_run(t, GPU2);
    g_assert_cmpuint(duet_task_id(again.task), ==, duet_task_id(runs[0].task));
    lose(t, GPU2);
    done_lost(t, &again);
    testing_done(t, &runs[2], 1e-6, DUET_OK);
    again = expect_run(t, GPU3);
    g_assert_cmpint(atomic_load(&t->core->error), ==, 0);
    lose(t, GPU3);
    g_assert_cmpint(atomic_load(&t->core->error), ==, 0);
    done_lost(t, &again);
    g_assert_cmpint(atomic_load(&t->core->error), ==, DUET_ELOST);
    for (unsigned w = GPU; w <= GPU3; w++) {
        while (t->core->workers[w].taken) {
            struct duet__engine_command rest = {.kind = DUET_RUN,
                                                .worker = w,
                                                .task = t->core->workers[w].slots[0]};
            done_lost(t, &rest);
        }
    }
    lost_end(t, DUET_ELOST, nobody);
}

/* A machine of devices only, with every policy: all of them go, tasks of all kinds waiting. */
static void test_all(void)
{
    for (size_t p = 0; duet_policy_at(p); p++) {
        struct testing_machine make = {.gpus = 3};
        struct testing *t = lost_start(&make, duet_policy_at(p)->name);
        struct duet_handle *a = testing_handle(t, BLOCK), *b = testing_handle(t, BLOCK);
        for (unsigned i = 0; i < 20; i++)
            (void)testing_submit(t, t->gpu, i % 3 ? a : b, i % 2 ? DUET_R : DUET_RW, NULL, 0, 0);
        for (unsigned w = 0; w < 3; w++)
            lose(t, w);
        g_assert_cmpint(duet_wait(t->core), ==, DUET_ELOST);
        (void)testing_submit(t, t->gpu, a, DUET_R, NULL, 0, 0);
        g_assert_cmpint(duet_unregister(t->core, a), ==, DUET_ELOST);
        lost_end(t, DUET_ELOST, nobody);
    }
}

/* ------------------------------------------------------------------------------------------- */
/* The call                                                                                     */

static void test_calls(void)
{
    struct testing *t = lost_start(&two, "ws");
    g_assert_cmpint(duet__worker_lost(t->core, CPU, 0, &t->ops), ==, DUET_EINVAL);
    lose(t, GPU);
    lose(t, GPU); /* told twice */
    g_assert_false(atomic_load(&t->core->workers[CPU].lost));
    struct duet_view view = testing_view(t, CPU);
    struct duet_task *task = testing_create(t, t->any, NULL, 0, NULL, 0, 0);
    g_assert_true(duet_view_can_run(&view, CPU, task) && duet_view_can_run(&view, GPU2, task));
    g_assert_false(duet_view_can_run(&view, GPU, task));
    duet__link(t->core, task, DUET_SUBMITTER, t->now, &t->ops);
    g_assert_cmpuint(go(t, NULL), ==, 1);
    lost_end(t, DUET_OK, "");
}

/* A runtime that closes while a device is being lost: EXIT once its commands are reported. */
static void test_closing(void)
{
    struct testing_machine make = {.cpus = 1, .gpus = 1};
    OWNED(testing_end) struct testing *t = lost_start(&make, "eager");
    struct duet_handle *a = testing_handle(t, BLOCK);
    (void)testing_submit(t, t->gpu, a, DUET_R, NULL, 0, 0);
    struct duet__engine_command copy = expect_copy(t, GPU, a, 0, 1);
    lose(t, GPU);
    duet__core_stop(t->core);
    expect_idle(t, GPU);
    testing_done(t, &copy, 1e-6, DUET_ELOST);
    expect_idle(t, GPU);
    g_assert_cmpint(testing_next(t, CPU).kind, ==, DUET_EXIT);
    g_assert_cmpint(testing_next(t, GPU).kind, ==, DUET_EXIT);
    g_assert_cmpuint(unfinished(t->core), ==, 0);
}

TEST_MAIN(test_listed, test_woken_for, test_woken_to_steal, test_without_room, test_fetching,
          test_fetched, test_arrived, test_running, test_window, test_after_failure,
          test_only_device, test_only_device_later, test_submitted_after, test_kinds,
          test_one_after_another, test_all, test_calls, test_closing)
