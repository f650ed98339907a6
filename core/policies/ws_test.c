/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of ws: local push and pop at the head, steal at the tail. */
#include "core/policies/testing.h"

static void test_ends(void)
{
    struct duet_task *tasks[3];
    OWNED(testing_end)
    struct testing *t = testing_init(&(struct testing_machine){.cpus = 2, .gpus = 1}, "ws", 1);
    struct duet_view view = testing_view(t, 1);
    for (unsigned i = 0; i < 3; i++)
        tasks[i] = testing_create(t, t->any, NULL, 0, NULL, 0, (int)i);
    push_by(t, 1, tasks, 3);
    g_assert_cmpuint(duet_list_length(duet_view_list(&view, 1)), ==, 3);
    g_assert_null(popped(t, 0));
    g_assert_null(stolen(t, 0, 2));
    g_assert_true(stolen(t, 2, 1) == tasks[0]);
    g_assert_true(popped(t, 1) == tasks[2]);
    g_assert_true(stolen(t, 0, 1) == tasks[1]);
}

/* The submitting thread's list is worker 0's; a finishing worker's its own, even of others' tasks.
 */
static void test_local(void)
{
    OWNED(testing_end)
    struct testing *t = testing_init(&(struct testing_machine){.cpus = 2, .gpus = 1}, "ws", 1);
    struct duet_view view = testing_view(t, DUET_SUBMITTER);
    (void)testing_submit(t, t->gpu, NULL, 0, NULL, 0, 0);
    g_assert_cmpuint(duet_list_length(duet_view_list(&view, 0)), ==, 1);
    struct duet_task *task = testing_create(t, t->gpu, NULL, 0, NULL, 0, 0);
    push_by(t, 1, &task, 1);
    g_assert_cmpuint(duet_list_length(duet_view_list(&view, 1)), ==, 1);
    g_assert_null(popped(t, 1));
    g_assert_cmpuint(testing_work(t, 2, NULL), ==, 2);
    struct duet_stats stats;
    duet_stats(t->core, &stats);
    g_assert_cmpuint(stats.steals, ==, 2);
}

/*
 * Submits `count` tasks, each expected to take `microseconds` on a CPU worker, on worker 0's list.
 * Returns how many a worker that takes one has then on its own list.
 */
static unsigned taken_along(unsigned count, double microseconds, unsigned thief)
{
    double flops = microseconds * 1e3; /* flops on CPUs: see testing_cost */
    struct testing *t = testing_init(&(struct testing_machine){.cpus = 3, .gpus = 1}, "ws", 1);
    const struct duet_task_desc desc = {.codelet = t->any,
                                        .args = &flops,
                                        .args_bytes = sizeof flops};
    for (unsigned i = 0; i < count; i++)
        g_assert_cmpint(duet_submit(t->core, &desc), ==, DUET_OK);
    struct duet_view view = testing_view(t, (int)thief);
    const struct duet_list *own = duet_view_list(&view, thief);
    struct duet_task *task = stolen(t, thief, 0);
    unsigned along = (unsigned)duet_list_length(own);
    g_assert_cmpuint(duet_task_id(task), ==, 1);
    g_assert_cmpuint(duet_list_length(duet_view_list(&view, 0)), ==, count - 1 - along);
    for (unsigned i = 0; i < along; i++) {
        g_assert_cmpuint(duet_task_id(popped(t, thief)), ==, 2 + i);
    }
    g_assert_cmpfloat(duet_view_load(&view, thief), ==, 0);
    testing_fini(t);
    return along;
}

/*
 * A thief takes its part of a list of short tasks along, in their order, up to 100 microseconds;
 * none of long tasks, and none to a device.
 */
static void test_share(void)
{
    g_assert_cmpuint(taken_along(42, 1, 1), ==, 9);
    g_assert_cmpuint(taken_along(42, 30, 1), ==, 2);
    g_assert_cmpuint(taken_along(42, 60, 1), ==, 0);
    g_assert_cmpuint(taken_along(42, 0.01, 3), ==, 0);
    g_assert_cmpuint(taken_along(4, 1, 1), ==, 0);
}

TEST_MAIN(test_ends, test_local, test_share)
