/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests of heft: order by speed-up, earliest finish with transfers beside the kernels before, dates
 * corrected by what was measured. Times in milliseconds; 1 MB takes 1 ms to a device.
 */
#include "core/policies/testing.h"

#define ONE "cpus=1 gpus=1 unasked heft"

static const struct script scripts[] = {
    {"the task that gains most chooses first, in whichever order they are pushed", ONE,
     "A 1/0.5; B 10/1; push {A B|B A}; pop gpu0 B; pop cpu0 A; fini"},
    {"equal speed-up: in order of submission; tasks of devices alone first", ONE,
     "A 100/1; B 200/2; C 0/1; push B A C; pop gpu0 C; pop gpu0 A; pop gpu0 B; fini"},
    /* the faster one of those that are free, or the lowest; then 4, 6 and 3 ms; 8, 6 and 6 */
    {"earliest finish", "cpus=1 gpus=2 unasked heft",
     "A 4/3; B 4/3; C 4/3; D 4/3; E 2/3; placed A gpu0; placed B gpu1; placed C cpu0;"
     "placed D gpu0; at 100000; placed E cpu0; fini"},
    {"a transfer counts while the device is free", ONE,
     "data a*3906; A 1.5/1 a; placed A cpu0; fini"},
    /* busy for 2 ms: 2 + 1 with the copy hidden; 4 if it were not */
    {"a transfer hides behind a kernel", ONE,
     "data a*3906; A 10/2; B 3.5/1 a; placed A gpu0; placed B gpu0; fini"},
    /* 4 late: the device is busy until 7, so 5 + 2.5 against 7 + 1; then the core until 7.5; at 6:
     * 7.5 + 1 against 7 + 1.4; 11 + 1.4 if counted twice */
    {"a late task moves the date of its worker, once", ONE,
     "A 100/1; B 100/1; C 100/1; D 2.5/1; E 1/1.4; placed A gpu0; placed B gpu0; placed C gpu0;"
     "us 5000; gpu0 run 1; done 1; placed D cpu0; us 1000; gpu0 run 2; done 2; placed E gpu0; "
     "fini"},
    /* 3 early: until 5, so 6 against 6.5 */
    {"an early task does so, too", ONE,
     "A 100/4; B 100/4; C 5.5/1; placed A gpu0; placed B gpu0; us 1000; gpu0 run 1; done 1;"
     "placed C gpu0; fini"},
};

static void test_scripts(void)
{
    policy_scripts_play(scripts, G_N_ELEMENTS(scripts));
}

static void test_no_stealing(void)
{
    g_assert_null(duet_policy_find("heft")->steal);
}

TEST_MAIN(test_scripts, test_no_stealing)
