/* SPDX-License-Identifier: Apache-2.0 */
/* Scaled residuals of factorisations, as in LAPACK's test programs (xPOT01, xGET01): the product of
 * the factors, tile by tile, is compared with the initial matrix, which is not copied. */
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "workloads/kernels.h"
#include "workloads/kernels_blas.h"

/* State of a judgement. */
struct judge {
    const struct duet__storage *a;
    const struct duet__judging *how;
    const uint64_t *rows; /* row i of P A is this row of A; NULL: P = I */
    double *difference;   /* by column: sums of |P A - L U| and of |A| */
    double *norm;
    void *work; /* of a tile's size */
};

static uint32_t tiles_of(uint64_t size, uint32_t tile)
{
    return (uint32_t)((size + tile - 1) / tile);
}

/*
 * Copies the factor's tile (i,j) into the workspace; of a diagonal tile the lower (Cholesky) or the
 * upper triangle (LU), with zeros in the rest.
 */
static struct duet_buffer copy_factor(const struct judge *judge, uint32_t i, uint32_t j)
{
    struct duet_buffer from = duet__storage_view(judge->a, i, j), to = from;
    to.data = judge->work;
    to.ld = to.rows;
    for (size_t c = 0; c < to.cols; c++) {
        size_t first = i == j && judge->a->lower ? c : 0;
        size_t end = i == j && !judge->a->lower ? c + 1 : to.rows;
        const char *source = (char *)from.data + c * from.ld * from.element_bytes;
        char *column = (char *)to.data + c * to.ld * to.element_bytes;
        memset(column, 0, to.rows * to.element_bytes);
        memcpy(column + first * to.element_bytes, source + first * to.element_bytes,
               (end - first) * to.element_bytes);
    }
    return to;
}

/* Computes tile (i,j) of L L' or L U, in the workspace. */
static struct duet_buffer multiply_tile(const struct judge *judge, uint32_t i, uint32_t j)
{
    uint32_t diagonal = i < j ? i : j;
    struct duet_buffer product = copy_factor(judge, i, j);
    struct duet_buffer triangle = duet__storage_view(judge->a, diagonal, diagonal);
    enum duet__triangle kind = i > j ? DUET__RIGHT_UPPER : DUET__LEFT_LOWER_UNIT;
    duet__blas_trmm(judge->a->lower ? DUET__RIGHT_LOWER_TRANSPOSED : kind, &triangle, &product);
    for (uint32_t k = 0; k < diagonal && !duet__judging_stopped(judge->how); k++) {
        struct duet_buffer left = duet__storage_view(judge->a, i, k);
        struct duet_buffer right = judge->a->lower ? duet__storage_view(judge->a, j, k)
                                                   : duet__storage_view(judge->a, k, j);
        duet__blas_gemm(judge->a->lower, 1, &left, &right, &product);
    }
    return product;
}

/* Adds element (row, col), which should be `value`, to the sums of its column and its mirror's. */
static void compare_element(const struct judge *judge, uint64_t row, uint64_t col, double value)
{
    double initial = duet__storage_initial(judge->a, judge->rows ? judge->rows[row] : row, col);
    judge->difference[col] += fabs(value - initial);
    judge->norm[col] += fabs(initial);
    if (judge->a->lower && row != col) {
        judge->difference[row] += fabs(value - initial);
        judge->norm[row] += fabs(initial);
    }
}

static void compare_tile(const struct judge *judge, uint32_t i, uint32_t j)
{
    struct duet_buffer product = multiply_tile(judge, i, j);
    for (size_t c = 0; c < product.cols; c++) {
        for (size_t r = i == j && judge->a->lower ? c : 0; r < product.rows; r++)
            compare_element(judge, (uint64_t)i * judge->a->tile_rows + r,
                            (uint64_t)j * judge->a->tile_cols + c, duet__view_get(&product, r, c));
    }
}

/* Returns the largest of the sums; NaN if one is. */
static double largest(const double *sums, uint64_t count)
{
    double max = 0;
    for (uint64_t i = 0; i < count; i++) {
        if (isnan(sums[i]))
            return sums[i];
        max = fmax(max, sums[i]);
    }
    return max;
}

static double residual_of(const struct judge *judge)
{
    const struct duet__storage *a = judge->a;
    uint32_t tiles = tiles_of(a->rows, a->tile_rows);
    double roundoff = a->element_bytes == 4 ? (double)FLT_EPSILON / 2 : DBL_EPSILON / 2;
    for (uint32_t j = 0; j < tiles; j++) {
        for (uint32_t i = judge->a->lower ? j : 0; i < tiles && !duet__judging_stopped(judge->how);
             i++)
            compare_tile(judge, i, j);
    }
    return largest(judge->difference, a->cols) / (double)a->rows / largest(judge->norm, a->cols) /
           roundoff;
}

int duet__residual(const struct duet__storage *a, const uint64_t *rows,
                   const struct duet__judging *how, double *residual, struct duet_message *message)
{
    struct judge judge = {.a = a, .how = how, .rows = rows};
    judge.difference = calloc(a->cols, sizeof *judge.difference);
    judge.norm = calloc(a->cols, sizeof *judge.norm);
    judge.work = malloc((size_t)a->tile_rows * a->tile_cols * a->element_bytes);
    int error = 0;
    if (!judge.difference || !judge.norm || !judge.work)
        error = duet_fail(message, DUET_ENOMEM, "no memory to judge a matrix of order %llu",
                          (unsigned long long)a->rows);
    else
        *residual = residual_of(&judge);
    free(judge.difference);
    free(judge.norm);
    free(judge.work);
    return error;
}
