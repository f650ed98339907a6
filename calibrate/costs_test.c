/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of the costs: which are measured and which cannot be, on several kinds of machines. Times
 * are only held to their definitions, as the machine may be busy. */
#include <math.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include <glib.h>

#include "calibrate/testing.h"
#include "base/clock.h"
#include "runtime/open.h"

static void measure(const struct duet_config *config, struct duet__measured *costs)
{
    const struct duet__measurement given = {.config = config,
                                            .end_s = duet__clock_s() + 0.1,
                                            .message = hear()};
    cpu_set_t before, after;
    g_assert_cmpint(sched_getaffinity(0, sizeof before, &before), ==, 0);
    if (duet__costs_measure(&given, costs))
        g_error("%s", heard());
    /* the measuring thread may use the core again that it had to leave */
    g_assert_cmpint(sched_getaffinity(0, sizeof after, &after), ==, 0);
    g_assert_true(CPU_EQUAL(&before, &after));
    for (unsigned i = 0; i < DUET__COSTS; i++) {
        const struct duet__measured *cost = &costs[i];
        g_assert_nonnull(cost->name);
        g_assert_nonnull(cost->description);
        g_assert_null(strchr(cost->description, '\n'));
        const struct duet__summary *times = &cost->times;
        g_assert_true((times->count == 0) == (cost->why != NULL));
        g_assert_true(isfinite(times->median) && isfinite(times->mean));
        g_assert_cmpfloat(times->deviation, >=, 0);
        g_assert_cmpfloat(times->quartile1, <=, times->median);
        g_assert_cmpfloat(times->median, <=, times->quartile3);
        if (times->count)
            g_test_message("%s: %g s (%g to %g)", cost->name, times->median, times->quartile1,
                           times->quartile3);
        else
            g_test_message("%s: %s", cost->name, cost->why);
    }
}

static void assert_measured(const struct duet__measured *costs, unsigned first, unsigned last)
{
    for (unsigned i = first; i <= last; i++) {
        g_assert_cmpuint(costs[i].times.count, >, 0);
        if (i != DUET__COST_PUSH) /* a difference may be anything */
            g_assert_cmpfloat(costs[i].times.median, >, 0);
    }
}

/* With one worker and no device only the tasks' own costs are measured. */
static void test_alone(void)
{
    struct duet_config config = testing_part(NULL, 1, 0);
    struct duet__measured costs[DUET__COSTS];
    measure(&config, costs);
    assert_measured(costs, DUET__COST_SUBMIT, DUET__COST_POP);
    assert_measured(costs, DUET__COST_TASK, DUET__COST_TASK);
    for (unsigned i = DUET__COST_WAKE; i < DUET__COSTS; i++)
        g_assert_cmpuint(costs[i].times.count, ==, 0);
    g_assert_cmpuint(costs[DUET__COST_STEAL].times.count, ==, 0);
    g_assert_nonnull(strstr(costs[DUET__COST_STEAL].why, "one CPU worker"));
    g_assert_nonnull(strstr(costs[DUET__COST_WAKE].why, "one CPU worker"));
    g_assert_nonnull(strstr(costs[DUET__COST_EVENT].why, "no device"));
    /* a task in a chain is submitted, run and made ready: the mean is a sum */
    double sum_s = costs[DUET__COST_SUBMIT].times.mean + costs[DUET__COST_PUSH].times.mean +
                   costs[DUET__COST_POP].times.mean;
    g_assert_cmpfloat(fabs(sum_s - costs[DUET__COST_TASK].times.mean), <, 1e-6 * sum_s);
}

static void test_device(const char *emulate)
{
    struct duet_config config = testing_part(emulate, 2, 1);
    struct duet__measured costs[DUET__COSTS];
    measure(&config, costs);
    assert_measured(costs, DUET__COST_SUBMIT, DUET__COST_POP);
    assert_measured(costs, DUET__COST_WAKE, DUET__COST_WAKE);
    g_assert_true((costs[DUET__COST_SPIN].times.median > 0) == (duet__usable_cores() > 1));
    assert_measured(costs, DUET__COST_KERNEL_LAUNCH, DUET__COST_EVENT);
}

static void test_free(void)
{
    test_device("free");
}

static void test_paced(void)
{
    test_device("idgraf");
}

static void test_fill(void)
{
    struct duet__measured costs[DUET__COSTS];
    struct duet_costs filled;
    for (unsigned i = 0; i < DUET__COSTS; i++)
        costs[i] = (struct duet__measured){.times = {.count = 1, .median = 1 + i}};
    costs[DUET__COST_PUSH].times.median = -1; /* noise: counts as 0 */
    costs[DUET__COST_STEAL].times.count = 0;  /* not measured */
    duet__costs_fill(costs, &filled);
    g_assert_cmpfloat(filled.submit_s, ==, 1 + DUET__COST_SUBMIT);
    g_assert_cmpfloat(filled.push_s, ==, 0);
    g_assert_cmpfloat(filled.pop_s, ==, 1 + DUET__COST_POP);
    g_assert_cmpfloat(filled.steal_s, ==, 0);
    costs[DUET__COST_STEAL].times.count = 1; /* above a pop: the difference is charged */
    duet__costs_fill(costs, &filled);
    g_assert_cmpfloat(filled.steal_s, ==, DUET__COST_STEAL - DUET__COST_POP);
    costs[DUET__COST_STEAL].times.median = costs[DUET__COST_POP].times.median / 2; /* noise again:
                                                                                      counts as 0 */
    duet__costs_fill(costs, &filled);
    g_assert_cmpfloat(filled.steal_s, ==, 0);
    g_assert_cmpfloat(filled.kernel_launch_s, ==, 1 + DUET__COST_KERNEL_LAUNCH);
    g_assert_cmpfloat(filled.copy_launch_s, ==, 1 + DUET__COST_COPY_LAUNCH);
    g_assert_cmpfloat(filled.event_s, ==, 1 + DUET__COST_EVENT);
    g_assert_cmpfloat(filled.wake_s, ==, 1 + DUET__COST_WAKE);
    g_assert_cmpfloat(filled.spin_s, ==, 1 + DUET__COST_SPIN);
}

/* A measurement that is interrupted anywhere ends at once and leaves nothing (the sanitizers
 * look). */
static void test_stop(void)
{
    struct duet_config config = testing_part("free", 2, 1);
    unsigned canceled = 0;
    int error;
    do {
        struct duet__measured costs[DUET__COSTS];
        unsigned left = 5 * canceled;
        error = duet__costs_measure(&(struct duet__measurement){.config = &config,
                                                                .stop = testing_stop_after,
                                                                .context = &left,
                                                                .message = hear()},
                                    costs);
        if (error) {
            g_assert_cmpint(error, ==, DUET_ECANCELED);
            g_assert_cmpstr(heard(), ==, "the measurement was interrupted");
            canceled++;
        }
    } while (error);
    g_assert_cmpuint(canceled, >=, 4); /* `stop` is called not only when a part begins */
}

static void test_refused(void)
{
    struct duet_config config = testing_part("no-such-platform", 1, 1);
    struct duet__measured costs[DUET__COSTS];
    int error =
        duet__costs_measure(&(struct duet__measurement){.config = &config, .message = hear()},
                            costs);
    g_assert_cmpint(error, ==, DUET_ENOTFOUND);
    SAYS("no-such-platform");
}

TEST_MAIN(test_alone, test_free, test_paced, test_fill, test_stop, test_refused)
