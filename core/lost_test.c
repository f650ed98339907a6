/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests of a device that is lost: what becomes of its tasks, whatever they were at. What becomes of
 * its data is in lost_data_test.c.
 */
#include "core/testing_script.h"

enum { CPU = 0, GPU = 1, GPU2 = 2, GPU3 = 3, BLOCK = SLAB_ALIGN };

static const struct testing_machine two = {.cpus = 1, .gpus = 2};

static const char *const nobody = "every worker that could run it is lost";

#define ONE "cpus=1 gpus=1 "
#define TWO "cpus=1 gpus=2 "

static const struct script scripts[] = {
    /* tasks in each state */
    {"tasks on its list go to others, who are woken for them", ONE "unasked heft",
     "data a b c d e; any a:rw; any b:rw; any c:rw; any d:rw; any e:rw; wake cpu0; gpu0 lists 5;"
     "go 0; lose gpu0; cpu0 lists 5; woken cpu0; go 5"},
    {"a task that it has taken, with no room beside the one that runs", ONE "blocks=1",
     "data a b; any@cuda a:w; any b:rw; gpu0 run 1; gpu0 idle; gpu0 takes 2; lose gpu0;"
     "gpu0 takes 1; go 1; copies 0; lost 1;"
     "end ELOST task 1 (any): every worker that could run it is lost"},
    {"a task that waits for inputs, of which one is on its way and one is not yet", TWO,
     "data a b; gpu a:r b:rw; gpu0 copy a host>gpu0; lose gpu0; gpu0 takes 1; go 0; lost a;"
     "gpu0 takes 0; go 1; gpu1 ran 1; copied a host>gpu1; copied b host>gpu1; copies 0"},
    {"a copy that still arrives is not valid in the lost memory", TWO,
     "data a; gpu a:r; gpu0 copy a host>gpu0; lose gpu0; done a; gpu0 idle; valid a host; go 1;"
     "valid a host gpu1"},
    {"all copies are there, but the kernel has not begun", TWO,
     "data a; gpu a:r; gpu0 copy a host>gpu0; done a; valid a host gpu0; lose gpu0; valid a host;"
     "go 1"},
    {"a running task is reported as lost, or as ended although the device is gone", TWO,
     "data a; gpu a:w; cpu a:r; gpu0 run 1; lose gpu0; go 0; done 1 {ELOST|OK|ETASK}; gpu0 idle;"
     "go 2; copied a gpu1>host; copies 0; tasks 2; gpu0 ran 0"},
    {"after a failure of the run, what the lost device held ends without being tried again", TWO,
     "data a; gpu a:w; gpu; gpu0 run 1; gpu0 run 2; done 1 ETASK; lose gpu0; lost 2; go 0;"
     "end ETASK task 1 (for_gpus) failed on gpu0"},

    /* losing all workers */
    {"tasks that only devices can run, listed, running and not ready, are cancelled", ONE,
     "data a b; gpu a:w; gpu a:rw; gpu; gpu; gpu; gpu; cpu a:r b:w; gpu0 run 1; lose gpu0; lost 1;"
     "go 0; tasks 0; unregister b ELOST; end ELOST every worker that could run it is lost"},
    {"a task that was not ready then, with no other of its kind, is found out later", ONE "heft",
     "data a; cpu a:w; gpu a:rw; cpu0 run 1; lose gpu0; error; done 1;"
     "end ELOST task 2 (for_gpus): every worker that could run it is lost"},
    {"a task submitted when nobody is left, while the run has not failed before", ONE "ws",
     "lose gpu0; any; go 1; wait; gpu;"
     "end ELOST task 2 (for_gpus): every worker that could run it is lost"},
    {"of two kinds of devices one is lost: tasks for it alone fail, those for either do not",
     TWO "kinds=2 heft",
     "lose gpu0; gpu@card1; gpu@cuda; go 2; {|gpu@card0}; end {OK|ELOST task 3 (for_gpus): every "
     "worker}"},
    {"a runtime closes while a device is lost: it ends once its commands are reported", ONE,
     "data a; gpu a:r; gpu0 copy a host>gpu0; lose gpu0; stop; gpu0 idle; done a ELOST; gpu0 idle;"
     "cpu0 exit; gpu0 exit; unfinished 0; fini"},
};

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
    g_assert_cmpuint(duet_worker_stats(t->core, GPU2).tasks, ==, 9);
    lost_end(t, DUET_OK, "");
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

/* The call itself, and what policies see of it. */
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

SCRIPTS_MAIN(test_scripts, test_woken_for, test_woken_to_steal, test_window, test_one_after_another,
             test_all, test_calls)
