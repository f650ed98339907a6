/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every workload computed by the real engine: on CPUs, and with emulated GPUs of little memory, so
 * that data moves and is evicted. Results pass their checks, also when a graph is built again on
 * the same runtime; a kernel that fails ends the run with its name.
 */
#include <string.h>

#include "workloads/test_run.h"

static void test_cpus(void)
{
    run_all(&(struct place){.cpus = 2});
}

static void test_emulated(void)
{
    run_all(&(struct place){.emulate = "free", .cpus = 2, .gpus = 1});
}

static void test_two_emulated(void)
{
    run_all(&(struct place){.emulate = "free", .cpus = 1, .gpus = 2});
}

/* Every workload that can be run is in the list above, and no other is. */
static void test_complete(void)
{
    for (size_t i = 0; duet__workload_at(i); i++) {
        const struct duet__workload *w = duet__workload_at(i);
        bool listed = false;
        g_assert_true(!w->generate == !w->fill && !w->generate == !w->retrieve &&
                      !w->generate == !w->verify && !w->generate == !w->discard);
        for (size_t r = 0; r < G_N_ELEMENTS(runs); r++)
            listed |= !strcmp(runs[r].workload, w->name);
        g_assert_true(listed == (w->generate != NULL));
    }
}

/* Without BLAS, workloads that need it say so. */
static void test_absent(void)
{
    for (size_t i = 0; i < G_N_ELEMENTS(runs); i++) {
        const struct duet__workload *workload = duet__workload_find(runs[i].workload);
        struct duet__problem problem = problem_of(&runs[i], 'd');
        void *data = &problem;
        int error = workload->generate(workload, &problem, &data, hear());
        g_assert_cmpint(error, ==, can_run(workload) ? 0 : DUET_EABSENT);
        if (error) {
            g_assert_null(data);
            SAYS("built without BLAS");
        }
        workload->discard(data);
    }
}

/* A matrix that is not positive definite ends the run, whose message names the kernel and the
 * reason. */
static void test_failing_kernel(void)
{
    const struct duet__workload *workload = duet__workload_find("cholesky");
    for (size_t i = 0; i < 4 && can_run(workload); i++) {
        struct duet__problem problem = make_indefinite(&runs[i]);
        struct duet_runtime *runtime = open_runtime(&(struct place){.cpus = 2});
        g_assert_cmpint(once(workload, runtime, &problem), ==, DUET_ETASK);
        g_test_message("%s", duet_last_message(runtime));
        TOLD(runtime, "dpotrf");
        TOLD(runtime, "not positive definite");
        g_assert_cmpint(duet_close(runtime), ==, DUET_ETASK);
        workload->discard(problem.data);
    }
}

TEST_MAIN(test_complete, test_absent, test_cpus, test_emulated, test_two_emulated,
          test_failing_kernel)
