/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of the memory's bandwidth: measured, interrupted and refused. */
#include <math.h>
#include <string.h>

#include <glib.h>

#include "calibrate/testing.h"

static void test_measured(void)
{
    struct duet_config config = testing_part("idgraf", 2, -1); /* its memory is this machine's */
    struct duet__bandwidth bandwidth;
    config.scale = 10;
    WORKS(duet__bandwidth_measure(&(struct duet__measurement){.config = &config, .message = hear()},
                                  &bandwidth));
    g_test_message("%g and %g B/s", bandwidth.one_Bps, bandwidth.all_Bps);
    g_assert_cmpuint(bandwidth.samples, >=, 6);
    g_assert_true(isfinite(bandwidth.one_Bps) && bandwidth.one_Bps > 0);
    g_assert_true(isfinite(bandwidth.all_Bps) && bandwidth.all_Bps > 0);
}

static void test_stop(void)
{
    struct duet_config config = testing_part(NULL, 1, -1);
    for (unsigned after = 0; after < 2; after++) {
        struct duet__bandwidth bandwidth = {.one_Bps = 1};
        unsigned left = after;
        int error = duet__bandwidth_measure(&(struct duet__measurement){.config = &config,
                                                                        .stop = testing_stop_after,
                                                                        .context = &left,
                                                                        .message = hear()},
                                            &bandwidth);
        g_assert_cmpint(error, ==, DUET_ECANCELED);
        g_assert_cmpstr(heard(), ==, "the measurement was interrupted");
        g_assert_cmpfloat(bandwidth.one_Bps, ==, 0);
    }
}

TEST_MAIN(test_measured, test_stop)
