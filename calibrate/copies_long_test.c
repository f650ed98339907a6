/* SPDX-License-Identifier: Apache-2.0 */
/* All of Idgraf, at its own pace: its four switches with two GPUs each are found. */
#include "calibrate/testing_copies.h"

static void test_idgraf(void)
{
    struct duet_config config = testing_part("idgraf", 1, -1);
    OWNED(duet__copies_fini) struct duet__copies copies = testing_copies(&config, 10);
    OWNED(duet_machine_fini) struct duet_machine machine = {0};
    testing_machine(&config, &machine);
    testing_pairs(&copies, &machine);
    testing_switches(&copies, &machine);
    g_assert_cmpuint(copies.switch_count, ==, 4);
}

TEST_MAIN(test_idgraf)
