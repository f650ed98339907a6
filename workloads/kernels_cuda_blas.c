/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels that are one call of cuBLAS or cuSOLVER, in the precision of their buffers, and the list
 * of all kernels for GPUs. The call itself reads scalars from the host's memory. */
#include <stdbool.h>

#include "workloads/kernels.h"
#include "workloads/kernels_cuda.h"
#include "workloads/kernels_cuda_handles.h"
#include "workloads/tiles.h"

static bool is_single(const struct duet_buffer *a)
{
    return a->element_bytes == sizeof(float);
}

/* Converts a size or stride for BLAS; checks of the problem bound it (2^29 at most). */
static int blas_int(size_t size)
{
    return (int)size;
}

static int handles_of(const struct duet_call *call, struct duet__cuda_handles **out)
{
    return duet__cuda_handles(out, (cudaStream_t)call->stream, call->message);
}

/* Calls a routine of cuBLAS with a handle and these arguments in the precision of a buffer; the
 * value is that of duet__cublas_check. */
#define CUBLAS(a, handles, message, name, ...)                                                     \
    (is_single(a)                                                                                  \
         ? duet__cublas_check((handles)->library,                                                  \
                              (handles)->library->cublasS##name((handles)->blas, __VA_ARGS__),     \
                              "cublasS" #name, message)                                            \
         : duet__cublas_check((handles)->library,                                                  \
                              (handles)->library->cublasD##name((handles)->blas, __VA_ARGS__),     \
                              "cublasD" #name, message))

/* Calls a routine of cuSOLVER with a handle and these arguments in the precision of a buffer; the
 * value is that of duet__cusolver_check. */
#define CUSOLVER(a, handles, message, name, ...)                                                   \
    (is_single(a) ? duet__cusolver_check((handles)->library->cusolverDnS##name((handles)->solver,  \
                                                                               __VA_ARGS__),       \
                                         "cusolverDnS" #name, message)                             \
                  : duet__cusolver_check((handles)->library->cusolverDnD##name((handles)->solver,  \
                                                                               __VA_ARGS__),       \
                                         "cusolverDnD" #name, message))

/* Returns the address of 1, or of -1 if `minus`, in the precision of a buffer. */
static const void *unit(const struct duet_buffer *a, bool minus)
{
    static const double doubles[] = {1, -1};
    static const float singles[] = {1, -1};
    return is_single(a) ? (const void *)&singles[minus] : &doubles[minus];
}

static int gemm(const struct duet_call *call)
{
    const struct duet__tile_args *args = call->args;
    const struct duet_buffer *a = &call->buffers[0], *b = &call->buffers[1], *c = &call->buffers[2];
    cublasOperation_t trans = args->form & DUET__TRANSPOSED ? CUBLAS_OP_T : CUBLAS_OP_N;
    int m = blas_int(c->rows), n = blas_int(c->cols), k = blas_int(a->cols);
    int lda = blas_int(a->ld), ldb = blas_int(b->ld), ldc = blas_int(c->ld);
    struct duet__cuda_handles *handles;
    int error = handles_of(call, &handles);
    if (error)
        return error;
    return CUBLAS(c, handles, call->message, gemm, CUBLAS_OP_N, trans, m, n, k,
                  unit(c, args->form & DUET__MINUS), a->data, lda, b->data, ldb, unit(c, false),
                  c->data, ldc);
}

static int syrk(const struct duet_call *call)
{
    const struct duet_buffer *a = &call->buffers[0], *c = &call->buffers[1];
    int n = blas_int(c->rows), k = blas_int(a->cols), lda = blas_int(a->ld), ldc = blas_int(c->ld);
    struct duet__cuda_handles *handles;
    int error = handles_of(call, &handles);
    if (error)
        return error;
    return CUBLAS(c, handles, call->message, syrk, CUBLAS_FILL_MODE_LOWER, CUBLAS_OP_N, n, k,
                  unit(c, true), a->data, lda, unit(c, false), c->data, ldc);
}

/* A triangular matrix in BLAS's words. */
struct triangle {
    cublasSideMode_t side;
    cublasFillMode_t uplo;
    cublasOperation_t trans;
    cublasDiagType_t diag;
};

/* B := B T^-1 or T^-1 B. */
static int solve(const struct duet_call *call, struct triangle kind)
{
    const struct duet_buffer *t = &call->buffers[0], *b = &call->buffers[1];
    int m = blas_int(b->rows), n = blas_int(b->cols), ldt = blas_int(t->ld), ldb = blas_int(b->ld);
    struct duet__cuda_handles *handles;
    int error = handles_of(call, &handles);
    if (error)
        return error;
    return CUBLAS(b, handles, call->message, trsm, kind.side, kind.uplo, kind.trans, kind.diag, m,
                  n, unit(b, false), t->data, ldt, b->data, ldb);
}

static int trsm(const struct duet_call *call)
{
    return solve(call, (struct triangle){CUBLAS_SIDE_RIGHT, CUBLAS_FILL_MODE_LOWER, CUBLAS_OP_T,
                                         CUBLAS_DIAG_NON_UNIT});
}

static int trsm_l(const struct duet_call *call)
{
    return solve(call, (struct triangle){CUBLAS_SIDE_LEFT, CUBLAS_FILL_MODE_LOWER, CUBLAS_OP_N,
                                         CUBLAS_DIAG_UNIT});
}

static int trsm_r(const struct duet_call *call)
{
    return solve(call, (struct triangle){CUBLAS_SIDE_RIGHT, CUBLAS_FILL_MODE_UPPER, CUBLAS_OP_N,
                                         CUBLAS_DIAG_NON_UNIT});
}

static int axpy(const struct duet_call *call)
{
    const struct duet__axpy_args *args = call->args;
    const struct duet_buffer *x = &call->buffers[0], *y = &call->buffers[1];
    const float alpha_single = (float)args->alpha;
    struct duet__cuda_handles *handles;
    int error = handles_of(call, &handles);
    if (error)
        return error;
    return CUBLAS(y, handles, call->message, axpy, blas_int(y->rows),
                  is_single(y) ? (const void *)&alpha_single : &args->alpha, x->data, 1, y->data,
                  1);
}

/* ------------------------------------------------------------------------------------------- */
/* Factorisations of tiles                                                                      */

/* State of a factorisation. */
struct factoring {
    struct duet__cuda_handles *handles;
    const struct duet_buffer *a;
    int n, ld;
    int elements;    /* of the workspace */
    void *workspace; /* in the device's memory, like info */
    int *info;
};

static int call_begin(struct factoring *f, const struct duet_call *call)
{
    const struct duet_buffer *a = &call->buffers[0];
    *f = (struct factoring){.a = a, .n = blas_int(a->rows), .ld = blas_int(a->ld)};
    int error = handles_of(call, &f->handles);
    return error ? error : duet__cuda_solver(f->handles, call->message);
}

/* Gets the workspace; f->elements is set before. */
static int get_workspace(struct factoring *f, const struct duet_call *call)
{
    return duet__cuda_workspace(f->handles, (size_t)f->elements * f->a->element_bytes,
                                &f->workspace, &f->info, call->message);
}

/* Makes the info of cuSOLVER the status of the kernel. */
static int report(const struct factoring *f, const struct duet_call *call)
{
    return duet__cudart_check(cudaMemcpyAsync(call->status, f->info, sizeof *f->info,
                                              cudaMemcpyDeviceToHost, f->handles->stream),
                              "cudaMemcpyAsync", call->message);
}

static int potrf(const struct duet_call *call)
{
    struct factoring f;
    int error = call_begin(&f, call);
    if (!error)
        error = CUSOLVER(f.a, f.handles, call->message, potrf_bufferSize, CUBLAS_FILL_MODE_LOWER,
                         f.n, f.a->data, f.ld, &f.elements);
    if (!error)
        error = get_workspace(&f, call);
    if (!error)
        error = CUSOLVER(f.a, f.handles, call->message, potrf, CUBLAS_FILL_MODE_LOWER, f.n,
                         f.a->data, f.ld, f.workspace, f.elements, f.info);
    return error ? error : report(&f, call);
}

/* Factorises without pivoting, as there is no room for pivots. */
static int getrf_nopiv(const struct duet_call *call)
{
    struct factoring f;
    int error = call_begin(&f, call);
    if (!error)
        error = CUSOLVER(f.a, f.handles, call->message, getrf_bufferSize, f.n, f.n, f.a->data, f.ld,
                         &f.elements);
    if (!error)
        error = get_workspace(&f, call);
    if (!error)
        error = CUSOLVER(f.a, f.handles, call->message, getrf, f.n, f.n, f.a->data, f.ld,
                         f.workspace, NULL, f.info);
    return error ? error : report(&f, call);
}

/* ------------------------------------------------------------------------------------------- */

static int jacobi2d(const struct duet_call *call)
{
    return duet__cudart_check((cudaError_t)duet__cuda_jacobi2d(call->buffers, call->stream),
                              "cudaLaunchKernel", call->message);
}

static int empty(const struct duet_call *call)
{
    return duet__cudart_check((cudaError_t)duet__cuda_launch_empty(call->stream),
                              "cudaLaunchKernel", call->message);
}

static const struct duet__kernel kernels[] = {
    {"gemm", gemm},         {"syrk", syrk},   {"trsm", trsm},   {"trsm_l", trsm_l},
    {"trsm_r", trsm_r},     {"axpy", axpy},   {"potrf", potrf}, {"getrf_nopiv", getrf_nopiv},
    {"jacobi2d", jacobi2d}, {"empty", empty}, {NULL, NULL},
};

duet_kernel_fn duet__cuda_kernel(const char *base)
{
    return duet__kernel_in(kernels, base);
}

int duet__cuda_about(struct duet_message *message)
{
    return duet__cuda_library(message) ? DUET_OK : DUET_EABSENT;
}
