/* SPDX-License-Identifier: Apache-2.0 */
/* All of Idgraf, at its own pace: its four switches with two GPUs each are found. */
#include "calibrate/testing_copies.h"
#include "base/clock.h"

static void test_idgraf(void)
{
    struct duet_config config;
    OWNED(duet__copies_fini) struct duet__copies copies;
    OWNED(duet_machine_fini) struct duet_machine machine = {0};
    duet_config_init(&config);
    config.no_bind = true;
    config.emulate = "idgraf";
    config.cpus = 1;
    WORKS(duet__copies_measure(&(struct duet__measurement){.config = &config,
                                                           .end_s = duet__clock_s() + 10,
                                                           .message = hear()},
                               &copies));
    testing_machine(&config, &machine);
    testing_pairs(&copies, &machine);
    testing_switches(&copies, &machine);
    g_assert_cmpuint(copies.switch_count, ==, 4);
}

TEST_MAIN(test_idgraf)
