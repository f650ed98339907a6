/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tiled LU factorisation without pivoting, A = L U with unit diagonal L, right-looking.
 *
 * Algorithm and priorities are those of Chameleon's compute/pzgetrf_nopiv.c, with T tiles a side:
 *     getrf(k) 2T - 2k,  trsm_r(m,k) 2T - 2k - m,  trsm_l(k,n) 2T - 2k - n,
 *     gemm(m,n,k) 2T - 2k - n - m
 *
 * Flops: trsm_l is counted as if L's diagonal were not 1, as working note 41 does and kernel times
 * are measured, so the tasks' flops exceed the problem's by the elements of U outside the diagonal
 * tiles. The problem's own count, 2n^3/3 - n^2/2 - n/6, divides by the pivots; working note 41
 * adds n for computing their reciprocals.
 */
#include "workloads/kernels.h"
#include "workloads/tiles.h"

static const struct duet__parameter parameters[] = {
    {"getrf", "cpu|any", "cpu", "where the diagonal tiles are factorised: CPUs only, or anywhere"},
    DUET__LAYOUT_PARAMETER,
    {0},
};

static const char *const kernels[] = {"getrf_nopiv", "trsm_l", "trsm_r", "gemm", NULL};

static int lu_check(const struct duet__problem *problem, struct duet_message *message)
{
    return duet__square_check(problem, parameters, message);
}

static void lu_shapes(const struct duet__problem *problem, struct duet__storage *out)
{
    out[0] = (struct duet__storage){problem->n, problem->n, .contents = DUET__DOMINANT};
}

static const struct duet__tiled tiled = {
    .shapes = lu_shapes,
    .flops = {duet__flops_getrf, duet__flops_trsm_left, duet__flops_trsm_right, duet__flops_gemm},
    .placement = "getrf",
    .submit = duet__factor_lu,
};

const struct duet__workload duet__workload_lu = {
    .name = "lu",
    .description = "tiled LU factorisation without pivoting of an n x n matrix",
    .source = "Buttari, Langou, Kurzak, Dongarra, Parallel Computing 35, 2009; without pivoting "
              "as Chameleon's getrf_nopiv",
    .parameters = parameters,
    .kernels = kernels,
    .default_n = 38400,
    .default_tile = 960,
    .real_n = 4096,
    .real_tile = 256,
    .check = lu_check,
    .flops = duet__lu_flops,
    .tasks = duet__square_tasks,
    DUET__TILED_SLOTS(tiled, duet__tiled_fill),
    .verify = duet__judge_factors,
};

/* ------------------------------------------------------------------------------------------- */
/*
 * sparse-lu: LU factorisation without pivoting of a matrix that has only some of its tiles, and
 * gets more: the benchmark sparselu of the Barcelona OpenMP Tasks Suite. Its kernels lu0, fwd, bdiv
 * and bmod are those of lu, getrf_nopiv, trsm_l, trsm_r and gemm; so are their flops and
 * priorities. The problem's flops are those of its tasks.
 *
 * Tiles that are filled in are registered with those that are there at first, as zeros, so that all
 * are known beforehand. Real runs have memory for the whole matrix, whose zeros the check looks at.
 */

/*
 * True if tile (i,j) exists at the end. Beside the three diagonals row and column 0 have every
 * second tile; step k adds the tiles of row k to row k + 1, as (k+1,k) exists, and likewise
 * columns.
 */
static bool is_there(uint32_t i, uint32_t j)
{
    uint32_t first = i < j ? i : j, last = i < j ? j : i;
    return last - first <= 1 || last % 2 == 0;
}

/* Tiles of row k right of the diagonal; column k has as many below it. */
struct step {
    uint64_t tiles, columns; /* number, and total width */
    uint64_t order;          /* of the diagonal tile */
};

static struct step step_of(const struct duet__problem *problem, uint32_t k)
{
    struct step step = {.order = duet__piece(problem->n, (uint32_t)problem->tile, k)};
    uint32_t t = (uint32_t)duet__tile_count(problem->n, problem->tile);
    for (uint32_t j = k + 1; j < t; j++) {
        if (!is_there(k, j))
            continue;
        step.tiles++;
        step.columns += duet__piece(problem->n, (uint32_t)problem->tile, j);
    }
    return step;
}

static double sparse_lu_flops(const struct duet__problem *problem)
{
    double sum = 0;
    for (uint32_t k = 0; k < duet__tile_count(problem->n, problem->tile); k++) {
        struct step step = step_of(problem, k);
        struct duet__tile_args args = {.n = (uint32_t)step.order};
        double order = (double)step.order, columns = (double)step.columns;
        sum += duet__flops_getrf(&args) + 2 * order * columns * (order + columns);
    }
    return sum;
}

static uint64_t sparse_lu_tasks(const struct duet__problem *problem)
{
    uint64_t sum = 0;
    for (uint32_t k = 0; k < duet__tile_count(problem->n, problem->tile); k++) {
        struct step step = step_of(problem, k);
        sum += (step.tiles + 1) * (step.tiles + 1);
    }
    return sum;
}

static void sparse_lu_shapes(const struct duet__problem *problem, struct duet__storage *out)
{
    out[0] = (struct duet__storage){problem->n, problem->n, .contents = DUET__SPARSE,
                                    .is_there = is_there};
}

static const struct duet__tiled sparse = {
    .shapes = sparse_lu_shapes,
    .flops = {duet__flops_getrf, duet__flops_trsm_left, duet__flops_trsm_right, duet__flops_gemm},
    .placement = "getrf",
    .submit = duet__factor_lu,
};

const struct duet__workload duet__workload_sparse_lu = {
    .name = "sparse-lu",
    .description = "LU factorisation without pivoting of an n x n matrix of which half the tiles "
                   "are 0",
    .source = "Duran, Teruel, Ferrer, Martorell, Ayguade, \"Barcelona OpenMP Tasks Suite\", ICPP "
              "2009 (sparselu)",
    .parameters = parameters,
    .kernels = kernels,
    .default_n = 48000,
    .default_tile = 960,
    .real_n = 4096,
    .real_tile = 128,
    .check = lu_check,
    .flops = sparse_lu_flops,
    .tasks = sparse_lu_tasks,
    DUET__TILED_SLOTS(sparse, duet__tiled_fill),
    .verify = duet__judge_factors,
};
