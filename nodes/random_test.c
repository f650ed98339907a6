/* SPDX-License-Identifier: Apache-2.0 */
/* Random programs on 2 to 8 nodes that are threads of this process: see testing_random.h. */
#include "nodes/testing_random.h"

static void test_programs(void)
{
    const char *only = g_getenv("DUET_TEST_SEED");
    const unsigned count = 20;
    uint64_t first = only ? g_ascii_strtoull(only, NULL, 10) : 0;
    struct tally tally = {0};
    for (uint64_t number = first; number < first + (only ? 1 : count); number++) {
        g_autofree struct cluster *cluster = g_new0(struct cluster, 1);
        struct program program = {.count = 1};
        draw(cluster, number);
        program.settings[0] = cluster->setting;
        announce(number, &program);
        g_test_message("%u nodes, %s, %d + %d, %u steps", cluster->fabric->count,
                       cluster->setting.config.policy, cluster->setting.config.cpus,
                       cluster->setting.config.gpus, cluster->setting.steps);
        (void)alarm(WATCHDOG_S);
        run_cluster(cluster, &tally);
        (void)alarm(0);
        fabric_free(&cluster->fabric);
    }
    g_test_message("%u of %u programs ended well", tally.good, tally.runs);
    if (!only)
        g_assert_cmpuint(2 * tally.good, >, tally.runs);
}

TEST_MAIN(test_programs)
