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
#include <stdlib.h>
#include <string.h>

#include "workloads/tiles.h"

static const struct duet_parameter parameters[] = {
    {"variant", "right|left", "right", "order of the loops: eager or late updates"},
    {"potrf", "cpu|any", "cpu", "where the diagonal tiles are factorised: CPUs only, or anywhere"},
    {0},
};

static const char *const kernels[] = {"potrf", "trsm", "syrk", "gemm", NULL};

/* One build under way. */
struct cholesky {
    struct duet_runtime *runtime;
    const struct duet__tiles *a;
    struct duet_codelet *potrf, *trsm, *syrk, *gemm;
};

static int check(const struct duet_problem *problem, struct duet_message *message)
{
    int error = duet__problem_check(problem, parameters, message);
    return error ? error : duet__tiles_check("n", problem->n, problem->tile, message);
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

static int potrf(const struct cholesky *c, uint32_t k)
{
    const struct duet_access access = {duet__tile(c->a, k, k), DUET_RW};
    const struct duet__tile_args args = {.n = duet__tile_cols(c->a, k)};
    int priority = 2 * (int)c->a->row_tiles - 2 * (int)k;
    return duet__tile_task(c->runtime, c->potrf, args, priority, &access, 1);
}

/* A(m,k) := A(m,k) L(k,k)^-T */
static int trsm(const struct cholesky *c, uint32_t m, uint32_t k)
{
    const struct duet_access accesses[] = {
        {duet__tile(c->a, k, k), DUET_R},
        {duet__tile(c->a, m, k), DUET_RW},
    };
    const struct duet__tile_args args = {
        .m = duet__tile_rows(c->a, m),
        .n = duet__tile_cols(c->a, k),
    };
    int priority = 2 * (int)c->a->row_tiles - 2 * (int)k - (int)m;
    return duet__tile_task(c->runtime, c->trsm, args, priority, accesses, 2);
}

/* A(n,n) := A(n,n) - L(n,k) L(n,k)' */
static int syrk(const struct cholesky *c, uint32_t n, uint32_t k)
{
    const struct duet_access accesses[] = {
        {duet__tile(c->a, n, k), DUET_R},
        {duet__tile(c->a, n, n), DUET_RW},
    };
    const struct duet__tile_args args = {
        .n = duet__tile_rows(c->a, n),
        .k = duet__tile_cols(c->a, k),
    };
    int priority = 2 * (int)c->a->row_tiles - 2 * (int)k - (int)n;
    return duet__tile_task(c->runtime, c->syrk, args, priority, accesses, 2);
}

/* A(m,n) := A(m,n) - L(m,k) L(n,k)' */
static int gemm(const struct cholesky *c, uint32_t m, uint32_t n, uint32_t k)
{
    const struct duet_access accesses[] = {
        {duet__tile(c->a, m, k), DUET_R},
        {duet__tile(c->a, n, k), DUET_R},
        {duet__tile(c->a, m, n), DUET_RW},
    };
    const struct duet__tile_args args = {
        .m = duet__tile_rows(c->a, m),
        .n = duet__tile_rows(c->a, n),
        .k = duet__tile_cols(c->a, k),
    };
    int priority = 2 * (int)c->a->row_tiles - 2 * (int)k - (int)n - (int)m;
    return duet__tile_task(c->runtime, c->gemm, args, priority, accesses, 3);
}

/* Right-looking: as soon as panel k is known, it updates everything to its right. */
static int submit_right(const struct cholesky *c)
{
    uint32_t t = c->a->row_tiles;
    int error = 0;
    for (uint32_t k = 0; !error && k < t; k++) {
        error = potrf(c, k);
        for (uint32_t m = k + 1; !error && m < t; m++)
            error = trsm(c, m, k);
        for (uint32_t n = k + 1; !error && n < t; n++) {
            error = syrk(c, n, k);
            for (uint32_t m = n + 1; !error && m < t; m++)
                error = gemm(c, m, n, k);
        }
    }
    return error;
}

/* Left-looking: panel n is updated by all panels k to its left just before it is factorised. */
static int submit_left(const struct cholesky *c)
{
    uint32_t t = c->a->row_tiles;
    int error = 0;
    for (uint32_t n = 0; !error && n < t; n++) {
        for (uint32_t k = 0; !error && k < n; k++)
            error = syrk(c, n, k);
        if (!error)
            error = potrf(c, n);
        for (uint32_t m = n + 1; !error && m < t; m++) {
            for (uint32_t k = 0; !error && k < n; k++)
                error = gemm(c, m, n, k);
            if (!error)
                error = trsm(c, m, n);
        }
    }
    return error;
}

static int register_kernels(struct cholesky *c, const struct duet_problem *problem)
{
    bool on_cpu = !strcmp(duet__setting(problem, parameters, "potrf"), "cpu");
    int error =
        duet__tile_codelet(c->runtime, problem, "potrf", on_cpu, duet__flops_potrf, &c->potrf);
    if (!error)
        error = duet__tile_codelet(c->runtime, problem, "trsm", false, duet__flops_trsm_right,
                                   &c->trsm);
    if (!error)
        error = duet__tile_codelet(c->runtime, problem, "syrk", false, duet__flops_syrk, &c->syrk);
    if (!error)
        error = duet__tile_codelet(c->runtime, problem, "gemm", false, duet__flops_gemm, &c->gemm);
    return error;
}

static void fini(void *state)
{
    if (state)
        duet__tiles_fini(state);
    free(state);
}

static int build(struct duet_runtime *runtime, const struct duet_problem *problem, void **state,
                 struct duet_message *message)
{
    *state = NULL;
    int error = check(problem, message);
    if (error)
        return error;
    struct duet__tiles *a = calloc(1, sizeof *a);
    if (!a)
        return duet_fail(message, DUET_ENOMEM, "no memory for a matrix");
    struct cholesky c = {.runtime = runtime, .a = a};
    error = register_kernels(&c, problem);
    if (!error)
        error = duet__tiles_init(a, runtime, problem->n, problem->n, problem, true, message);
    if (!error) {
        bool left = !strcmp(duet__setting(problem, parameters, "variant"), "left");
        error = left ? submit_left(&c) : submit_right(&c);
    }
    if (error)
        fini(a);
    else
        *state = a;
    return error;
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
    .fini = fini,
};
