/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests of heft: order by speed-up, earliest finish with transfers beside the kernels before, dates
 * corrected by what was measured, no stealing. One core, one device or two, times in milliseconds.
 */
#include "core/policies/testing.h"

enum { CPU = 0, GPU = 1 };

static struct testing *start(unsigned gpus)
{
    struct testing *t = testing_init(&(struct testing_machine){.cpus = 1, .gpus = gpus}, "heft", 1);
    g_assert_null(t->core->policy->steal);
    return t;
}

/* The device runs its next task, which takes this long. */
static void run(struct testing *t, double ms)
{
    struct duet__engine_command command = testing_next(t, GPU);
    g_assert_cmpint(command.kind, ==, DUET_RUN);
    testing_done(t, &command, ms * 1e-3, 0);
}

/* The task that gains most chooses first: pushed in any order, B has the device and A the core. */
static void test_order(void)
{
    for (unsigned swap = 0; swap < 2; swap++) {
        OWNED(testing_end) struct testing *t = start(1);
        struct duet_task *a = task(t, 1, 0.5, NULL, 0), *b = task(t, 10, 1, NULL, 0);
        struct duet_task *batch[] = {swap ? b : a, swap ? a : b};
        struct duet_view view = testing_view(t, DUET_SUBMITTER);
        push(t, batch, 2);
        g_assert_true(duet_pop_head(&view, duet_view_list(&view, GPU), GPU) == b);
        g_assert_true(duet_pop_head(&view, duet_view_list(&view, CPU), CPU) == a);
    }
}

/* Equal speed-up: in order of submission; tasks of devices alone first, of cores alone last. */
static void test_order_of_equals(void)
{
    OWNED(testing_end) struct testing *t = start(1);
    struct duet_task *a = task(t, 100, 1, NULL, 0), *b = task(t, 200, 2, NULL, 0);
    struct duet_task *only = task(t, 0, 1, NULL, 0);
    struct duet_task *batch[] = {b, a, only};
    struct duet_view view = testing_view(t, DUET_SUBMITTER);
    push(t, batch, 3);
    struct duet_list *list = duet_view_list(&view, GPU);
    g_assert_true(duet_pop_head(&view, list, GPU) == only);
    g_assert_true(duet_pop_head(&view, list, GPU) == a);
    g_assert_true(duet_pop_head(&view, list, GPU) == b);
}

static void test_earliest_finish(void)
{
    OWNED(testing_end) struct testing *t = start(2);
    g_assert_cmpuint(placed(t, task(t, 4, 3, NULL, 0)), ==,
                     1); /* free: the faster, lowest number */
    g_assert_cmpuint(placed(t, task(t, 4, 3, NULL, 0)), ==, 2); /* 4, 6, 3 */
    g_assert_cmpuint(placed(t, task(t, 4, 3, NULL, 0)), ==, CPU);
    g_assert_cmpuint(placed(t, task(t, 4, 3, NULL, 0)), ==, 1); /* 8, 6, 6 */
    t->now = 0.1;                                               /* all are free long since */
    g_assert_cmpuint(placed(t, task(t, 2, 3, NULL, 0)), ==, CPU);
}

/* 1 MB takes 1 ms to the device: it counts while the device is free, and hides behind a kernel. */
static void test_transfer(void)
{
    struct testing *t = start(1);
    struct duet_handle *h = testing_handle(t, 1000000);
    g_assert_cmpuint(placed(t, task(t, 1.5, 1, h, 0)), ==, CPU);
    testing_fini(t);
    t = start(1);
    h = testing_handle(t, 1000000);
    g_assert_cmpuint(placed(t, task(t, 10, 2, NULL, 0)), ==, GPU); /* busy for 2 ms */
    /* 2 + 1 with the copy hidden; 4 if it were not */
    g_assert_cmpuint(placed(t, task(t, 3.5, 1, h, 0)), ==, GPU);
    testing_fini(t);
}

/* A late task moves the date of its worker, once. */
static void test_late(void)
{
    OWNED(testing_end) struct testing *t = start(1);
    for (unsigned i = 0; i < 3; i++)
        g_assert_cmpuint(placed(t, task(t, 100, 1, NULL, 0)), ==, GPU);
    run(t, 5); /* 4 late: the device is busy until 7 */
    g_assert_cmpuint(placed(t, task(t, 2.5, 1, NULL, 0)), ==, CPU); /* 5 + 2.5 against 7 + 1 */
    run(t, 1);                                                      /* as expected: still until 7 */
    /* the core until 7.5; at 6: 7.5 + 1 against 7 + 1.4; 11 + 1.4 if counted twice */
    g_assert_cmpuint(placed(t, task(t, 1, 1.4, NULL, 0)), ==, GPU);
}

static void test_early(void)
{
    OWNED(testing_end) struct testing *t = start(1);
    for (unsigned i = 0; i < 2; i++)
        g_assert_cmpuint(placed(t, task(t, 100, 4, NULL, 0)), ==, GPU);
    run(t, 1);                                                      /* 3 early: until 5 */
    g_assert_cmpuint(placed(t, task(t, 5.5, 1, NULL, 0)), ==, GPU); /* 6 against 6.5 */
}

TEST_MAIN(test_order, test_order_of_equals, test_earliest_finish, test_transfer, test_late,
          test_early)
