/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests of the costs: what has to be there and what cannot, on machines of several kinds. Times
 * are only held to what they are by definition; the machine may be busy.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <glib.h>

#include "calibrate/costs.h"
#include "calibrate/lab.h"

static struct duet_config defaults(int cpus, int gpus)
{
    struct duet_config config;
    duet_config_init(&config);
    config.no_bind = true;
    config.cpus = cpus;
    config.gpus = gpus;
    return config;
}

static void measure(const struct duet_config *config, struct duet__measured *costs)
{
    struct duet_message message = {""};
    if (duet__costs_measure(config, 0.1, NULL, NULL, costs, &message))
        g_error("%s", message.text);
    for (unsigned i = 0; i < DUET__COSTS; i++) {
        const struct duet__measured *cost = &costs[i];
        g_assert_nonnull(cost->name);
        g_assert_nonnull(cost->description);
        g_assert_null(strchr(cost->description, '\n'));
        g_assert_true((cost->samples == 0) == (*cost->why != '\0'));
        g_assert_true(isfinite(cost->median_s) && isfinite(cost->mean_s));
        g_assert_cmpfloat(cost->deviation_s, >=, 0);
        g_assert_cmpfloat(cost->low_s, <=, cost->median_s);
        g_assert_cmpfloat(cost->median_s, <=, cost->high_s);
        if (cost->samples)
            g_test_message("%s: %g s (%g to %g)", cost->name, cost->median_s, cost->low_s,
                           cost->high_s);
        else
            g_test_message("%s: %s", cost->name, cost->why);
    }
}

static void assert_measured(const struct duet__measured *costs, unsigned first, unsigned last)
{
    for (unsigned i = first; i <= last; i++) {
        g_assert_cmpuint(costs[i].samples, >, 0);
        if (i != DUET__COST_PUSH) /* a difference */
            g_assert_cmpfloat(costs[i].median_s, >, 0);
    }
}

/* With one worker and no device the tasks' own costs are all that there is. */
static void test_alone(void)
{
    struct duet_config config = defaults(1, 0);
    struct duet__measured costs[DUET__COSTS];
    measure(&config, costs);
    assert_measured(costs, DUET__COST_SUBMIT, DUET__COST_POP);
    assert_measured(costs, DUET__COST_TASK, DUET__COST_TASK);
    for (unsigned i = DUET__COST_WAKE; i < DUET__COSTS; i++)
        g_assert_cmpuint(costs[i].samples, ==, 0);
    g_assert_cmpuint(costs[DUET__COST_STEAL].samples, ==, 0);
    g_assert_nonnull(strstr(costs[DUET__COST_STEAL].why, "one CPU worker"));
    g_assert_nonnull(strstr(costs[DUET__COST_WAKE].why, "one CPU worker"));
    g_assert_nonnull(strstr(costs[DUET__COST_EVENT].why, "no device"));
    /* a task in a chain is submitted, run and made ready: the mean is a sum */
    double sum_s = costs[DUET__COST_SUBMIT].mean_s + costs[DUET__COST_PUSH].mean_s +
                   costs[DUET__COST_POP].mean_s;
    g_assert_cmpfloat(fabs(sum_s - costs[DUET__COST_TASK].mean_s), <, 1e-6 * sum_s);
}

static void test_device(const char *emulate)
{
    struct duet_config config = defaults(2, 1);
    struct duet__measured costs[DUET__COSTS];
    config.emulate = emulate;
    measure(&config, costs);
    assert_measured(costs, DUET__COST_SUBMIT, DUET__COST_POP);
    assert_measured(costs, DUET__COST_WAKE, DUET__COST_WAKE);
    assert_measured(costs, DUET__COST_KERNEL_LAUNCH, DUET__COST_EVENT);
    g_assert_cmpuint(costs[DUET__COST_PIN].samples, ==, 0); /* emulated: nothing to page-lock */
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
        costs[i] = (struct duet__measured){.samples = 1, .median_s = 1 + i};
    costs[DUET__COST_PUSH].median_s = -1; /* noise: is nothing */
    costs[DUET__COST_STEAL].samples = 0;  /* not measured */
    duet__costs_fill(costs, &filled);
    g_assert_cmpfloat(filled.submit_s, ==, 1 + DUET__COST_SUBMIT);
    g_assert_cmpfloat(filled.push_s, ==, 0);
    g_assert_cmpfloat(filled.pop_s, ==, 1 + DUET__COST_POP);
    g_assert_cmpfloat(filled.steal_s, ==, 0);
    costs[DUET__COST_STEAL].samples = 1; /* beyond a pop, which is the one before it */
    duet__costs_fill(costs, &filled);
    g_assert_cmpfloat(filled.steal_s, ==, DUET__COST_STEAL - DUET__COST_POP);
    costs[DUET__COST_STEAL].median_s = costs[DUET__COST_POP].median_s / 2; /* noise again */
    duet__costs_fill(costs, &filled);
    g_assert_cmpfloat(filled.steal_s, ==, 0);
    g_assert_cmpfloat(filled.kernel_launch_s, ==, 1 + DUET__COST_KERNEL_LAUNCH);
    g_assert_cmpfloat(filled.copy_launch_s, ==, 1 + DUET__COST_COPY_LAUNCH);
    g_assert_cmpfloat(filled.event_s, ==, 1 + DUET__COST_EVENT);
    g_assert_cmpfloat(filled.wake_s, ==, 1 + DUET__COST_WAKE);
    g_assert_cmpfloat(filled.spin_s, ==, 1 + DUET__COST_SPIN);
}

/* The measuring thread leaves the hardware thread that it is on, if it may. */
static void test_aside(void)
{
    int processor = duet__lab_processor();
    void *before = duet__lab_aside(processor);
    if (before)
        g_assert_cmpint(duet__lab_processor(), !=, processor);
    duet__lab_back(before);
    before = duet__lab_aside(processor); /* it may be there again */
    duet__lab_back(before);
    g_assert_null(duet__lab_aside(-1));
    duet__lab_back(NULL);
}

static bool stop_after(void *context)
{
    unsigned *left = context;
    return (*left)-- == 0;
}

/* Wherever it is interrupted, it ends at once and leaves nothing (the sanitizers look). */
static void test_stop(void)
{
    struct duet_config config = defaults(2, 1);
    unsigned canceled = 0;
    int error;
    config.emulate = "free";
    do {
        struct duet__measured costs[DUET__COSTS];
        struct duet_message message = {""};
        unsigned left = 5 * canceled;
        error = duet__costs_measure(&config, 0, stop_after, &left, costs, &message);
        if (error) {
            g_assert_cmpint(error, ==, DUET_ECANCELED);
            g_assert_cmpstr(message.text, ==, "the measurement was interrupted");
            canceled++;
        }
    } while (error);
    g_assert_cmpuint(canceled, >=, 4); /* it is asked more often than at the beginning of parts */
}

static void test_refused(void)
{
    struct duet_config config = defaults(1, 1);
    struct duet__measured costs[DUET__COSTS];
    struct duet_message message = {""};
    config.emulate = "no-such-platform";
    int error = duet__costs_measure(&config, 0, NULL, NULL, costs, &message);
    g_assert_cmpint(error, ==, DUET_ENOTFOUND);
    g_assert_nonnull(strstr(message.text, "no-such-platform"));
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/costs/alone", test_alone);
    g_test_add_func("/costs/free", test_free);
    g_test_add_func("/costs/paced", test_paced);
    g_test_add_func("/costs/fill", test_fill);
    g_test_add_func("/costs/aside", test_aside);
    g_test_add_func("/costs/stop", test_stop);
    g_test_add_func("/costs/refused", test_refused);
    return g_test_run();
}
