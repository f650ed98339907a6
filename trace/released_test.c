/* SPDX-License-Identifier: Apache-2.0 */
/* Tests what kernels and copies of recordings made by hand waited for. */
#include "trace/recording.h"

#include "trace/testing_account.h"

static void check(struct testing_recording *testing, bool all, const uint32_t *expected)
{
    g_autofree uint32_t *arrows = NULL;
    testing_release(testing);
    arrows = duet__arrows_make(&testing->recording, all);

    for (size_t i = 0; i < testing->recording.event_count; i++) {
        g_test_message("event %zu%s", i + 1, all ? ", all arrows" : "");
        g_assert_cmpuint(arrows[i], ==, expected[i]);
    }
}

/* Along tasks and copies, over a task that comes explicitly after another, and not from what
   failed; copies that nobody waited for, and what came before the worker was free, have none. */
static void test_chain(void)
{
    OWNED(testing_fini) struct testing_recording testing;
    struct duet_trace_access accesses[] = {
        {.task = 1, .handle = 1, .writes = true},
        {.task = 5, .handle = 1, .reads = true},
        {.task = 5, .index = 1, .handle = 2, .reads = true, .writes = true},
        {.task = 6, .after = 1},
        {.task = 7, .handle = 2, .reads = true},
        {.task = 8, .after = 7},
    };
    static const uint32_t all[] = {0, 0, 1, 3, 4, 1, 5, 7, 0},
                          waited[] = {0, 0, 1, 3, 4, 1, 0, 7, 0};
    testing_init(&testing, 20);
    testing_task(&testing, 1, 0, 0, 0, 3);    /* 1 */
    testing_copy(&testing, 2, 0, 2, 0, 1, 2); /* 2: in time */
    testing_copy(&testing, 1, 1, 0, 3, 3, 4); /* 3 */
    testing_copy(&testing, 1, 0, 2, 4, 4, 5); /* 4 */
    testing_task(&testing, 2, 0, 3, 5, 7);    /* 5 */
    testing_task(&testing, 0, 0, 3, 6, 9);    /* 6 */
    testing_task(&testing, 0, 0, 7, 9, 11);   /* 7: after 5, and 6 on its worker */
    testing_task(&testing, 1, 0, 7, 11, 12);  /* 8 */
    testing_copy(&testing, 1, 1, 0, 12, 12, 13)->failed = true; /* 9 */
    testing.recording.accesses = accesses;
    testing.recording.access_count = G_N_ELEMENTS(accesses);
    check(&testing, true, all);
    check(&testing, false, waited);
}

/* Kernels of no length at one date come after one another, never in a circle. */
static void test_one_date(void)
{
    enum { TASKS = 5 };
    OWNED(testing_fini) struct testing_recording testing;
    struct duet_trace_access accesses[TASKS];
    testing_init(&testing, 1);
    for (unsigned i = 0; i < TASKS; i++) {
        testing_task(&testing, (int)i % 3, 0, 1, 1, 1);
        accesses[i] = (struct duet_trace_access){.task = i + 1, .handle = 3, .writes = true};
    }
    testing.recording.accesses = accesses;
    testing.recording.access_count = TASKS;
    check(&testing, true, (const uint32_t[TASKS]){0, 1, 2, 3, 4});
}

TEST_MAIN(test_chain, test_one_date)
