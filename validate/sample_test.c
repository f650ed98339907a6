/* SPDX-License-Identifier: Apache-2.0 */
/* Samples of runs in rounds: the runs left out of them, and their conclusions. */
#include "validate/experiment.h"

#include <math.h>

#include "trace/testing_account.h"

/* Puts a run of a single task of so many seconds. */
static void put(struct duet__sample *sample, double makespan_s)
{
    struct testing_recording testing;
    struct duet__run run = {.stats = {.makespan_s = makespan_s}};
    testing_init(&testing, makespan_s);
    testing_task(&testing, 0, 0, 0, 0, makespan_s);
    run.recording = testing.recording;
    run.recording.machine = g_memdup2(&testing.machine, sizeof(testing.machine));
    run.recording.events =
        g_memdup2(testing.events, testing.recording.event_count * sizeof(*testing.events));
    run.recording.kernels = g_new0(const char *, 3);
    for (size_t i = 0; i < 2; i++)
        run.recording.kernels[i] = g_strdup(testing_kernels[i]);
    g_assert_cmpint(duet__sample_put(sample, &run, NULL), ==, 0);
}

static void disturbed(void)
{
    OWNED(duet__sample_fini) struct duet__sample sample;
    struct duet__side side;
    duet__sample_init(&sample, true);
    duet__sample_begin(&sample);
    put(&sample, 9);
    duet__sample_disturb(&sample);
    duet__sample_begin(&sample);
    put(&sample, 1);
    put(&sample, 2);
    duet__sample_begin(&sample);
    duet__sample_disturb(&sample); /* a round without runs does not count: the one before stays */
    duet__sample_begin(&sample);
    put(&sample, 8);
    put(&sample, 7);
    duet__sample_disturb(&sample);
    duet__sample_begin(&sample);
    put(&sample, 3);
    g_assert_cmpuint(duet__sample_leave_out(&sample), ==, 3);
    g_assert_cmpuint(duet__sample_leave_out(&sample), ==, 0);
    duet__sample_conclude(&sample, 2, &side);
    g_assert_cmpuint(side.count, ==, 3);
    g_assert_cmpuint(side.round_count, ==, 2);
    g_assert_cmpuint(side.rounds[0], ==, 2);
    g_assert_cmpuint(side.rounds[1], ==, 1);
    for (size_t i = 0; i < 3; i++)
        g_assert_cmpfloat(side.makespans_s[i], ==, 2 * ((double)i + 1));
    g_assert_cmpfloat(side.account->makespan_s, ==, 4);
    g_assert_cmpfloat(side.recording->makespan_s, ==, 4);
}

/* If no round was quiet, the disturbed ones count. */
static void all_disturbed(void)
{
    OWNED(duet__sample_fini) struct duet__sample sample;
    duet__sample_init(&sample, false);
    for (unsigned round = 0; round < 2; round++) {
        duet__sample_begin(&sample);
        put(&sample, 1);
        duet__sample_disturb(&sample);
    }
    g_assert_cmpuint(duet__sample_leave_out(&sample), ==, 0);
    g_assert_cmpuint(duet__sample_count(&sample), ==, 2);
}

TEST_MAIN(disturbed, all_disturbed)
