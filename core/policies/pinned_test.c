/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of pinned: tasks run where their priority says, or on the next worker that can. */
#include "core/testing.h"

static void expect(struct testing *t, unsigned worker, uint64_t id)
{
    struct duet__engine_command command = testing_next(t, worker);
    g_assert_cmpint(command.kind, ==, DUET_RUN);
    g_assert_cmpuint(duet_task_id(command.task), ==, id);
    testing_done(t, &command, 1e-6, 0);
}

static void test_placed(void)
{
    OWNED(testing_end)
    struct testing *t = testing_init(&(struct testing_machine){.cpus = 2, .gpus = 2}, "pinned", 1);
    (void)testing_submit(t, t->any, NULL, 0, NULL, 0, 3);
    (void)testing_submit(t, t->any, NULL, 0, NULL, 0, 1);
    (void)testing_submit(t, t->any, NULL, 0, NULL, 0, 0);
    (void)testing_submit(t, t->any, NULL, 0, NULL, 0, 1);
    expect(t, 3, 1);
    expect(t, 1, 2);
    expect(t, 1, 4);
    expect(t, 0, 3);
}

/* A task that its worker cannot run goes to the next; numbers beyond the last begin anew. */
static void test_elsewhere(void)
{
    OWNED(testing_end)
    struct testing *t = testing_init(&(struct testing_machine){.cpus = 1, .gpus = 2}, "pinned", 1);
    (void)testing_submit(t, t->gpu, NULL, 0, NULL, 0, 0);
    (void)testing_submit(t, t->cpu, NULL, 0, NULL, 0, 2);
    (void)testing_submit(t, t->any, NULL, 0, NULL, 0, 5);
    (void)testing_submit(t, t->cpu, NULL, 0, NULL, 0, -7);
    expect(t, 1, 1);
    expect(t, 0, 2);
    expect(t, 2, 3);
    expect(t, 0, 4);
}

/* The policy is found by its name, but is not listed. */
static void test_not_listed(void)
{
    const struct duet_policy *pinned = duet_policy_find("pinned");
    g_assert_cmpint(duet_policy_check(pinned, NULL), ==, DUET_OK);
    g_assert_null(pinned->steal);
    for (size_t i = 0; duet_policy_at(i); i++)
        g_assert_true(duet_policy_at(i) != pinned);
}

TEST_MAIN(test_placed, test_elsewhere, test_not_listed)
