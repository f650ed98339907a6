/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tiled QR factorisation, A = Q R, along a flat tree (flat_tree.h). A tile then has R above the
 * diagonal of the matrix, and below it the Householder vectors of Q; the factors are the triangles
 * of its block reflectors, `inner` columns each.
 *
 * Algorithm: Buttari, Langou, Kurzak, Dongarra, Parallel Computing 35, 2009; kernels geqrt, ormqr,
 * tsqrt and tsmqr as PLASMA names them. Neither PLASMA nor Chameleon gives their tasks priorities.
 *
 * Flops: working note 41's for the problem, geqrt and ormqr; of tsqrt and tsmqr the leading term.
 */
#include <math.h>

#include "workloads/flat_tree.h"

static const char *const kernels[] = {"geqrt", "ormqr", "tsqrt", "tsmqr", NULL};

static double flops_of_order(double n)
{
    return 4 * n * n * n / 3 + 2 * n * n + 14 * n / 3;
}

static double qr_flops(const struct duet__problem *problem)
{
    return flops_of_order((double)problem->n);
}

static void qr_shapes(const struct duet__problem *problem, struct duet__shape *out)
{
    duet__flat_tree_shapes(problem, 0, out);
}

static double flops_geqrt(const void *args)
{
    return flops_of_order(((const struct duet__tile_args *)args)->n);
}

static double flops_ormqr(const void *args)
{
    const struct duet__tile_args *size = args;
    double m = size->m, n = size->n, k = size->k;
    return 4 * n * m * k - 2 * n * k * k + 3 * n * k;
}

static double flops_tsqrt(const void *args)
{
    const struct duet__tile_args *size = args;
    return 2.0 * size->m * size->n * size->n;
}

static double flops_tsmqr(const void *args)
{
    const struct duet__tile_args *size = args;
    return 4.0 * size->m * size->n * size->k;
}

static const struct duet__tiled tiled = {
    .shapes = qr_shapes,
    .flops = {flops_geqrt, flops_ormqr, flops_tsqrt, flops_tsmqr},
    .placement = "panel",
    .placed = DUET__PANEL_KERNELS,
    .submit = duet__flat_tree_submit,
};

/* y := R x */
static void multiply_upper(struct duet__flat_judge *judge)
{
    const struct duet__storage *r = &judge->data->matrices[DUET__FLAT_A];
    for (uint64_t i = 0; i < r->rows; i++) {
        double sum = 0;
        for (uint64_t j = i; j < r->cols; j++)
            sum += duet__storage_value(r, i, j) * duet__storage_value(&judge->x, j, 0);
        duet__store_values(duet__storage_at(&judge->y, i, 0), &sum, 1, r->element_bytes);
    }
}

/* Judges A = Q R and Q' Q = I, by both sides applied to x. */
static int judge_by_vector(struct duet__flat_judge *judge, double *residual)
{
    uint64_t n = judge->x.rows;
    multiply_upper(judge);
    int error = duet__flat_tree_apply(judge, kernels, true, &judge->y);
    double squares = 0;
    duet__flat_tree_product(judge, &judge->x);
    double distance = duet__flat_tree_distance(&judge->y, judge->values);
    for (uint64_t i = 0; i < n; i++) {
        squares += judge->values[i] * judge->values[i];
        judge->values[i] = duet__storage_value(&judge->x, i, 0);
    }
    double product = distance / sqrt(squares);
    double norm = duet__flat_tree_distance(&judge->x, NULL);
    if (!error)
        error = duet__flat_tree_apply(judge, kernels, true, &judge->x);
    if (!error)
        error = duet__flat_tree_apply(judge, kernels, false, &judge->x);
    double identity = duet__flat_tree_distance(&judge->x, judge->values) / norm;
    /* fmax would lose a NaN */
    *residual = (isnan(product) || product > identity ? product : identity) /
                (sqrt((double)n) * judge->roundoff);
    return error;
}

static int qr_verify(void *data, const struct duet__judging *how, struct duet__verdict *verdict,
                     struct duet_message *message)
{
    *verdict = (struct duet__verdict){
        .formula = "max(||Q R x - A x|| / ||A x||, ||Q' Q x - x|| / ||x||) / (sqrt(n) eps)",
        .threshold = 30};
    return duet__flat_tree_judge(data, &verdict->residual, judge_by_vector, message);
}

const struct duet__workload duet__workload_qr = {
    .name = "qr",
    .description = "tiled QR factorisation of an n x n matrix",
    .source = "Buttari, Langou, Kurzak, Dongarra, Parallel Computing 35, 2009 (flat tree)",
    .parameters = duet__flat_tree_parameters,
    .kernels = kernels,
    .default_n = 19200,
    .default_tile = 960,
    .real_n = 2048,
    .real_tile = 256,
    .check = duet__flat_tree_check,
    .flops = qr_flops,
    .tasks = duet__square_tasks,
    DUET__TILED_SLOTS(tiled, duet__tiled_fill),
    .verify = qr_verify,
};
