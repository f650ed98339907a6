/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels on tiles and vectors that are one call of BLAS or LAPACK, and the list of all kernels. */
#include "workloads/kernels.h"
#include "workloads/kernels_blas.h"
#include "workloads/kernels_blas_incremental.h"
#include "workloads/kernels_blas_lu.h"
#include "workloads/kernels_blas_qr.h"
#include "workloads/tiles.h"

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
    {"getrf_nopiv", duet__kernel_getrf_nopiv},
    {"getrf", duet__kernel_getrf},
    {"laswp", duet__kernel_laswp},
    {"geqrt", duet__kernel_geqrt},
    {"ormqr", duet__kernel_ormqr},
    {"tsqrt", duet__kernel_tsqrt},
    {"tsmqr", duet__kernel_tsmqr},
    {"getrf_incpiv", duet__kernel_getrf_incpiv},
    {"gessm", duet__kernel_gessm},
    {"tstrf", duet__kernel_tstrf},
    {"ssssm", duet__kernel_ssssm},
    {"axpy", axpy},
    {NULL, NULL},
};

duet_kernel_fn duet__blas_kernel(const char *base)
{
    return duet__kernel_in(kernels, base);
}
