/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of lws: victims near the thief first, and tasks of high priority. Three cores, two devices.
 */
#include "core/policies/testing.h"

static struct testing *start(void)
{
    return testing_init(&(struct testing_machine){.cpus = 3, .gpus = 2}, "lws", 1);
}

static void test_victims(void)
{
    static const unsigned orders[5][4] = {{1, 2, 3, 4},
                                          {0, 2, 3, 4},
                                          {1, 0, 3, 4},
                                          {4, 2, 1, 0},
                                          {3, 2, 1, 0}};
    OWNED(testing_end) struct testing *t = start();
    for (unsigned w = 0; w < 5; w++)
        for (unsigned i = 0; i < 4; i++)
            g_assert_cmpuint(t->core->workers[w].victims[i], ==, orders[w][i]);
}

/* A thief goes through them in this order, again and again. */
static void test_steals(void)
{
    OWNED(testing_end) struct testing *t = start();
    for (unsigned round = 0; round < 3; round++) {
        uint64_t ids[2];
        for (unsigned i = 0; i < 2; i++) {
            struct duet_task *task = testing_create(t, t->any, NULL, 0, NULL, 0, 0);
            ids[i] = duet_task_id(task);
            push_by(t, (int)i, &task, 1);
        }
        for (unsigned i = 0; i < 2; i++) {
            struct duet__engine_command command = testing_next(t, 2);
            g_assert_cmpint(command.kind, ==, DUET_RUN);
            g_assert_cmpuint(duet_task_id(command.task), ==, ids[1 - i]);
            testing_done(t, &command, 1e-3, 0);
        }
    }
}

static void test_priorities(void)
{
    OWNED(testing_end) struct testing *t = start();
    static const int priorities[] = {1, 3, 2, 3};
    static const uint64_t order[] = {2, 4, 3, 1};
    for (unsigned i = 0; i < 4; i++)
        (void)testing_submit(t, t->any, NULL, 0, NULL, 0, priorities[i]);
    for (unsigned i = 0; i < 4; i++)
        g_assert_cmpuint(duet_task_id(i % 2 ? stolen(t, 1, 0) : popped(t, 0)), ==, order[i]);
}

TEST_MAIN(test_victims, test_steals, test_priorities)
