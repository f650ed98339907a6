/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every workload computed by the real engine: on CPUs, and with emulated GPUs of little memory, so
 * that data moves and is evicted. Results pass their checks, also when a graph is built again on
 * the same runtime; a kernel that fails ends the run with its name.
 */
#include <math.h>
#include <string.h>

#include <glib.h>

#include "workloads/kernels.h"
#include "workloads/tiles.h"

enum { RUNS = 2 /* of each problem, on one runtime */ };

/* What is run: small, so that all of them take a moment. */
static const struct run {
    const char *workload;
    uint64_t n, tile;
    struct duet_setting settings[2];
} runs[] = {
    {"cholesky", 200, 32, {{0}}},
    {"cholesky", 200, 48, {{"layout", "lapack"}, {"variant", "left"}}},
    {"cholesky", 200, 64, {{"block", "16"}, {"potrf", "any"}}},
    {"cholesky", 200, 64, {{"block", "24"}, {"layout", "lapack"}}},
    {"gemm", 150, 48, {{0}}},
    {"gemm", 100, 32, {{"m", "50"}, {"layout", "lapack"}}},
    {"jacobi2d", 100, 24, {{"iterations", "7"}}},
    {"lu", 200, 32, {{0}}},
    {"lu", 200, 48, {{"layout", "lapack"}, {"getrf", "any"}}},
    {"lu-pivot", 200, 32, {{0}}},
    {"lu-pivot", 200, 48, {{"layout", "lapack"}}},
    {"saxpy", 20000, 3000, {{"iterations", "3"}}},
};

static struct duet_problem problem_of(const struct run *run, char precision)
{
    return (struct duet_problem){.n = run->n,
                                 .tile = run->tile,
                                 .precision = precision,
                                 .seed = 11,
                                 .settings = run->settings,
                                 .setting_count =
                                     !!run->settings[0].name + !!run->settings[1].name};
}

static struct duet_runtime *open_runtime(const char *emulate, int cpus, int gpus)
{
    struct duet_config config;
    struct duet_runtime *runtime;
    struct duet_message message = {""};
    duet_config_init(&config);
    config.emulate = emulate;
    config.cpus = cpus;
    config.gpus = gpus;
    config.gpu_memory_bytes = gpus ? 200000 : 0;
    config.no_bind = true;
    config.window = 50;
    g_assert_cmpint(duet_open(&runtime, &config, &message), ==, 0);
    g_assert_cmpstr(message.text, ==, "");
    return runtime;
}

static bool can_run(const struct duet_workload *workload)
{
    for (size_t i = 0; workload->kernels[i]; i++) {
        if (!duet__kernel(workload->kernels[i]))
            return false;
    }
    return true;
}

/* Fills, builds, waits and retrieves; the run's error. */
static int once(const struct duet_workload *workload, struct duet_runtime *runtime,
                const struct duet_problem *problem)
{
    void *state;
    g_assert_cmpint(workload->build(runtime, problem, &state, NULL), ==, 0);
    int error = duet_wait(runtime);
    g_assert_cmpint(workload->retrieve(runtime, state), ==, error);
    workload->fini(state);
    return error;
}

static void run_on(const struct run *run, char precision, const char *emulate, int cpus, int gpus)
{
    const struct duet_workload *workload = duet_workload_find(run->workload);
    struct duet_problem problem = problem_of(run, precision);
    struct duet_runtime *runtime = open_runtime(emulate, cpus, gpus);
    g_assert_cmpint(workload->generate(&problem, &problem.data, NULL), ==, 0);
    for (int i = 0; i < RUNS; i++) {
        struct duet_verdict verdict = {0};
        workload->fill(problem.data);
        g_assert_cmpint(once(workload, runtime, &problem), ==, 0);
        g_assert_cmpint(workload->verify(problem.data, &verdict, NULL), ==, 0);
        g_test_message("%s %c: residual %g", run->workload, precision, verdict.residual);
        g_assert_cmpfloat(verdict.residual, <, verdict.threshold);
    }
    g_assert_cmpint(duet_close(runtime), ==, 0);
    workload->discard(problem.data);
}

static void run_all(const char *emulate, int cpus, int gpus)
{
    for (size_t i = 0; i < 2 * G_N_ELEMENTS(runs); i++) {
        const struct run *run = &runs[i / 2];
        if (can_run(duet_workload_find(run->workload)))
            run_on(run, i % 2 ? 's' : 'd', emulate, cpus, gpus);
    }
}

static void test_cpus(void)
{
    run_all(NULL, 2, 0);
}

static void test_emulated(void)
{
    run_all("free", 2, 1);
}

static void test_two_emulated(void)
{
    run_all("free", 1, 2);
}

/* Every workload that can be run is in the list above, and none computes what it cannot. */
static void test_complete(void)
{
    for (size_t i = 0; duet_workload_at(i); i++) {
        const struct duet_workload *w = duet_workload_at(i);
        bool listed = false;
        g_assert_true(!w->generate == !w->fill && !w->generate == !w->retrieve &&
                      !w->generate == !w->verify && !w->generate == !w->discard);
        for (size_t r = 0; r < G_N_ELEMENTS(runs); r++)
            listed |= !strcmp(runs[r].workload, w->name);
        g_assert_true(listed == (w->generate != NULL));
    }
}

/* Without BLAS, what needs it says so. */
static void test_absent(void)
{
    for (size_t i = 0; i < G_N_ELEMENTS(runs); i++) {
        const struct duet_workload *workload = duet_workload_find(runs[i].workload);
        struct duet_problem problem = problem_of(&runs[i], 'd');
        struct duet_message message = {""};
        void *data = &problem;
        int error = workload->generate(&problem, &data, &message);
        g_assert_cmpint(error, ==, can_run(workload) ? 0 : DUET_EABSENT);
        if (error) {
            g_assert_null(data);
            g_assert_nonnull(strstr(message.text, "built without BLAS"));
        }
        workload->discard(data);
    }
}

/* A matrix that is not positive definite: the run ends, and says which kernel did it. */
static void test_failing_kernel(void)
{
    const struct duet_workload *workload = duet_workload_find("cholesky");
    for (size_t i = 0; i < 4 && can_run(workload); i++) {
        struct duet_problem problem = problem_of(&runs[i], 'd');
        struct duet_runtime *runtime = open_runtime(NULL, 2, 0);
        g_assert_cmpint(workload->generate(&problem, &problem.data, NULL), ==, 0);
        workload->fill(problem.data);
        const struct duet__tiled_data *data = problem.data;
        double negative = -1;
        duet__store_values(duet__storage_at(&data->matrices[0], 150, 150), &negative, 1, 8);
        g_assert_cmpint(once(workload, runtime, &problem), ==, DUET_ETASK);
        g_assert_nonnull(strstr(duet_last_message(runtime), "dpotrf"));
        g_assert_cmpint(duet_close(runtime), ==, DUET_ETASK);
        workload->discard(problem.data);
    }
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/workloads/run/complete", test_complete);
    g_test_add_func("/workloads/run/absent", test_absent);
    g_test_add_func("/workloads/run/cpus", test_cpus);
    g_test_add_func("/workloads/run/emulated", test_emulated);
    g_test_add_func("/workloads/run/two_emulated", test_two_emulated);
    g_test_add_func("/workloads/run/failing_kernel", test_failing_kernel);
    return g_test_run();
}
