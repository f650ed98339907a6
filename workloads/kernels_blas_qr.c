/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels of QR factorisations, by LAPACK's xGEQRT, xGEMQRT, xTPQRT and xTPMQRT. */
#include "workloads/kernels_blas_qr.h"

#include <stdlib.h>

#include <lapacke.h>

#include "workloads/tiles.h"

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

int duet__kernel_geqrt(const struct duet_call *call)
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

int duet__kernel_ormqr(const struct duet_call *call)
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

int duet__kernel_tsqrt(const struct duet_call *call)
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

int duet__kernel_tsmqr(const struct duet_call *call)
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
