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
#include <stdlib.h>
#include <string.h>

#include "workloads/tiles.h"

static const struct duet_parameter parameters[] = {
    {"getrf", "cpu|any", "cpu", "where the diagonal tiles are factorised: CPUs only, or anywhere"},
    {0},
};

static const char *const kernels[] = {"getrf_nopiv", "trsm_l", "trsm_r", "gemm", NULL};

/* One build under way. */
struct lu {
    struct duet_runtime *runtime;
    const struct duet__tiles *a;
    struct duet_codelet *getrf, *trsm_l, *trsm_r, *gemm;
};

static int check(const struct duet_problem *problem, struct duet_message *message)
{
    int error = duet__problem_check(problem, parameters, message);
    return error ? error : duet__tiles_check("n", problem->n, problem->tile, message);
}

static double flops(const struct duet_problem *problem)
{
    double n = (double)problem->n;
    return 2 * n * n * n / 3 - n * n / 2 - n / 6;
}

static uint64_t tasks(const struct duet_problem *problem)
{
    uint64_t t = duet__tile_count(problem->n, problem->tile);
    return t * (t + 1) * (2 * t + 1) / 6; /* step k has (t-k)^2 tasks */
}

static uint64_t bytes(const struct duet_problem *problem)
{
    return problem->n * problem->n * duet__element_bytes(problem);
}

static int getrf(const struct lu *lu, uint32_t k)
{
    const struct duet_access access = {duet__tile(lu->a, k, k), DUET_RW};
    const struct duet__tile_args args = {.n = duet__tile_cols(lu->a, k)};
    int priority = 2 * (int)lu->a->row_tiles - 2 * (int)k;
    return duet__tile_task(lu->runtime, lu->getrf, args, priority, &access, 1);
}

/* A(m,k) := A(m,k) U(k,k)^-1 */
static int trsm_r(const struct lu *lu, uint32_t m, uint32_t k)
{
    const struct duet_access accesses[] = {
        {duet__tile(lu->a, k, k), DUET_R},
        {duet__tile(lu->a, m, k), DUET_RW},
    };
    const struct duet__tile_args args = {
        .m = duet__tile_rows(lu->a, m),
        .n = duet__tile_cols(lu->a, k),
    };
    int priority = 2 * (int)lu->a->row_tiles - 2 * (int)k - (int)m;
    return duet__tile_task(lu->runtime, lu->trsm_r, args, priority, accesses, 2);
}

/* A(k,n) := L(k,k)^-1 A(k,n) */
static int trsm_l(const struct lu *lu, uint32_t k, uint32_t n)
{
    const struct duet_access accesses[] = {
        {duet__tile(lu->a, k, k), DUET_R},
        {duet__tile(lu->a, k, n), DUET_RW},
    };
    const struct duet__tile_args args = {
        .m = duet__tile_rows(lu->a, k),
        .n = duet__tile_cols(lu->a, n),
    };
    int priority = 2 * (int)lu->a->row_tiles - 2 * (int)k - (int)n;
    return duet__tile_task(lu->runtime, lu->trsm_l, args, priority, accesses, 2);
}

/* A(m,n) := A(m,n) - L(m,k) U(k,n) */
static int gemm(const struct lu *lu, uint32_t m, uint32_t n, uint32_t k)
{
    const struct duet_access accesses[] = {
        {duet__tile(lu->a, m, k), DUET_R},
        {duet__tile(lu->a, k, n), DUET_R},
        {duet__tile(lu->a, m, n), DUET_RW},
    };
    const struct duet__tile_args args = {
        .m = duet__tile_rows(lu->a, m),
        .n = duet__tile_cols(lu->a, n),
        .k = duet__tile_cols(lu->a, k),
    };
    int priority = 2 * (int)lu->a->row_tiles - 2 * (int)k - (int)n - (int)m;
    return duet__tile_task(lu->runtime, lu->gemm, args, priority, accesses, 3);
}

static int submit(const struct lu *lu)
{
    uint32_t t = lu->a->row_tiles;
    int error = 0;
    for (uint32_t k = 0; !error && k < t; k++) {
        error = getrf(lu, k);
        for (uint32_t m = k + 1; !error && m < t; m++)
            error = trsm_r(lu, m, k);
        for (uint32_t n = k + 1; !error && n < t; n++) {
            error = trsm_l(lu, k, n);
            for (uint32_t m = k + 1; !error && m < t; m++)
                error = gemm(lu, m, n, k);
        }
    }
    return error;
}

static int register_kernels(struct lu *lu, const struct duet_problem *problem)
{
    bool on_cpu = !strcmp(duet__setting(problem, parameters, "getrf"), "cpu");
    int error = duet__tile_codelet(lu->runtime, problem, "getrf_nopiv", on_cpu, duet__flops_getrf,
                                   &lu->getrf);
    if (!error)
        error = duet__tile_codelet(lu->runtime, problem, "trsm_l", false, duet__flops_trsm_left,
                                   &lu->trsm_l);
    if (!error)
        error = duet__tile_codelet(lu->runtime, problem, "trsm_r", false, duet__flops_trsm_right,
                                   &lu->trsm_r);
    if (!error)
        error =
            duet__tile_codelet(lu->runtime, problem, "gemm", false, duet__flops_gemm, &lu->gemm);
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
    struct lu lu = {.runtime = runtime, .a = a};
    error = register_kernels(&lu, problem);
    if (!error)
        error = duet__tiles_init(a, runtime, problem->n, problem->n, problem, false, message);
    if (!error)
        error = submit(&lu);
    if (error)
        fini(a);
    else
        *state = a;
    return error;
}

const struct duet_workload duet__workload_lu = {
    .name = "lu",
    .description = "tiled LU factorisation without pivoting of an n x n matrix",
    .source = "Buttari, Langou, Kurzak, Dongarra, Parallel Computing 35, 2009; without pivoting "
              "as Chameleon's getrf_nopiv",
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
