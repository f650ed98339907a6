/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of ws: local push and pop at the head, steal at the tail. */
#include <glib.h>

#include "core/testing.h"

static void test_ends(void)
{
    struct testing t;
    struct duet_task *batch[3];
    testing_init(&t, &(struct testing_machine){.cpus = 2, .gpus = 1}, "ws", 1);
    const struct duet_policy *policy = t.core->policy;
    void *self = t.core->policy_state;
    struct duet_view view = testing_view(&t, 1);
    for (unsigned i = 0; i < 3; i++)
        batch[i] = testing_create(&t, t.any, NULL, 0, NULL, 0, (int)i);
    struct duet_task *const tasks[] = {batch[0], batch[1], batch[2]};
    policy->push(self, &view, batch, 3, 1, 0);
    g_assert_cmpuint(duet_list_length(duet_view_list(&view, 1)), ==, 3);
    g_assert_null(policy->pop(self, &view, 0, 0));
    g_assert_null(policy->steal(self, &view, 0, 2, 0));
    g_assert_true(policy->steal(self, &view, 2, 1, 0) == tasks[0]);
    g_assert_true(policy->pop(self, &view, 1, 0) == tasks[2]);
    g_assert_true(policy->steal(self, &view, 0, 1, 0) == tasks[1]);
    testing_fini(&t);
}

/* The submitting thread's list is worker 0's; a finishing worker's its own, even of others' tasks.
 */
static void test_local(void)
{
    struct testing t;
    testing_init(&t, &(struct testing_machine){.cpus = 2, .gpus = 1}, "ws", 1);
    struct duet_view view = testing_view(&t, DUET_SUBMITTER);
    (void)testing_submit(&t, t.gpu, NULL, 0, NULL, 0, 0);
    g_assert_cmpuint(duet_list_length(duet_view_list(&view, 0)), ==, 1);
    struct duet_task *task = testing_create(&t, t.gpu, NULL, 0, NULL, 0, 0);
    view = testing_view(&t, 1);
    t.core->policy->push(t.core->policy_state, &view, &task, 1, 1, 0);
    g_assert_cmpuint(duet_list_length(duet_view_list(&view, 1)), ==, 1);
    g_assert_null(t.core->policy->pop(t.core->policy_state, &view, 1, 0));
    g_assert_cmpuint(testing_work(&t, 2, NULL), ==, 2);
    struct duet_stats stats;
    duet_stats(t.core, &stats);
    g_assert_cmpuint(stats.steals, ==, 2);
    testing_fini(&t);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/ws/ends", test_ends);
    g_test_add_func("/ws/local", test_local);
    return g_test_run();
}
