/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of eager: one list, highest priority first, in order of arrival among equals. */
#include "core/testing.h"

static void test_order(void)
{
    static const int priorities[] = {0, 2, -1, 2, 0, 5};
    static const uint64_t order[] = {6, 2, 4, 1, 5, 3};
    OWNED(testing_end)
    struct testing *t = testing_init(&(struct testing_machine){.cpus = 2}, "eager", 1);
    struct duet_view view = testing_view(t, DUET_SUBMITTER);
    for (unsigned i = 0; i < 6; i++)
        (void)testing_submit(t, t->any, NULL, 0, NULL, 0, priorities[i]);
    g_assert_cmpuint(duet_list_length(duet_view_shared(&view)), ==, 6);
    for (unsigned i = 0; i < 6; i++) {
        struct duet__engine_command command = testing_next(t, i % 2);
        g_assert_cmpuint(duet_task_id(command.task), ==, order[i]);
        testing_done(t, &command, 1e-6, 0);
    }
}

/* A worker passes over what it cannot run, whatever its priority. */
static void test_passing(void)
{
    OWNED(testing_end)
    struct testing *t = testing_init(&(struct testing_machine){.cpus = 1, .gpus = 1}, "eager", 1);
    (void)testing_submit(t, t->gpu, NULL, 0, NULL, 0, 9);
    (void)testing_submit(t, t->cpu, NULL, 0, NULL, 0, 1);
    (void)testing_submit(t, t->any, NULL, 0, NULL, 0, 5);
    struct duet__engine_command on_cpu = testing_next(t, 0), on_gpu = testing_next(t, 1);
    g_assert_cmpuint(duet_task_id(on_cpu.task), ==, 3);
    g_assert_cmpuint(duet_task_id(on_gpu.task), ==, 1);
    testing_done(t, &on_cpu, 1e-6, 0);
    testing_done(t, &on_gpu, 1e-6, 0);
    testing_drain(t);
    g_assert_null(t->core->policy->steal);
}

TEST_MAIN(test_order, test_passing)
