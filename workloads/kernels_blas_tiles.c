/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kernels on tiles and vectors that need BLAS or LAPACK, and the list of all: those that are
 * one call, of QR factorisations, and of LU factorisations without, with partial and with
 * incremental pivoting. kernels.h describes them.
 */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <lapacke.h>

#include "workloads/kernels.h"
#include "workloads/kernels_blas.h"
#include "workloads/tiles.h"

/* ------------------------------------------------------------------------------------------- */
/* QR factorisations, by LAPACK's xGEQRT, xGEMQRT, xTPQRT and xTPMQRT                           */

/* Calls a function of LAPACKE in the precision of a buffer. */
#define LAPACK(a, name, ...)                                                                       \
    ((a)->element_bytes == sizeof(float) ? LAPACKE_s##name(LAPACK_COL_MAJOR, __VA_ARGS__)          \
                                         : LAPACKE_d##name(LAPACK_COL_MAJOR, __VA_ARGS__))

/* Converts a size or stride for LAPACK; checks of the problem bound it (2^29 at most). */
static lapack_int size(size_t elements)
{
    return (lapack_int)elements;
}

/* Columns of a block reflector: the rows of factors `t`, but no more than `columns`. */
static lapack_int inner(const struct duet_buffer *t, size_t columns)
{
    return size(t->rows < columns ? t->rows : columns);
}

/* Allocates room for `inner` columns of a tile. */
static int work_of(const struct duet_call *call, const struct duet_buffer *t, size_t columns,
                   void **work)
{
    *work = malloc(t->rows * columns * t->element_bytes);
    return *work ? 0
                 : duet_fail(call->message, DUET_ENOMEM, "no memory for %zu x %zu elements",
                             t->rows, columns);
}

/* Frees the workspace. LAPACK objects only to sizes, which are right. */
static int free_work(void *work, lapack_int info)
{
    free(work);
    return info ? DUET_ETASK : 0;
}

static char form(const struct duet_call *call)
{
    const struct duet__tile_args *args = call->args;
    return args->form & DUET__TRANSPOSED ? 'T' : 'N';
}

static int geqrt(const struct duet_call *call)
{
    const struct duet_buffer *a = &call->buffers[0], *t = &call->buffers[1];
    lapack_int n = size(a->cols);
    void *work;
    int error = work_of(call, t, a->cols, &work);
    if (error)
        return error;
    return free_work(work, LAPACK(a, geqrt_work, n, n, inner(t, a->cols), a->data, size(a->ld),
                                  t->data, size(t->ld), work));
}

static int ormqr(const struct duet_call *call)
{
    const struct duet_buffer *v = &call->buffers[0], *t = &call->buffers[1], *c = &call->buffers[2];
    void *work;
    int error = work_of(call, t, c->cols, &work);
    if (error)
        return error;
    return free_work(work, LAPACK(c, gemqrt_work, 'L', form(call), size(c->rows), size(c->cols),
                                  size(v->cols), inner(t, v->cols), v->data, size(v->ld), t->data,
                                  size(t->ld), c->data, size(c->ld), work));
}

static int tsqrt(const struct duet_call *call)
{
    const struct duet_buffer *r = &call->buffers[0], *b = &call->buffers[1], *t = &call->buffers[2];
    void *work;
    int error = work_of(call, t, b->cols, &work);
    if (error)
        return error;
    return free_work(work, LAPACK(b, tpqrt_work, size(b->rows), size(b->cols), 0, inner(t, b->cols),
                                  r->data, size(r->ld), b->data, size(b->ld), t->data, size(t->ld),
                                  work));
}

static int tsmqr(const struct duet_call *call)
{
    const struct duet_buffer *v = &call->buffers[0], *t = &call->buffers[1];
    const struct duet_buffer *upper = &call->buffers[2], *lower = &call->buffers[3];
    void *work;
    int error = work_of(call, t, lower->cols, &work);
    if (error)
        return error;
    return free_work(work, LAPACK(lower, tpmqrt_work, 'L', form(call), size(lower->rows),
                                  size(lower->cols), size(v->cols), 0, inner(t, v->cols), v->data,
                                  size(v->ld), t->data, size(t->ld), upper->data, size(upper->ld),
                                  lower->data, size(lower->ld), work));
}

enum {
    LEAF = 16,         /* order below which columns are eliminated one by one */
    SWAP_COLUMNS = 32, /* columns in which rows are swapped at a time, as LAPACK's xLASWP */
};

/* ------------------------------------------------------------------------------------------- */
/* LU factorisation of a tile without pivoting, which LAPACK lacks                              */

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

static int getrf_nopiv(const struct duet_call *call)
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
/* LU factorisation with partial pivoting. Buffers 1 to buffer_count - 1 are tiles one below the
 * other, with as many rows as the first, but for the last. */

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

/* Copies all elements, or those on and above the diagonal. */
static void copy_tile(const struct duet_buffer *to, const struct duet_buffer *from, bool upper)
{
    for (size_t j = 0; j < to->cols; j++)
        memcpy(duet__window(to, 0, j, 1, 1).data, duet__window(from, 0, j, 1, 1).data,
               (upper ? j + 1 : to->rows) * to->element_bytes);
}

/* Copies the tiles into the panel, or back out of it. */
static void copy_panel(const struct duet_call *call, const struct duet_buffer *panel, bool back)
{
    size_t row = 0;
    for (size_t t = 1; t < call->buffer_count; t++) {
        const struct duet_buffer *tile = &call->buffers[t];
        struct duet_buffer window = duet__window(panel, row, 0, tile->rows, tile->cols);
        copy_tile(back ? tile : &window, back ? &window : tile, false);
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

static int getrf(const struct duet_call *call)
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

static int laswp(const struct duet_call *call)
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

/* ------------------------------------------------------------------------------------------- */
/*
 * LU factorisations with incremental pivoting: rows are interchanged within a tile, or
 * between two tiles, one below the other. The last row of a tile's factors has the interchanges;
 * the rows above have the multipliers that went up into the diagonal tile, a unit lower triangle
 * for each panel of as many columns. Interchange i of a panel of w columns is w + r for row r of
 * the lower tile, from 1; i for none. A diagonal tile has one panel, and is its own lower tile.
 */

/* Notes LAPACK's interchanges; `shift` is added to those that interchange something. */
static void note_interchanges(const struct duet_buffer *t, size_t first, size_t count,
                              const int32_t *pivots, size_t shift)
{
    for (size_t i = 0; i < count; i++) {
        size_t other = (size_t)pivots[i];
        double value = (double)(other == i + 1 ? other : other + shift);
        duet__store_values(duet__window(t, t->rows - 1, first + i, 1, 1).data, &value, 1,
                           t->element_bytes);
    }
}

/* Interchanges `count` rows of `upper`, by the columns of the factors from `first` on. */
static int interchange(const struct duet_call *call, const struct duet_buffer *t, size_t first,
                       size_t count, const struct duet_buffer *upper,
                       const struct duet_buffer *lower)
{
    for (size_t i = 0; i < count; i++) {
        double other = duet__view_get(t, t->rows - 1, first + i);
        if (other == (double)(i + 1))
            continue;
        if (!(other > (double)count && other <= (double)(count + lower->rows)))
            return duet_fail(call->message, DUET_ETASK,
                             "interchange %zu is with row %g, which is none of the %zu below it",
                             first + i + 1, other - (double)count, lower->rows);
        duet__blas_swap(upper, i, lower, (size_t)other - count - 1);
    }
    return 0;
}

/* Returns the error for LAPACK's info of columns from `first` on. */
static int info_error(const struct duet_call *call, size_t first, int info)
{
    return info ? duet_fail(call->message, DUET_ETASK,
                            "column %zu of a tile has no pivot but 0: the matrix is singular",
                            first + (size_t)info)
                : 0;
}

static int getrf_incpiv(const struct duet_call *call)
{
    const struct duet_buffer *a = &call->buffers[0], *t = &call->buffers[1];
    int32_t *pivots = malloc(a->cols * sizeof *pivots);
    if (!pivots)
        return duet_fail(call->message, DUET_ENOMEM, "no memory for %zu pivots", a->cols);
    int error = info_error(call, 0, duet__blas_getrf(a, pivots));
    note_interchanges(t, 0, a->cols, pivots, a->cols);
    free(pivots);
    return error;
}

static int gessm(const struct duet_call *call)
{
    const struct duet_buffer *l = &call->buffers[0], *t = &call->buffers[1], *c = &call->buffers[2];
    int error = interchange(call, t, 0, l->cols, c, c);
    if (!error)
        duet__blas_trsm(DUET__LEFT_LOWER_UNIT, l, c);
    return error;
}

/* Returns the number of columns of the panel that begins at column `first`. */
static size_t panel_width(const struct duet_buffer *t, size_t first)
{
    size_t inner = t->rows - 1;
    return t->cols - first < inner ? t->cols - first : inner;
}

/* Applies the elimination of the panel at `first` to rows of the upper tile and to the lower. */
static int transform(const struct duet_call *call, const struct duet_buffer *v,
                     const struct duet_buffer *t, size_t first, const struct duet_buffer *upper,
                     const struct duet_buffer *lower)
{
    size_t width = panel_width(t, first);
    struct duet_buffer l = duet__window(t, 0, first, width, width);
    struct duet_buffer below = duet__window(v, 0, first, v->rows, width);
    int error = interchange(call, t, first, width, upper, lower);
    if (error)
        return error;
    duet__blas_trsm(DUET__LEFT_LOWER_UNIT, &l, upper);
    duet__blas_gemm(false, -1, &below, upper, lower);
    return 0;
}

/* Factorises the panel at `first` in `room`, which holds as many columns of both tiles. */
static int eliminate_panel(const struct duet_call *call, size_t first, void *room, int32_t *pivots)
{
    const struct duet_buffer *u = &call->buffers[0], *b = &call->buffers[1], *t = &call->buffers[2];
    size_t width = panel_width(t, first);
    struct duet_buffer diagonal = duet__window(u, first, first, width, width);
    struct duet_buffer below = duet__window(b, 0, first, b->rows, width);
    struct duet_buffer multipliers = duet__window(t, 0, first, width, width);
    struct duet_buffer panel = below;
    panel.data = room;
    panel.rows = panel.ld = width + b->rows;
    struct duet_buffer top = duet__window(&panel, 0, 0, width, width);
    struct duet_buffer bottom = duet__window(&panel, width, 0, b->rows, width);
    memset(room, 0, panel.rows * width * panel.element_bytes);
    copy_tile(&top, &diagonal, true);
    copy_tile(&bottom, &below, false);
    int info = duet__blas_getrf(&panel, pivots);
    copy_tile(&diagonal, &top, true);
    copy_tile(&below, &bottom, false);
    copy_tile(&multipliers, &top, false);
    note_interchanges(t, first, width, pivots, 0);
    return info_error(call, first, info);
}

static int tstrf(const struct duet_call *call)
{
    const struct duet_buffer *u = &call->buffers[0], *b = &call->buffers[1], *t = &call->buffers[2];
    size_t width = panel_width(t, 0), bytes = (width + b->rows) * width * b->element_bytes;
    char *room = malloc(bytes + width * sizeof(int32_t)); /* a panel, and its interchanges */
    int error = 0;
    if (!room)
        return duet_fail(call->message, DUET_ENOMEM, "no memory for %zu bytes of a panel", bytes);
    for (size_t first = 0; !error && first < u->cols; first += width) {
        error = eliminate_panel(call, first, room, (void *)(room + bytes));
        size_t next = first + panel_width(t, first), rest = u->cols - next;
        if (error || !rest)
            continue;
        struct duet_buffer upper = duet__window(u, first, next, next - first, rest);
        struct duet_buffer lower = duet__window(b, 0, next, b->rows, rest);
        error = transform(call, b, t, first, &upper, &lower);
    }
    free(room);
    return error;
}

static int ssssm(const struct duet_call *call)
{
    const struct duet_buffer *v = &call->buffers[0], *t = &call->buffers[1];
    const struct duet_buffer *c = &call->buffers[2], *d = &call->buffers[3];
    size_t width = 0;
    int error = 0;
    for (size_t first = 0; !error && first < v->cols; first += width) {
        width = panel_width(t, first);
        struct duet_buffer upper = duet__window(c, first, 0, width, c->cols);
        error = transform(call, v, t, first, &upper, d);
    }
    return error;
}

/* ------------------------------------------------------------------------------------------- */
/* Kernels that are one call                                                                    */

static int gemm(const struct duet_call *call)
{
    const struct duet__tile_args *args = call->args;
    duet__blas_gemm(args->form & DUET__TRANSPOSED, args->form & DUET__MINUS ? -1 : 1,
                    &call->buffers[0], &call->buffers[1], &call->buffers[2]);
    return 0;
}

static int syrk(const struct duet_call *call)
{
    duet__blas_syrk(&call->buffers[0], &call->buffers[1]);
    return 0;
}

static int trsm(const struct duet_call *call)
{
    duet__blas_trsm(DUET__RIGHT_LOWER_TRANSPOSED, &call->buffers[0], &call->buffers[1]);
    return 0;
}

static int trsm_l(const struct duet_call *call)
{
    duet__blas_trsm(DUET__LEFT_LOWER_UNIT, &call->buffers[0], &call->buffers[1]);
    return 0;
}

static int trsm_r(const struct duet_call *call)
{
    duet__blas_trsm(DUET__RIGHT_UPPER, &call->buffers[0], &call->buffers[1]);
    return 0;
}

static int potrf(const struct duet_call *call)
{
    const struct duet_buffer *a = &call->buffers[0];
    int info = duet__blas_potrf(a);
    if (!info)
        return 0;
    return duet_fail(
        call->message, DUET_ETASK,
        "the leading minor of order %d of a tile of order %zu is not positive definite", info,
        a->rows);
}

static int axpy(const struct duet_call *call)
{
    const struct duet__axpy_args *args = call->args;
    duet__blas_axpy(args->alpha, &call->buffers[0], &call->buffers[1]);
    return 0;
}

static const struct duet__kernel kernels[] = {
    {"gemm", gemm},
    {"syrk", syrk},
    {"trsm", trsm},
    {"trsm_l", trsm_l},
    {"trsm_r", trsm_r},
    {"potrf", potrf},
    {"getrf_nopiv", getrf_nopiv},
    {"getrf", getrf},
    {"laswp", laswp},
    {"geqrt", geqrt},
    {"ormqr", ormqr},
    {"tsqrt", tsqrt},
    {"tsmqr", tsmqr},
    {"getrf_incpiv", getrf_incpiv},
    {"gessm", gessm},
    {"tstrf", tstrf},
    {"ssssm", ssssm},
    {"axpy", axpy},
    {NULL, NULL},
};

duet_kernel_fn duet__blas_kernel(const char *base)
{
    return duet__kernel_in(kernels, base);
}
