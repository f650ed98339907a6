/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tiled LU factorisation with partial pivoting, P A = L U with unit diagonal L, right-looking: the
 * same factors and interchanges as LAPACK's getrf.
 *
 * Algorithm: Dongarra, Faverge, Ltaief, Luszczek, "Achieving numerical accuracy and high
 * performance using recursive tile LU factorization with partial pivoting", Concurrency and
 * Computation: Practice and Experience 26, 2014, with a sequential panel. For each column k of
 * tiles: getrf(k)    factorises the panel, the tiles (k..T-1, k) together, and notes its
 * interchanges laswp(k,n)  interchanges rows in column n to the right: tiles (k..T-1, n)
 *     trsm_l(k,n) A(k,n) := L(k,k)^-1 A(k,n)
 *     gemm(m,n,k) A(m,n) := A(m,n) - L(m,k) U(k,n)
 * and at the end laswp(k,n) in the columns n < k to the left. What handles rows across tiles, getrf
 * and laswp, runs on CPUs only. Priorities are those of lu.c, laswp(k,n) as trsm_l(k,n); the last
 * interchanges have 0, the lowest.
 */
#include <stdlib.h>

#include "workloads/kernels.h"
#include "workloads/tiles.h"

static const struct duet__parameter parameters[] = {
    DUET__LAYOUT_PARAMETER,
    {0},
};

static const char *const kernels[] = {"getrf", "laswp", "trsm_l", "gemm", NULL};

/* Numbers of the kernels in a build. */
enum { GETRF, LASWP, TRSM_L, GEMM };

/* Matrices of a build: A, and the interchanges as one vector in pieces, one for each panel. */
enum { A, PIVOTS };

static int lu_pivot_check(const struct duet__problem *problem, struct duet_message *message)
{
    return duet__square_check(problem, parameters, message);
}

static uint64_t lu_pivot_tasks(const struct duet__problem *problem)
{
    uint64_t t = duet__tile_count(problem->n, problem->tile);
    /* getrf: t; trsm_l: t (t-1) / 2, laswp twice as many; gemm: (t-1-k)^2 in step k. */
    return t + 3 * (t * (t - 1) / 2) + (t - 1) * t * (2 * t - 1) / 6;
}

/* Submits a task of step k on the interchanges of its panel and on the tiles (k..T-1, n);
 * `accesses` has room for all of them. */
static int column_task(const struct duet__build *build, unsigned kernel, enum duet_mode pivots_mode,
                       uint32_t k, uint32_t n, int priority, struct duet_access *accesses)
{
    const struct duet__tiles *a = &build->matrices[A];
    size_t count = 0;
    accesses[count++] =
        (struct duet_access){duet__tile(&build->matrices[PIVOTS], k, 0), pivots_mode};
    for (uint32_t m = k; m < a->row_tiles; m++)
        accesses[count++] = (struct duet_access){duet__tile(a, m, n), DUET_RW};
    const struct duet__tile_args args = {
        .m = (uint32_t)(a->rows - (uint64_t)k * a->tile_rows),
        .n = duet__tile_cols(a, n),
    };
    return duet__tile_task(build, kernel, args, priority, accesses, count);
}

static int getrf(const struct duet__build *build, uint32_t k, struct duet_access *accesses)
{
    return column_task(build, GETRF, DUET_W, k, k, duet__factor_priority(build, k, 0), accesses);
}

static int laswp(const struct duet__build *build, uint32_t k, uint32_t n,
                 struct duet_access *accesses)
{
    int priority = n > k ? duet__factor_priority(build, k, n) : 0;
    return column_task(build, LASWP, DUET_R, k, n, priority, accesses);
}

/* Submits the tasks of step k in column n to the right of its panel. */
static int update(const struct duet__build *build, uint32_t k, uint32_t n,
                  struct duet_access *accesses)
{
    const struct duet__tiles *a = &build->matrices[A];
    int error = laswp(build, k, n, accesses);
    if (!error)
        error = duet__factor_solve(build, TRSM_L, k, n);
    for (uint32_t m = k + 1; !error && m < a->row_tiles; m++)
        error = duet__factor_update(build, GEMM, m, n, k, duet__tile(a, k, n), 0);
    return error;
}

static int submit_all(const struct duet__build *build, struct duet_access *accesses)
{
    uint32_t t = build->matrices[A].row_tiles;
    int error = 0;
    for (uint32_t k = 0; !error && k < t; k++) {
        error = getrf(build, k, accesses);
        for (uint32_t n = k + 1; !error && n < t; n++)
            error = update(build, k, n, accesses);
    }
    for (uint32_t n = 0; !error && n < t; n++) {
        for (uint32_t k = n + 1; !error && k < t; k++)
            error = laswp(build, k, n, accesses);
        error = error ? error : duet__tiles_spent(build, &build->matrices[A], 0, t, n);
    }
    return error;
}

static int lu_pivot_submit(const struct duet__build *build)
{
    struct duet_access *accesses = calloc(build->matrices[A].row_tiles + 1, sizeof *accesses);
    int error = accesses ? submit_all(build, accesses) : DUET_ENOMEM;
    free(accesses);
    return error;
}

static void lu_pivot_shapes(const struct duet__problem *problem, struct duet__storage *out)
{
    out[A] = (struct duet__storage){problem->n, problem->n, .contents = DUET__RANDOM};
    out[PIVOTS] = (struct duet__storage){problem->n, 1, .element_bytes = sizeof(int32_t)};
}

/* Owner of a tile. Interchanges belong to the diagonal tile, at whose node the panel is
 * factorised. */
static unsigned lu_pivot_owner(const struct duet_runtime *runtime,
                               const struct duet__problem *problem, unsigned matrix, uint32_t i,
                               uint32_t j)
{
    return duet_node_at(runtime, i, matrix == PIVOTS ? i : j);
}

static const struct duet__tiled tiled = {
    .shapes = lu_pivot_shapes,
    .owner = lu_pivot_owner,
    .flops = {duet__flops_getrf, NULL, duet__flops_trsm_left, duet__flops_gemm},
    .cpu_only = 1u << GETRF | 1u << LASWP,
    .submit = lu_pivot_submit,
};

const struct duet__workload duet__workload_lu_pivot = {
    .name = "lu-pivot",
    .description = "tiled LU factorisation with partial pivoting of an n x n matrix",
    .source = "Dongarra, Faverge, Ltaief, Luszczek, Concurrency and Computation: Practice and "
              "Experience 26, 2014 (with sequential panels)",
    .parameters = parameters,
    .kernels = kernels,
    .default_n = 19200,
    .default_tile = 960,
    .real_n = 4096,
    .real_tile = 256,
    .check = lu_pivot_check,
    .flops = duet__lu_flops,
    .tasks = lu_pivot_tasks,
    DUET__TILED_SLOTS(tiled, duet__tiled_fill),
    .verify = duet__judge_factors,
};
