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

/* Calls function NAME of cuBLAS with a handle and these arguments; the value is that of
 * duet__cublas_check. */
#define CUBLAS(handles, message, name, ...)                                                        \
    duet__cublas_check((handles)->library, (handles)->library->name((handles)->blas, __VA_ARGS__), \
                       #name, message)

/* Calls function NAME of cuSOLVER; the value is that of duet__cusolver_check. */
#define CUSOLVER(handles, message, name, ...)                                                      \
    duet__cusolver_check((handles)->library->name((handles)->solver, __VA_ARGS__), #name, message)

static int gemm(const struct duet_call *call)
{
    const struct duet__tile_args *args = call->args;
    const struct duet_buffer *a = &call->buffers[0], *b = &call->buffers[1], *c = &call->buffers[2];
    cublasOperation_t trans = args->form & DUET__TRANSPOSED ? CUBLAS_OP_T : CUBLAS_OP_N;
    int m = blas_int(c->rows), n = blas_int(c->cols), k = blas_int(a->cols);
    int lda = blas_int(a->ld), ldb = blas_int(b->ld), ldc = blas_int(c->ld);
    const double alpha = args->form & DUET__MINUS ? -1 : 1, one = 1;
    const float alpha_single = (float)alpha, one_single = 1;
    struct duet__cuda_handles *handles;
    int error = handles_of(call, &handles);
    if (error)
        return error;
    if (is_single(c))
        return CUBLAS(handles, call->message, cublasSgemm, CUBLAS_OP_N, trans, m, n, k,
                      &alpha_single, a->data, lda, b->data, ldb, &one_single, c->data, ldc);
    return CUBLAS(handles, call->message, cublasDgemm, CUBLAS_OP_N, trans, m, n, k, &alpha, a->data,
                  lda, b->data, ldb, &one, c->data, ldc);
}

static int syrk(const struct duet_call *call)
{
    const struct duet_buffer *a = &call->buffers[0], *c = &call->buffers[1];
    int n = blas_int(c->rows), k = blas_int(a->cols), lda = blas_int(a->ld), ldc = blas_int(c->ld);
    const double minus = -1, one = 1;
    const float minus_single = -1, one_single = 1;
    struct duet__cuda_handles *handles;
    int error = handles_of(call, &handles);
    if (error)
        return error;
    if (is_single(c))
        return CUBLAS(handles, call->message, cublasSsyrk, CUBLAS_FILL_MODE_LOWER, CUBLAS_OP_N, n,
                      k, &minus_single, a->data, lda, &one_single, c->data, ldc);
    return CUBLAS(handles, call->message, cublasDsyrk, CUBLAS_FILL_MODE_LOWER, CUBLAS_OP_N, n, k,
                  &minus, a->data, lda, &one, c->data, ldc);
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
    const double one = 1;
    const float one_single = 1;
    struct duet__cuda_handles *handles;
    int error = handles_of(call, &handles);
    if (error)
        return error;
    if (is_single(b))
        return CUBLAS(handles, call->message, cublasStrsm, kind.side, kind.uplo, kind.trans,
                      kind.diag, m, n, &one_single, t->data, ldt, b->data, ldb);
    return CUBLAS(handles, call->message, cublasDtrsm, kind.side, kind.uplo, kind.trans, kind.diag,
                  m, n, &one, t->data, ldt, b->data, ldb);
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
    if (is_single(y))
        return CUBLAS(handles, call->message, cublasSaxpy, blas_int(y->rows), &alpha_single,
                      x->data, 1, y->data, 1);
    return CUBLAS(handles, call->message, cublasDaxpy, blas_int(y->rows), &args->alpha, x->data, 1,
                  y->data, 1);
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

static int potrf_single(struct factoring *f, const struct duet_call *call)
{
    int error = CUSOLVER(f->handles, call->message, cusolverDnSpotrf_bufferSize,
                         CUBLAS_FILL_MODE_LOWER, f->n, f->a->data, f->ld, &f->elements);
    if (!error)
        error = get_workspace(f, call);
    if (!error)
        error = CUSOLVER(f->handles, call->message, cusolverDnSpotrf, CUBLAS_FILL_MODE_LOWER, f->n,
                         f->a->data, f->ld, f->workspace, f->elements, f->info);
    return error;
}

static int potrf_double(struct factoring *f, const struct duet_call *call)
{
    int error = CUSOLVER(f->handles, call->message, cusolverDnDpotrf_bufferSize,
                         CUBLAS_FILL_MODE_LOWER, f->n, f->a->data, f->ld, &f->elements);
    if (!error)
        error = get_workspace(f, call);
    if (!error)
        error = CUSOLVER(f->handles, call->message, cusolverDnDpotrf, CUBLAS_FILL_MODE_LOWER, f->n,
                         f->a->data, f->ld, f->workspace, f->elements, f->info);
    return error;
}

static int potrf(const struct duet_call *call)
{
    struct factoring f;
    int error = call_begin(&f, call);
    if (!error)
        error = is_single(f.a) ? potrf_single(&f, call) : potrf_double(&f, call);
    return error ? error : report(&f, call);
}

/* Factorises without pivoting, as there is no room for pivots. */
static int getrf_single(struct factoring *f, const struct duet_call *call)
{
    int error = CUSOLVER(f->handles, call->message, cusolverDnSgetrf_bufferSize, f->n, f->n,
                         f->a->data, f->ld, &f->elements);
    if (!error)
        error = get_workspace(f, call);
    if (!error)
        error = CUSOLVER(f->handles, call->message, cusolverDnSgetrf, f->n, f->n, f->a->data, f->ld,
                         f->workspace, NULL, f->info);
    return error;
}

static int getrf_double(struct factoring *f, const struct duet_call *call)
{
    int error = CUSOLVER(f->handles, call->message, cusolverDnDgetrf_bufferSize, f->n, f->n,
                         f->a->data, f->ld, &f->elements);
    if (!error)
        error = get_workspace(f, call);
    if (!error)
        error = CUSOLVER(f->handles, call->message, cusolverDnDgetrf, f->n, f->n, f->a->data, f->ld,
                         f->workspace, NULL, f->info);
    return error;
}

static int getrf_nopiv(const struct duet_call *call)
{
    struct factoring f;
    int error = call_begin(&f, call);
    if (!error)
        error = is_single(f.a) ? getrf_single(&f, call) : getrf_double(&f, call);
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
