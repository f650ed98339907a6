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

static void lu_shapes(const struct duet__problem *problem, struct duet__shape *out)
{
    out[0] = (struct duet__shape){problem->n, problem->n, .contents = DUET__DOMINANT};
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
    .verify = duet__judge_lu,
};
