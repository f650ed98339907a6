/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of the records of which data tasks have accessed. */
#include <duet/trace.h>

#include "core/testing_lost.h"

static const struct testing_machine two = {.cpus = 2};

static void assert_access(const struct duet_trace_access *access, uint64_t task, unsigned index,
                          uint64_t handle, uint64_t bytes, bool reads, bool writes)
{
    g_assert_cmpuint(access->task, ==, task);
    g_assert_cmpuint(access->index, ==, index);
    g_assert_cmpuint(access->handle, ==, handle);
    g_assert_cmpuint(access->bytes, ==, bytes);
    g_assert_true(access->reads == reads && access->writes == writes);
}

/* In order of tasks, whichever worker ran them and whenever they ended; anew after a reset. */
static void test_order(void)
{
    struct duet_trace_access *accesses;
    size_t count;
    OWNED(testing_end) struct testing *t = testing_init(&two, "eager", 0);
    struct duet_handle *a = testing_handle(t, 64), *b = testing_handle(t, 4096);
    uint64_t first = testing_submit(t, t->cpu, b, DUET_R, a, DUET_RW, 0);
    for (unsigned i = 0; i < 20; i++)
        (void)testing_submit(t, t->cpu, b, DUET_R, NULL, 0, 0);
    uint64_t last = testing_submit(t, t->cpu, b, DUET_W, NULL, 0, 0);
    g_assert_cmpint(duet_wait(t->core), ==, DUET_OK);
    g_assert_cmpint(duet_trace_accesses(t->core, &accesses, &count), ==, DUET_OK);
    g_assert_cmpuint(count, ==, 23);
    assert_access(&accesses[0], first, 0, 2, 4096, true, false);
    assert_access(&accesses[1], first, 1, 1, 64, true, true);
    for (unsigned i = 0; i < 20; i++)
        assert_access(&accesses[2 + i], first + 1 + i, 0, 2, 4096, true, false);
    assert_access(&accesses[22], last, 0, 2, 4096, false, true);
    free(accesses);
    duet_stats_reset(t->core);
    g_assert_cmpint(duet_trace_accesses(t->core, &accesses, &count), ==, DUET_OK);
    g_assert_cmpuint(count, ==, 0);
    free(accesses);
}

/* Parts say what they are of; and events which architectures could have run them. */
static void test_parts(void)
{
    struct duet_trace_access *accesses;
    g_autofree struct duet_event *events = NULL;
    struct duet_handle *parts[2];
    size_t count;
    OWNED(testing_end) struct testing *t = testing_init(&two, "eager", 0);
    struct duet_handle *whole = testing_handle(t, 64);
    (void)testing_submit(t, t->cpu, whole, DUET_RW, NULL, 0, 0);
    g_assert_cmpint(duet_cut_blocks(t->core, whole, 2, 1, parts), ==, DUET_OK);
    (void)testing_submit(t, t->cpu, parts[0], DUET_R, parts[1], DUET_RW, 0);
    g_assert_cmpint(duet_wait(t->core), ==, DUET_OK);
    g_assert_cmpint(duet_trace_accesses(t->core, &accesses, &count), ==, DUET_OK);
    g_assert_cmpuint(count, ==, 3);
    g_assert_true(accesses[0].whole == 0 && accesses[0].cut == 0);
    g_assert_cmpuint(accesses[1].whole, ==, accesses[0].handle);
    g_assert_cmpuint(accesses[2].whole, ==, accesses[0].handle);
    g_assert_cmpuint(accesses[1].cut, ==, accesses[1].handle);
    g_assert_cmpuint(accesses[2].cut, ==, accesses[1].handle);
    free(accesses);
    g_assert_cmpint(duet_trace_events(t->core, &events, &count), ==, DUET_OK);
    g_assert_cmpuint(count, ==, 2);
    g_assert_cmpuint(events[0].where, ==, 1);
}

/* Modes as they were submitted, contributions, parts of parts, and what comes after a task. */
static void test_modes(void)
{
    struct duet_trace_access *accesses;
    g_autofree struct duet_event *events = NULL;
    struct duet_handle *rows[2], *parts[2];
    struct duet_ref *ref;
    size_t count, own = 0;
    OWNED(testing_end) struct testing *t = testing_init(&two, "eager", 0);
    struct duet_handle *whole = testing_handle(t, 64), *sum = testing_handle(t, 8);
    g_assert_cmpint(duet_cut_blocks(t->core, whole, 2, 1, rows), ==, DUET_OK);
    g_assert_cmpint(duet_cut_blocks(t->core, rows[1], 2, 1, parts), ==, DUET_OK);
    g_assert_cmpint(duet_set_reduction(t->core, sum, t->cpu, t->cpu), ==, DUET_OK);
    const struct duet_access used[] = {{parts[0], DUET_COMMUTE},
                                       {sum, DUET_REDUCE},
                                       {whole, DUET_SCRATCH}};
    const struct duet_task_extra gives = {.ref = &ref}, comes = {.after = &ref, .after_count = 1};
    g_assert_cmpint(duet_submit(t->core,
                                &(struct duet_task_desc){.codelet = t->cpu, .extra = &gives}),
                    ==, DUET_OK);
    g_assert_cmpint(duet_submit(t->core, &(struct duet_task_desc){.codelet = t->cpu,
                                                                  .accesses = used,
                                                                  .access_count = 3,
                                                                  .extra = &comes}),
                    ==, DUET_OK);
    (void)testing_submit(t, t->cpu, sum, DUET_R, NULL, 0, 0);
    duet_ref_free(ref);
    g_assert_cmpint(duet_wait(t->core), ==, DUET_OK);
    g_assert_cmpint(duet_trace_accesses(t->core, &accesses, &count), ==, DUET_OK);
    g_assert_cmpuint(count, >, 5);
    g_assert_cmpuint(accesses[0].mode, ==, DUET_COMMUTE);
    g_assert_cmpuint(accesses[0].whole, ==, accesses[3].handle);
    g_assert_true(accesses[1].mode == DUET_REDUCE && accesses[1].temporary);
    g_assert_cmpuint(accesses[1].whole, ==, 2);
    g_assert_true(accesses[2].mode == DUET_SCRATCH && accesses[2].bytes == 64);
    g_assert_true(!accesses[3].mode && accesses[3].whole == 1 && !accesses[3].after);
    g_assert_true(accesses[4].after == accesses[4].task - 1 && !accesses[4].handle);
    free(accesses);
    g_assert_cmpint(duet_trace_events(t->core, &events, &count), ==, DUET_OK);
    for (size_t i = 0; i < count; i++)
        own += events[i].own;
    g_assert_cmpuint(own, ==, count - 3);
    g_assert_cmpuint(own, ==, 2);
}

/* Registered data is counted; blocks of expansions would be counted twice. */
static void test_registered(void)
{
    OWNED(testing_end) struct testing *t = testing_init(&two, "eager", 0);
    struct duet_handle *a = testing_handle(t, 64);
    (void)testing_handle(t, 4096);
    g_assert_cmpuint(duet__registered_bytes(t->core), ==, 64 + 4096);
    g_assert_cmpuint(duet__handle_number(a), ==, 1);
    g_assert_cmpuint(duet__numbered(t->core), ==, 0);
    (void)testing_submit(t, t->cpu, a, DUET_R, NULL, 0, 0);
    g_assert_cmpuint(duet__numbered(t->core), ==, 1);
    g_assert_cmpint(duet_wait(t->core), ==, DUET_OK);
    g_assert_cmpint(duet_unregister(t->core, a), ==, DUET_OK);
    g_assert_cmpuint(duet__registered_bytes(t->core), ==, 4096);
}

TEST_MAIN(test_order, test_parts, test_modes, test_registered)
