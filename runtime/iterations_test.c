/* SPDX-License-Identifier: Apache-2.0 */
/* The summary tells what iterations took, where tasks say which one they are of. */
#include "runtime/testing.h"

enum { ITERATIONS = 5 };

/* Milliseconds are the argument. */
static double cost(const void *args, const char *arch)
{
    const void *iteration = duet_value(args, 0, sizeof(uint32_t));
    return iteration ? 1e-3 * *(const uint32_t *)iteration : 0;
}

/* Iterations of 1, 2, 3 ... ms. */
static void iterate(void)
{
    struct duet_config config = testing_config("idgraf", 1, 0);
    config.no_costs = config.report = config.record = true;
    struct duet_runtime *duet = testing_open(&config);
    const struct duet_codelet_desc like = {.cost = cost};
    struct duet_codelet *codelet = testing_codelet(duet, "sweep", NULL, like);
    struct duet_handle *handle;
    must(duet, duet_register_vector(duet, NULL, 1000, sizeof(double), &handle));
    for (uint32_t i = 1; i <= ITERATIONS; i++)
        must(duet, duet_insert(duet, codelet, DUET_RW, handle, DUET_VALUE, &i, sizeof i,
                               DUET_ITERATION, i, 0));
    must(duet, duet_close(duet));
}

static void test_summary(void)
{
    if (g_test_subprocess()) {
        iterate();
        return;
    }
    g_test_trap_subprocess(NULL, 0, G_TEST_SUBPROCESS_DEFAULT);
    g_test_trap_assert_passed();
    g_test_trap_assert_stderr("*duet: 5 iterations: median 0.003000 s, least 0.001000 s, most "
                              "0.005000 s*");
}

TEST_MAIN(test_summary)
