/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tiled Cholesky factorisation A = L L' of a symmetric positive definite matrix, lower triangle,
 * in the right-looking (eager updates) and left-looking (late updates) order.
 *
 * Algorithm: Buttari, Langou, Kurzak, Dongarra, "A class of parallel tiled linear algebra
 * algorithms for multicore architectures", Parallel Computing 35, 2009. Both orders submit the
 * same tasks, and every tile sees the same sequence of accesses, so that the graphs are equal. They
 * differ in when a task is submitted: runs differ only where submission is slower than execution,
 * or where the window of submitted tasks is smaller than the graph.
 *
 * Priorities are Chameleon's and, before it, PLASMA's (compute/pzpotrf.c), with T tiles a side:
 * panel k first, and within an update the tiles that the next panels need soonest:
 *     potrf(k) 2T - 2k,  trsm(m,k) 2T - 2k - m,  syrk(n,k) 2T - 2k - n,
 *     gemm(m,n,k) 2T - 2k - n - m
 */
#include <string.h>

#include "workloads/tiles.h"

static const struct duet_parameter parameters[] = {
    {"variant", "right|left", "right", "order of the loops: eager or late updates"},
    {"potrf", "cpu|any", "cpu", "where the diagonal tiles are factorised: CPUs only, or anywhere"},
    {0},
};

static const char *const kernels[] = {"potrf", "trsm", "syrk", "gemm", NULL};

/* Their numbers in a build. */
enum { POTRF, TRSM, SYRK, GEMM };

static int check(const struct duet_problem *problem, struct duet_message *message)
{
    return duet__square_check(problem, parameters, message);
}

static double flops(const struct duet_problem *problem)
{
    double n = (double)problem->n;
    return n * n * n / 3 + n * n / 2 + n / 6;
}

static uint64_t tasks(const struct duet_problem *problem)
{
    uint64_t t = duet__tile_count(problem->n, problem->tile);
    /* potrf: t; trsm and syrk: t (t-1) / 2 each; gemm: t (t-1) (t-2) / 6. */
    return t * t + (t < 3 ? 0 : t * (t - 1) * (t - 2) / 6);
}

static uint64_t bytes(const struct duet_problem *problem)
{
    uint64_t full = problem->n / problem->tile, rest = problem->n % problem->tile;
    uint64_t square = problem->tile * problem->tile;
    /* Square tiles, then the border: as many rest x tile tiles as full rows, and its corner. */
    uint64_t elements = full * (full + 1) / 2 * square + full * rest * problem->tile + rest * rest;
    return elements * duet__element_bytes(problem);
}

static int potrf(const struct duet__build *build, uint32_t k)
{
    return duet__factor_diagonal(build, POTRF, k);
}

/* A(m,k) := A(m,k) L(k,k)^-T */
static int trsm(const struct duet__build *build, uint32_t m, uint32_t k)
{
    return duet__factor_solve(build, TRSM, m, k);
}

/* A(n,n) := A(n,n) - L(n,k) L(n,k)' */
static int syrk(const struct duet__build *build, uint32_t n, uint32_t k)
{
    const struct duet__tiles *a = build->matrices;
    const struct duet_access accesses[] = {
        {duet__tile(a, n, k), DUET_R},
        {duet__tile(a, n, n), DUET_RW},
    };
    const struct duet__tile_args args = {.n = duet__tile_rows(a, n), .k = duet__tile_cols(a, k)};
    return duet__factor_task(build, SYRK, args, k, n, accesses, 2);
}

/* A(m,n) := A(m,n) - L(m,k) L(n,k)' */
static int gemm(const struct duet__build *build, uint32_t m, uint32_t n, uint32_t k)
{
    return duet__factor_update(build, GEMM, m, n, k, duet__tile(build->matrices, n, k));
}

/* Right-looking: as soon as panel k is known, it updates everything to its right. */
static int submit_right(const struct duet__build *build)
{
    uint32_t t = build->matrices->row_tiles;
    int error = 0;
    for (uint32_t k = 0; !error && k < t; k++) {
        error = potrf(build, k);
        for (uint32_t m = k + 1; !error && m < t; m++)
            error = trsm(build, m, k);
        for (uint32_t n = k + 1; !error && n < t; n++) {
            error = syrk(build, n, k);
            for (uint32_t m = n + 1; !error && m < t; m++)
                error = gemm(build, m, n, k);
        }
    }
    return error;
}

/* Left-looking: panel n is updated by all panels k to its left just before it is factorised. */
static int submit_left(const struct duet__build *build)
{
    uint32_t t = build->matrices->row_tiles;
    int error = 0;
    for (uint32_t n = 0; !error && n < t; n++) {
        for (uint32_t k = 0; !error && k < n; k++)
            error = syrk(build, n, k);
        if (!error)
            error = potrf(build, n);
        for (uint32_t m = n + 1; !error && m < t; m++) {
            for (uint32_t k = 0; !error && k < n; k++)
                error = gemm(build, m, n, k);
            if (!error)
                error = trsm(build, m, n);
        }
    }
    return error;
}

static int submit(const struct duet__build *build)
{
    bool left = !strcmp(duet__setting(build->problem, parameters, "variant"), "left");
    return left ? submit_left(build) : submit_right(build);
}

static void shapes(const struct duet_problem *problem, struct duet__shape *out)
{
    out[0] = (struct duet__shape){problem->n, problem->n, .lower = true};
}

static int build(struct duet_runtime *runtime, const struct duet_problem *problem, void **state,
                 struct duet_message *message)
{
    static const struct duet__tiled tiled = {
        .check = check,
        .shapes = shapes,
        .kernels = kernels,
        .flops = {duet__flops_potrf, duet__flops_trsm_right, duet__flops_syrk, duet__flops_gemm},
        .placement = "potrf",
        .parameters = parameters,
        .submit = submit,
    };
    return duet__tiled_build(&tiled, runtime, problem, state, message);
}

const struct duet_workload duet__workload_cholesky = {
    .name = "cholesky",
    .description = "tiled Cholesky factorisation, lower triangle, of an n x n matrix",
    .source = "Buttari, Langou, Kurzak, Dongarra, Parallel Computing 35, 2009",
    .parameters = parameters,
    .kernels = kernels,
    .default_n = 38400,
    .default_tile = 960,
    .check = check,
    .flops = flops,
    .tasks = tasks,
    .bytes = bytes,
    .build = build,
    .fini = duet__tiled_fini,
};
