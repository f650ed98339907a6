/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every workload computed by the real engine, for the tests of kinds of devices: twice on one
 * runtime, with GPUs of little memory, so that data moves and is evicted, and checked.
 */
#ifndef DUET_TEST_RUN_H
#define DUET_TEST_RUN_H

#include <string.h>

#include <glib.h>
#include "workloads/kernels.h"
#include "workloads/tiles.h"

enum { RUNS = 2 /* runs of each problem, on one runtime */ };

/* The problems, all small enough for a moment. */
static const struct run {
    const char *workload;
    uint64_t n, tile;
    struct duet__setting settings[2];
} runs[] = {
    {"cholesky", 200, 32, {{0}}},
    {"cholesky", 200, 48, {{"layout", "lapack"}, {"variant", "left"}}},
    {"cholesky", 200, 64, {{"block", "16"}, {"potrf", "any"}}},
    {"cholesky", 200, 64, {{"block", "24"}, {"layout", "lapack"}}},
    {"cholesky", 200, 40, {{"potrf", "any"}}},
    {"fibonacci", 15, 4, {{0}}},
    {"fibonacci", 9, 9, {{0}}},
    {"gemm", 150, 48, {{0}}},
    {"gemm", 100, 32, {{"m", "50"}, {"layout", "lapack"}}},
    {"jacobi2d", 100, 24, {{"iterations", "7"}}},
    {"jacobi2d", 100, 24, {{"iterations", "9"}, {"submit", "graph"}}},
    {"lu", 200, 32, {{0}}},
    {"lu", 200, 48, {{"layout", "lapack"}, {"getrf", "any"}}},
    {"lu-pivot", 200, 32, {{0}}},
    {"lu-pivot", 200, 48, {{"layout", "lapack"}}},
    {"nbody", 200, 30, {{"iterations", "5"}}},
    {"nbody", 200, 30, {{"iterations", "6"}, {"submit", "graph"}}},
    {"lu-incremental", 200, 32, {{"inner", "8"}}},
    {"lu-incremental", 200, 48, {{"layout", "lapack"}, {"panel", "cpu"}}},
    {"qr", 200, 32, {{"inner", "8"}}},
    {"qr", 200, 48, {{"layout", "lapack"}, {"panel", "cpu"}}},
    {"sparse-lu", 200, 32, {{0}}},
    {"sparse-lu", 300, 24, {{"layout", "lapack"}, {"getrf", "any"}}},
    {"saxpy", 20000, 3000, {{"iterations", "3"}}},
    {"sort", 3000, 100, {{0}}},
    {"sort", 2000, 300, {{"sizes", "bimodal"}}},
};

static inline struct duet__problem problem_of(const struct run *run, char precision)
{
    return (struct duet__problem){.n = run->n,
                                  .tile = run->tile,
                                  .precision = precision,
                                  .seed = 11,
                                  .settings = run->settings,
                                  .setting_count =
                                      !!run->settings[0].name + !!run->settings[1].name};
}

/* The workers of a run. */
struct place {
    const char *emulate; /* as in struct duet_config */
    int cpus, gpus;
    bool set_arch;
    /* Looks at a runtime whose run has ended well; may be NULL. */
    void (*look)(struct duet_runtime *runtime, const struct duet__problem *problem);
};

static inline struct duet_runtime *open_runtime(const struct place *place)
{
    struct duet_config config;
    struct duet_runtime *runtime;
    duet_config_init(&config);
    config.emulate = place->emulate;
    config.cpus = place->cpus;
    config.gpus = place->gpus;
    config.gpu_memory_bytes = place->gpus ? 200000 : 0;
    config.set_arch = place->set_arch;
    config.no_bind = true;
    config.window = 50;
    WORKS(duet_open(&runtime, &config, hear()));
    return runtime;
}

static inline bool can_run(const struct duet__workload *workload)
{
    for (size_t i = 0; workload->kernels[i]; i++) {
        if (!duet__kernel(workload->kernels[i]))
            return false;
    }
    return true;
}

/* Fills, builds, waits and retrieves; returns the run's error. */
static inline int once(const struct duet__workload *workload, struct duet_runtime *runtime,
                       const struct duet__problem *problem)
{
    void *state;
    g_assert_cmpint(workload->build(workload, runtime, problem, &state, NULL), ==, 0);
    int error = duet_wait(runtime);
    g_assert_cmpint(workload->retrieve(runtime, state), ==, error);
    workload->fini(state);
    return error;
}

static inline void run_on(const struct run *run, char precision, const struct place *place)
{
    const struct duet__workload *workload = duet__workload_find(run->workload);
    struct duet__problem problem = problem_of(run, precision);
    struct duet_runtime *runtime = open_runtime(place);
    g_assert_cmpint(workload->generate(workload, &problem, &problem.data, NULL), ==, 0);
    for (int i = 0; i < RUNS; i++) {
        const struct duet__judging exactly = {.exact = true};
        struct duet__verdict verdict = {0};
        workload->fill(problem.data, NULL);
        int error = once(workload, runtime, &problem);
        g_assert_cmpstr(error ? duet_last_message(runtime) : "", ==, "");
        g_assert_cmpint(error, ==, 0);
        g_assert_cmpint(workload->verify(problem.data, &exactly, &verdict, NULL), ==, 0);
        g_test_message("%s %c: residual %g", run->workload, precision, verdict.residual);
        g_assert_cmpfloat(verdict.residual, <, verdict.threshold);
    }
    if (place->look)
        place->look(runtime, &problem);
    g_assert_cmpint(duet_close(runtime), ==, 0);
    workload->discard(problem.data);
}

/* Runs all problems that can be run, each in one precision, and in the other with one more GPU, or
 * set_arch. */
static inline void run_all(const struct place *place)
{
    for (size_t i = 0; i < G_N_ELEMENTS(runs); i++) {
        if (can_run(duet__workload_find(runs[i].workload)))
            run_on(&runs[i], (i + (size_t)place->gpus + place->set_arch) % 2 ? 's' : 'd', place);
    }
}

/* Makes the problem of a Cholesky factorisation in double precision, filled, with a matrix whose
 * minor of order 151 is not positive. Its data is to be discarded. */
static inline struct duet__problem make_indefinite(const struct run *run)
{
    const struct duet__workload *workload = duet__workload_find("cholesky");
    struct duet__problem problem = problem_of(run, 'd');
    double negative = -1;
    g_assert_cmpint(workload->generate(workload, &problem, &problem.data, NULL), ==, 0);
    workload->fill(problem.data, NULL);
    const struct duet__tiled_data *data = problem.data;
    duet__store_values(duet__storage_at(&data->matrices[0], 150, 150), &negative, 1, 8);
    return problem;
}

#endif
