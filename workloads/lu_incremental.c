/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tiled LU factorisation with incremental pivoting along a flat tree (flat_tree.h): a pivot is
 * looked for in the diagonal tile and in one tile below it at a time, so that no task needs a whole
 * column of tiles, as those of lu_pivot.c do; multipliers may grow more. A tile then has U on and
 * above the diagonal of the matrix, and multipliers below it; with those and the interchanges in
 * the factors, systems are solved.
 *
 * Algorithm: Quintana-Orti, van de Geijn, "Updating an LU factorization with pivoting", ACM TOMS
 * 35, 2008, by tiles as Buttari, Langou, Kurzak, Dongarra, Parallel Computing 35, 2009; kernels
 * gessm, tstrf and ssssm as PLASMA names them. PLASMA gives their tasks no priorities.
 *
 * Flops: working note 41's for the problem and the diagonal; of the others the leading term.
 */
#include <math.h>

#include "workloads/flat_tree.h"

static const char *const kernels[] = {"getrf_incpiv", "gessm", "tstrf", "ssssm", NULL};

enum { PIVOTS = 1 /* rows of the factors of a tile beside those of the multipliers */ };

static void lu_incremental_shapes(const struct duet__problem *problem, struct duet__shape *out)
{
    duet__flat_tree_shapes(problem, PIVOTS, out);
}

static const struct duet__tiled tiled = {
    .shapes = lu_incremental_shapes,
    .flops = {duet__flops_getrf, duet__flops_trsm_left, duet__flops_trsm_right, duet__flops_gemm},
    .placement = "panel",
    .placed = DUET__PANEL_KERNELS,
    .submit = duet__flat_tree_submit,
};

static void set(const struct duet__storage *vector, uint64_t i, double value)
{
    duet__store_values(duet__storage_at(vector, i, 0), &value, 1, vector->element_bytes);
}

/* y := U^-1 y */
static void solve_upper(const struct duet__flat_judge *judge)
{
    const struct duet__storage *u = &judge->data->matrices[DUET__FLAT_A];
    for (uint64_t i = u->rows; i-- > 0;) {
        double sum = duet__storage_value(&judge->y, i, 0);
        for (uint64_t j = i + 1; j < u->cols; j++)
            sum -= duet__storage_value(u, i, j) * duet__storage_value(&judge->y, j, 0);
        set(&judge->y, i, sum / duet__storage_value(u, i, i));
    }
}

/* Returns the residual of the solution of A y = x. */
static int judge_by_vector(struct duet__flat_judge *judge, double *residual)
{
    uint64_t n = judge->x.rows;
    for (uint64_t i = 0; i < n; i++)
        set(&judge->y, i, duet__storage_value(&judge->x, i, 0));
    int error = duet__flat_tree_apply(judge, kernels, false, &judge->y);
    solve_upper(judge);
    double norm = duet__flat_tree_product(judge, &judge->y);
    *residual =
        duet__flat_tree_distance(&judge->x, judge->values) /
        (norm * duet__flat_tree_distance(&judge->y, NULL) * sqrt((double)n) * judge->roundoff);
    if (error != DUET_ETASK)
        return error;
    *residual = NAN; /* an invalid interchange */
    return 0;
}

static int lu_incremental_verify(void *data, const struct duet__judging *how,
                                 struct duet__verdict *verdict, struct duet_message *message)
{
    *verdict =
        (struct duet__verdict){.formula = "||A x - b|| / (||A|| ||x|| sqrt(n) eps), A x = b solved",
                               .threshold = 30};
    return duet__flat_tree_judge(data, &verdict->residual, judge_by_vector, message);
}

const struct duet__workload duet__workload_lu_incremental = {
    .name = "lu-incremental",
    .description = "tiled LU factorisation with incremental pivoting of an n x n matrix",
    .source = "Buttari, Langou, Kurzak, Dongarra, Parallel Computing 35, 2009; Quintana-Orti, van "
              "de Geijn, ACM TOMS 35, 2008",
    .parameters = duet__flat_tree_parameters,
    .kernels = kernels,
    .default_n = 19200,
    .default_tile = 960,
    .real_n = 2048,
    .real_tile = 256,
    .check = duet__flat_tree_check,
    .flops = duet__lu_flops,
    .tasks = duet__square_tasks,
    DUET__TILED_SLOTS(tiled, duet__tiled_fill),
    .verify = lu_incremental_verify,
};
