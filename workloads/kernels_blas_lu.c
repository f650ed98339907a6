/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels of LU factorisations: of a tile without pivoting, which LAPACK lacks; of a panel of tiles
 * with partial pivoting; and the row interchanges of that. */
#include "workloads/kernels_blas_lu.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "workloads/kernels_blas.h"

enum {
    LEAF = 16,         /* order below which columns are eliminated one by one */
    SWAP_COLUMNS = 32, /* columns in which rows are swapped at a time, as LAPACK's xLASWP */
};

/* ------------------------------------------------------------------------------------------- */
/* Without pivoting                                                                             */

/* Eliminates column by column. Returns the number of the first pivot that is 0 or not finite, from
 * 1; 0: none. */
static size_t eliminate_columns(const struct duet_buffer *a)
{
    for (size_t k = 0; k < a->rows; k++) {
        double pivot = duet__view_get(a, k, k);
        if (pivot == 0 || !isfinite(pivot))
            return k + 1;
        duet__blas_eliminate(a, k);
    }
    return 0;
}

/*
 * Factorises by halves (Toledo, "Locality of reference in LU decomposition with partial pivoting",
 * SIAM J. Matrix Anal. Appl. 18, 1997, without the pivoting), so that nearly all of it is products.
 * Returns the first bad pivot, from 1, or 0.
 */
static size_t factorise_halves(const struct duet_buffer *a)
{
    if (a->rows <= LEAF)
        return eliminate_columns(a);
    size_t half = (a->rows / 2 + LEAF - 1) / LEAF * LEAF, rest = a->rows - half;
    struct duet_buffer a11 = duet__window(a, 0, 0, half, half);
    struct duet_buffer a12 = duet__window(a, 0, half, half, rest);
    struct duet_buffer a21 = duet__window(a, half, 0, rest, half);
    struct duet_buffer a22 = duet__window(a, half, half, rest, rest);
    size_t bad = factorise_halves(&a11);
    if (bad)
        return bad;
    duet__blas_trsm(DUET__LEFT_LOWER_UNIT, &a11, &a12);
    duet__blas_trsm(DUET__RIGHT_UPPER, &a11, &a21);
    duet__blas_gemm(false, -1, &a21, &a12, &a22);
    bad = factorise_halves(&a22);
    return bad ? half + bad : 0;
}

int duet__kernel_getrf_nopiv(const struct duet_call *call)
{
    const struct duet_buffer *a = &call->buffers[0];
    size_t bad = factorise_halves(a);
    if (!bad)
        return 0;
    double pivot = duet__view_get(a, bad - 1, bad - 1);
    return duet_fail(
        call->message, DUET_ETASK,
        "pivot %zu of a tile of order %zu is %g: it has no LU factors without pivoting", bad,
        a->rows, pivot);
}

/* ------------------------------------------------------------------------------------------- */
/* With partial pivoting. Buffers 1 to buffer_count - 1 are tiles one below the other, with as many
 * rows as the first, but for the last. */

static size_t panel_rows(const struct duet_call *call)
{
    size_t rows = 0;
    for (size_t t = 1; t < call->buffer_count; t++)
        rows += call->buffers[t].rows;
    return rows;
}

/* True if the tiles are windows of one column-major matrix, each below the one before. */
static bool is_contiguous(const struct duet_call *call)
{
    for (size_t t = 2; t < call->buffer_count; t++) {
        const struct duet_buffer *above = &call->buffers[t - 1], *tile = &call->buffers[t];
        if (above->ld != tile->ld ||
            (char *)above->data + above->rows * above->element_bytes != tile->data)
            return false;
    }
    return call->buffer_count == 2 || call->buffers[1].ld >= panel_rows(call);
}

static void copy_columns(const struct duet_buffer *to, const struct duet_buffer *from)
{
    for (size_t j = 0; j < to->cols; j++)
        memcpy((char *)to->data + j * to->ld * to->element_bytes,
               (char *)from->data + j * from->ld * from->element_bytes,
               to->rows * to->element_bytes);
}

/* Copies the tiles into the panel, or back out of it. */
static void copy_panel(const struct duet_call *call, const struct duet_buffer *panel, bool back)
{
    size_t row = 0;
    for (size_t t = 1; t < call->buffer_count; t++) {
        const struct duet_buffer *tile = &call->buffers[t];
        struct duet_buffer window = duet__window(panel, row, 0, tile->rows, tile->cols);
        copy_columns(back ? tile : &window, back ? &window : tile);
        row += tile->rows;
    }
}

/* Returns the error for LAPACK's info of a panel. */
static int judge_panel(const struct duet_call *call, const struct duet_buffer *panel, int info)
{
    if (!info)
        return 0;
    return duet_fail(call->message, DUET_ETASK,
                     "column %d of a panel of %zu x %zu has no pivot but 0: the matrix is singular",
                     info, panel->rows, panel->cols);
}

int duet__kernel_getrf(const struct duet_call *call)
{
    struct duet_buffer panel = call->buffers[1];
    int32_t *pivots = call->buffers[0].data;
    panel.rows = panel_rows(call);
    if (is_contiguous(call))
        return judge_panel(call, &panel, duet__blas_getrf(&panel, pivots));
    panel.ld = panel.rows;
    panel.data = malloc(panel.ld * panel.cols * panel.element_bytes);
    if (!panel.data)
        return duet_fail(call->message, DUET_ENOMEM, "no memory for a panel of %zu x %zu",
                         panel.rows, panel.cols);
    copy_panel(call, &panel, false);
    int info = duet__blas_getrf(&panel, pivots);
    copy_panel(call, &panel, true);
    free(panel.data);
    return judge_panel(call, &panel, info);
}

/* Interchanges rows in a few columns of the tiles. */
static void swap_rows(const struct duet_call *call, size_t col, size_t cols)
{
    const struct duet_buffer *top = &call->buffers[1];
    const int32_t *pivots = call->buffers[0].data;
    struct duet_buffer upper = duet__window(top, 0, col, top->rows, cols);
    for (size_t i = 0; i < call->buffers[0].rows; i++) {
        size_t other = (size_t)pivots[i] - 1;
        if (other == i)
            continue;
        const struct duet_buffer *tile = &call->buffers[1 + other / top->rows];
        struct duet_buffer lower = duet__window(tile, 0, col, tile->rows, cols);
        duet__blas_swap(&upper, i, &lower, other % top->rows);
    }
}

int duet__kernel_laswp(const struct duet_call *call)
{
    const struct duet_buffer *pivots = &call->buffers[0];
    size_t rows = panel_rows(call), cols = call->buffers[1].cols;
    for (size_t i = 0; i < pivots->rows; i++) {
        int32_t pivot = ((const int32_t *)pivots->data)[i];
        if (pivot <= (int32_t)i || (size_t)pivot > rows)
            return duet_fail(call->message, DUET_ETASK,
                             "interchange %zu is with row %d, which is none of the %zu below it",
                             i + 1, (int)pivot, rows - i);
    }
    for (size_t col = 0; col < cols; col += SWAP_COLUMNS)
        swap_rows(call, col, cols - col < SWAP_COLUMNS ? cols - col : SWAP_COLUMNS);
    return 0;
}
