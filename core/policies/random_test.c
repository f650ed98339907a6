/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of random and w-rand: who gets how many tasks. Two cores, two devices, ten times as fast.
 */
#include <math.h>

#include "core/testing.h"

enum { MANY = 4000 };

/* Counts the tasks of one codelet that each worker gets; parameters NULL: as they are initially. */
static void place(const char *name, const double *parameters, bool gpus_only, unsigned counts[4])
{
    OWNED(testing_end)
    struct testing *t = testing_init(&(struct testing_machine){.cpus = 2, .gpus = 2}, name, 1);
    for (unsigned i = 0; parameters && i < 2; i++)
        t->core->parameters[i] = parameters[i];
    for (unsigned i = 0; i < MANY; i++)
        (void)testing_submit(t, gpus_only ? t->gpu : t->any, NULL, 0, NULL, 0, 0);
    struct duet_view view = testing_view(t, DUET_SUBMITTER);
    for (unsigned w = 0; w < 4; w++)
        counts[w] = (unsigned)duet_list_length(duet_view_list(&view, w));
    g_assert_null(t->core->policy->steal);
}

/* `share` of all tasks, to within five deviations of a fair draw. */
static void expect(unsigned count, double share)
{
    double mean = MANY * share, deviation = sqrt(mean * (1 - share));
    g_assert_cmpfloat(fabs(count - mean), <=, 5 * deviation);
}

static void test_random(void)
{
    unsigned counts[4];
    place("random", NULL, false, counts);
    for (unsigned w = 0; w < 4; w++)
        expect(counts[w], 0.25);
    place("random", NULL, true, counts);
    expect(counts[2], 0.5);
    g_assert_cmpuint(counts[0] + counts[1], ==, 0);
}

/* Shares by speeds: 1, 1, 10, 10. */
static void test_speeds(void)
{
    unsigned counts[4];
    place("w-rand", NULL, false, counts);
    expect(counts[0], 1.0 / 22);
    expect(counts[1], 1.0 / 22);
    expect(counts[2], 10.0 / 22);
    expect(counts[3], 10.0 / 22);
}

/* Shares by weights: 1, 1, 3, 3. */
static void test_weights(void)
{
    unsigned counts[4];
    place("w-rand", (const double[]){1, 3}, false, counts);
    expect(counts[0], 1.0 / 8);
    expect(counts[3], 3.0 / 8);
}

TEST_MAIN(test_random, test_speeds, test_weights)
