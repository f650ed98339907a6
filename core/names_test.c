/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of the application's own names in the records: of tasks, iterations, moments and phases. */
#include "core/testing_lost.h"

enum { MANY = 300 };

static int submit_named(struct testing *t, const char *name, uint32_t iteration)
{
    const double flops = 0;
    return duet_insert(t->core, t->any, DUET_VALUE, &flops, sizeof flops, DUET_NAME, name,
                       DUET_ITERATION, iteration, 0);
}

/* Each text is kept once, however many tasks it is given to. */
static void test_tasks(void)
{
    struct duet_event *events;
    size_t count;
    char name[16];
    struct testing *t = lost_start(&(struct testing_machine){.cpus = 1}, "eager");
    for (unsigned i = 0; i < 2 * MANY; i++) {
        (void)g_snprintf(name, sizeof name, "block %u", i % MANY);
        g_assert_cmpint(submit_named(t, name, 1 + i / MANY), ==, DUET_OK);
    }
    (void)testing_submit(t, t->any, NULL, 0, NULL, 0, 0);
    (void)go(t, NULL);
    g_assert_cmpint(duet_trace_events(t->core, &events, &count), ==, DUET_OK);
    g_assert_cmpuint(count, ==, 2 * MANY + 1);
    for (unsigned i = 0; i < 2 * MANY; i++) {
        (void)g_snprintf(name, sizeof name, "block %u", i % MANY);
        g_assert_cmpstr(duet_trace_name(t->core, events[i].name), ==, name);
        g_assert_cmpuint(events[i].iteration, ==, 1 + i / MANY);
    }
    g_assert_cmpuint(events[count - 1].name, ==, 0);
    g_assert_cmpuint(events[count - 1].iteration, ==, 0);
    g_assert_null(duet_trace_name(t->core, 0));
    g_assert_nonnull(duet_trace_name(t->core, MANY));
    g_assert_null(duet_trace_name(t->core, MANY + 1));
    free(events);
    lost_end(t, DUET_OK, "");
}

/* A failure is reported with the task's name. */
static void test_failure(void)
{
    struct testing *t = lost_start(&(struct testing_machine){.cpus = 1}, "eager");
    g_assert_cmpint(submit_named(t, "panel 3", 0), ==, DUET_OK);
    struct duet__engine_command run = expect_run(t, 0);
    testing_done(t, &run, 1e-6, DUET_ETASK);
    lost_end(t, DUET_ETASK, "task 1 (for_cpus, panel 3) failed on cpu0");
}

static void check_mark(const struct testing *t, const struct duet_trace_mark *mark,
                       const char *text, bool phase, double start_s, double end_s)
{
    g_assert_cmpstr(duet_trace_name(t->core, mark->name), ==, text);
    g_assert_cmpint(mark->phase, ==, phase);
    g_assert_cmpfloat(mark->start_s, ==, start_s);
    g_assert_cmpfloat(mark->end_s, ==, end_s);
}

/* A phase lasts until the next one or none; one that goes on, until it is asked for. */
static void test_marks(void)
{
    struct duet_trace_mark *marks;
    size_t count;
    OWNED(testing_end)
    struct testing *t = testing_init(&(struct testing_machine){.cpus = 1}, "eager", 1);
    g_assert_cmpint(duet_trace_marks(t->core, &marks, &count), ==, DUET_OK);
    g_assert_cmpuint(count, ==, 0);
    free(marks);
    t->now = 1;
    g_assert_cmpint(duet_phase(t->core, "assembly"), ==, DUET_OK);
    t->now = 2;
    g_assert_cmpint(duet_mark(t->core, "converged"), ==, DUET_OK);
    t->now = 3;
    g_assert_cmpint(duet_phase(t->core, NULL), ==, DUET_OK);
    t->now = 4;
    g_assert_cmpint(duet_phase(t->core, "assembly"), ==, DUET_OK);
    t->now = 5;
    g_assert_cmpint(duet_trace_marks(t->core, &marks, &count), ==, DUET_OK);
    g_assert_cmpuint(count, ==, 3);
    check_mark(t, &marks[0], "assembly", true, 1, 3);
    check_mark(t, &marks[1], "converged", false, 2, 2);
    check_mark(t, &marks[2], "assembly", true, 4, 5);
    free(marks);
    duet_stats_reset(t->core);
    t->now = 6;
    for (unsigned i = 0; i < MANY; i++)
        g_assert_cmpint(duet_mark(t->core, "again"), ==, DUET_OK);
    g_assert_cmpint(duet_trace_marks(t->core, &marks, &count), ==, DUET_OK);
    g_assert_cmpuint(count, ==, MANY + 1);
    check_mark(t, &marks[0], "assembly", true, 5, 6);
    check_mark(t, &marks[MANY], "again", false, 6, 6);
    free(marks);
    REFUSED(t->core, duet_mark(t->core, NULL), DUET_EINVAL, "needs a text");
}

TEST_MAIN(test_tasks, test_failure, test_marks)
