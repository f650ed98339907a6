/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of counters and records: what failed, what is counted anew. */
#include <duet/trace.h>

#include "core/testing_lost.h"

enum { CPU = 0, GPU = 1, BLOCK = SLAB_ALIGN };

static const struct testing_machine one = {.cpus = 1, .gpus = 1, .capacity_bytes = 2 * BLOCK};

/* Returns the number of records of that kind, and of those that failed. */
static unsigned records(struct testing *t, enum duet_event_kind kind, unsigned *failed)
{
    struct duet_event *events;
    size_t count;
    unsigned found = 0;
    *failed = 0;
    g_assert_cmpint(duet_trace_events(t->core, &events, &count), ==, DUET_OK);
    for (size_t i = 0; i < count; i++) {
        found += events[i].kind == kind;
        *failed += events[i].kind == kind && events[i].failed;
    }
    free(events);
    return found;
}

/* Returns the most used memory of the device: copies and kernels there take some of it. */
static uint64_t most_used(struct testing *t)
{
    struct duet_event *events;
    size_t count;
    uint64_t most = 0;
    g_assert_cmpint(duet_trace_events(t->core, &events, &count), ==, DUET_OK);
    for (size_t i = 0; i < count; i++) {
        bool host = !events[i].source && !events[i].destination;
        g_assert_true(host ? !events[i].used_bytes : events[i].used_bytes >= BLOCK);
        most = MAX(most, events[i].used_bytes);
    }
    free(events);
    return most;
}

/* Copies that did not arrive and kernels that did not end well are recorded, not counted. */
static void test_failed(void)
{
    struct duet_stats stats;
    unsigned failed;
    struct testing *t = lost_start(&one, "eager");
    struct duet_handle *a = testing_handle(t, BLOCK), *b = testing_handle(t, BLOCK);
    submit_to(t, t->any, "cuda", a, DUET_R, b, DUET_RW);
    submit_to(t, t->any, NULL, NULL, 0, NULL, 0);
    struct duet__engine_command good = expect_copy(t, GPU, a, 0, 1);
    struct duet__engine_command bad = expect_copy(t, GPU, b, 0, 1);
    testing_done(t, &good, 1e-6, DUET_OK);
    testing_done(t, &bad, 1e-6, DUET_EIO);
    (void)go(t, NULL);
    duet_stats(t->core, &stats);
    g_assert_cmpuint(stats.copies_to_device, ==, 1);
    g_assert_cmpuint(stats.bytes_to_device, ==, BLOCK);
    g_assert_cmpuint(stats.tasks, ==, 0);
    g_assert_cmpuint(records(t, DUET_EVENT_COPY, &failed), ==, 2);
    g_assert_cmpuint(failed, ==, 1);
    g_assert_cmpuint(records(t, DUET_EVENT_TASK, &failed), ==, 2);
    g_assert_cmpuint(failed, ==, 2);
    lost_end(t, DUET_EIO, "copy of handle 2 from host to gpu0 failed");
}

/* Work on both workers, with copies both ways, an eviction, and a chain of two tasks. */
static void some_work(struct testing *t, struct duet_handle **h)
{
    for (unsigned i = 0; i < 3; i++)
        (void)testing_submit(t, t->gpu, h[i], DUET_RW, NULL, 0, 0);
    (void)testing_submit(t, t->cpu, h[0], DUET_RW, NULL, 0, 0);
    (void)testing_submit(t, t->cpu, h[0], DUET_RW, NULL, 0, 0);
    g_assert_cmpint(duet_wait(t->core), ==, DUET_OK);
}

/* A second measurement counts what comes after its beginning, and only that. */
static void test_reset(void)
{
    struct duet_stats first, nothing, second;
    struct duet_class_stats classes;
    struct duet_handle *h[3];
    unsigned failed;
    struct testing *t = lost_start(&one, "eager");
    for (unsigned i = 0; i < 3; i++)
        h[i] = testing_handle(t, BLOCK);
    some_work(t, h);
    duet_stats(t->core, &first);
    g_assert_true(first.tasks == 5 && first.evictions > 0 && first.copies_to_host > 0);
    g_assert_true(first.critical_path_s > 0 && first.busy_s > 0 && first.flops > 0);
    g_assert_cmpfloat_with_epsilon(first.busy_by_arch_s[0] + first.busy_by_arch_s[1], first.busy_s,
                                   1e-15);
    g_assert_cmpfloat_with_epsilon(first.busy_by_arch_s[1], duet_worker_stats(t->core, GPU).busy_s,
                                   1e-15);
    g_assert_cmpuint(most_used(t), ==, 2 * BLOCK);
    duet_stats_reset(t->core);
    duet_stats(t->core, &nothing);
    const struct duet_stats zero = {0};
    g_assert_cmpmem(&nothing, sizeof nothing, &zero, sizeof zero);
    g_assert_cmpuint(records(t, DUET_EVENT_TASK, &failed), ==, 0);
    for (size_t i = 0; i < duet_class_count(t->core); i++) {
        g_assert_cmpint(duet_class_stats(t->core, i, &classes), ==, DUET_OK);
        g_assert_cmpuint(classes.tasks, ==, 0);
    }
    g_assert_cmpuint(duet_tasks_done(t->core), ==, 5); /* since the opening */
    double begin = t->now;
    some_work(t, h);
    duet_stats(t->core, &second);
    g_assert_cmpuint(second.tasks, ==, 5);
    g_assert_cmpfloat(second.first_submit_s, ==, begin);
    g_assert_cmpfloat(second.last_end_s, ==, t->now);
    g_assert_cmpfloat_with_epsilon(second.makespan_s, t->now - begin, 1e-15);
    g_assert_cmpfloat_with_epsilon(second.busy_s, first.busy_s, 1e-15);
    g_assert_cmpuint(records(t, DUET_EVENT_TASK, &failed), ==, 5);
    g_assert_cmpuint(duet_worker_stats(t->core, GPU).tasks, ==, 3);
    lost_end(t, DUET_OK, "");
}

/* The application prepares its data: a run begins with its first task, and without one lasts 0 s.
 */
static void test_acquisitions(void)
{
    struct duet_stats stats;
    struct testing *t = lost_start(&one, "eager");
    struct duet_handle *h = testing_handle(t, BLOCK);
    g_assert_cmpint(duet_acquire(t->core, h, DUET_W), ==, DUET_OK);
    t->now += 5;
    g_assert_cmpint(duet_release(t->core, h), ==, DUET_OK);
    duet_stats(t->core, &stats);
    g_assert_cmpfloat(stats.first_submit_s, ==, 0);
    g_assert_cmpfloat(stats.makespan_s, ==, 0);
    double begin = t->now += 5;
    (void)testing_submit(t, t->cpu, h, DUET_RW, NULL, 0, 0);
    g_assert_cmpint(duet_wait(t->core), ==, DUET_OK);
    duet_stats(t->core, &stats);
    g_assert_cmpfloat(stats.first_submit_s, ==, begin);
    g_assert_cmpfloat(stats.makespan_s, ==, t->now - begin);
    lost_end(t, DUET_OK, "");
}

/* The critical path of the second is that of its own tasks: not longer for what was before. */
static void test_critical_path(void)
{
    struct duet_stats stats;
    struct testing *t = lost_start(&one, "eager");
    struct duet_handle *h = testing_handle(t, BLOCK);
    for (unsigned i = 0; i < 10; i++)
        (void)testing_submit(t, t->cpu, h, DUET_RW, NULL, 0, 0);
    g_assert_cmpint(duet_wait(t->core), ==, DUET_OK);
    duet_stats(t->core, &stats);
    g_assert_cmpfloat(stats.critical_path_s, >, 0);
    duet_stats_reset(t->core);
    (void)testing_submit(t, t->cpu, h, DUET_RW, NULL, 0, 0);
    g_assert_cmpint(duet_wait(t->core), ==, DUET_OK);
    double ten = stats.critical_path_s;
    duet_stats(t->core, &stats);
    g_assert_cmpfloat(stats.critical_path_s, >, 0);
    g_assert_cmpfloat(stats.critical_path_s, <, ten / 2);
    lost_end(t, DUET_OK, "");
}

TEST_MAIN(test_failed, test_reset, test_acquisitions, test_critical_path)
