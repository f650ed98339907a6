/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kernels of LU factorisations with incremental pivoting: rows are interchanged within a tile, or
 * between two tiles, one below the other. The last row of a tile's factors has the interchanges;
 * the rows above have the multipliers that went up into the diagonal tile, a unit lower triangle
 * for each panel of as many columns. Interchange i of a panel of w columns is w + r for row r of
 * the lower tile, from 1; i for none. A diagonal tile has one panel, and is its own lower tile.
 */
#include "workloads/kernels_blas_incremental.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "workloads/data.h"
#include "workloads/kernels_blas.h"

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

int duet__kernel_getrf_incpiv(const struct duet_call *call)
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

int duet__kernel_gessm(const struct duet_call *call)
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

/* Copies all elements, or those on and above the diagonal. */
static void copy_tile(const struct duet_buffer *to, const struct duet_buffer *from, bool upper)
{
    for (size_t j = 0; j < to->cols; j++)
        memcpy(duet__window(to, 0, j, 1, 1).data, duet__window(from, 0, j, 1, 1).data,
               (upper ? j + 1 : to->rows) * to->element_bytes);
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

int duet__kernel_tstrf(const struct duet_call *call)
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

int duet__kernel_ssssm(const struct duet_call *call)
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
