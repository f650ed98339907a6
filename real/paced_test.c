/* SPDX-License-Identifier: Apache-2.0 */
/* Paced emulation: nothing computes, and dates are those of the pace. */
#include <stdlib.h>

#include "real/testing.h"

enum { TASKS = 200 };

static void check_events(const struct duet_runtime *core, const struct testing *t)
{
    g_autofree struct duet_event *events = NULL;
    size_t count = 0, kernels = 0;
    double free_s[4] = {0}, chain_s = 0;
    g_assert_cmpint(duet_trace_events(core, &events, &count), ==, DUET_OK);
    for (size_t i = 0; i < count; i++) {
        double took_s = events[i].end_s - events[i].start_s;
        if (events[i].kind != DUET_EVENT_TASK)
            continue;
        kernels++;
        g_assert_cmpfloat(fabs(took_s - t->seconds * t->scale), <, 1e-12);
        g_assert_cmpfloat(events[i].ready_s, <=, events[i].start_s);
        g_assert_cmpfloat(free_s[events[i].worker], <=, events[i].start_s);
        free_s[events[i].worker] = events[i].end_s;
        /* every second task is one link of a chain */
        if (events[i].id % 2 == 0) {
            g_assert_cmpfloat(chain_s, <=, events[i].start_s);
            chain_s = events[i].end_s;
        }
    }
    g_assert_cmpuint(kernels, ==, TASKS);
}

static void run(unsigned cpus, unsigned gpus, double scale)
{
    struct testing t = {.cpus = cpus,
                        .gpus = gpus,
                        .record = true,
                        .scale = scale,
                        .seconds = 1e-4};
    OWNED(testing_close) struct duet_runtime *core = testing_open(&t);
    struct duet_codelet *codelet = testing_codelet(core, "count", testing_count, NULL);
    _Atomic(int) calls = 0, *counter = &calls;
    uint64_t cell = 42;
    struct duet_access access = {testing_cells(core, &cell, 1), DUET_RW};
    for (unsigned i = 0; i < TASKS; i++)
        testing_submit(core, codelet, &access, i % 2, &counter, sizeof counter);
    testing_must(core, duet_wait(core));
    g_assert_cmpint(atomic_load(&calls), ==, 0);
    check_events(core, &t);
    testing_must(core, duet_unregister(core, access.handle));
    g_assert_cmpuint(cell, ==, 42);
}

static void test_dates(void)
{
    for (unsigned cpus = 0; cpus <= 2; cpus++)
        for (unsigned gpus = cpus ? 0 : 1; gpus <= 2; gpus++)
            run(cpus, gpus, 0.1 * (1 + cpus + gpus));
}

/* Bounds are computed from the times that the machine is said to take. */
static void test_mean(void)
{
    struct testing t = {.cpus = 1, .gpus = 1, .scale = 0.5, .seconds = 1e-4};
    OWNED(testing_close) struct duet_runtime *core = testing_open(&t);
    testing_submit(core, testing_codelet(core, "count", testing_count, NULL), NULL, 0, NULL, 0);
    testing_must(core, duet_wait(core));
    struct duet_class_stats stats;
    g_assert_cmpint(duet_class_stats(core, 0, &stats), ==, DUET_OK);
    g_assert_cmpfloat(stats.expected_s[0], ==, 0.5e-4);
    g_assert_cmpfloat(stats.expected_s[1], ==, 0.5e-4);
}

/* Kernels without a time cannot run, those without code can. */
static void test_classify(void)
{
    struct testing t = {.cpus = 1, .scale = 1, .seconds = 0};
    OWNED(testing_close) struct duet_runtime *core = testing_open(&t);
    const struct duet_task_desc desc = {.codelet = testing_codelet(core, "dgemm", NULL, NULL)};
    REFUSED(core, duet_submit(core, &desc), DUET_ENOMODEL, "dgemm");
    t.seconds = 1e-6;
    g_assert_cmpint(duet_submit(core, &desc), ==, DUET_OK);
    testing_must(core, duet_wait(core));
}

static void test_lost(void)
{
    struct testing t = {.cpus = 1, .gpus = 2, .scale = 1, .seconds = 1e-5, .lose = "gpu0@3,gpu1@9"};
    OWNED(testing_close) struct duet_runtime *core = testing_open(&t);
    struct duet_codelet *codelet = testing_codelet(core, "count", testing_count, NULL);
    for (unsigned i = 0; i < TASKS; i++)
        testing_submit(core, codelet, NULL, 0, NULL, 0);
    testing_must(core, duet_wait(core));
    g_assert_cmpuint(duet_tasks_done(core), ==, TASKS);
}

TEST_MAIN(test_dates, test_mean, test_classify, test_lost)
