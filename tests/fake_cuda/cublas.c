/* SPDX-License-Identifier: Apache-2.0 */
/* cuBLAS on CBLAS: the functions that kernels_cuda_handles.h lists. Scalars are the host's. */
#include <cblas.h>
#include <cublas_v2.h>
#include <stdlib.h>

#include "tests/fake_cuda/cublas.h"
#include "tests/fake_cuda/internal.h"
#include "tests/fake_cuda/library.h"

struct cublasContext {
    struct fake_library library; /* first, as in every handle */
};

static cublasStatus_t create(cublasHandle_t *out)
{
    int device;
    *out = NULL;
    if (cudaGetDevice(&device))
        return CUBLAS_STATUS_NOT_INITIALIZED;
    *out = calloc(1, sizeof **out);
    if (!*out)
        abort();
    (*out)->library.device = (unsigned)device;
    return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t destroy(cublasHandle_t handle)
{
    if (!handle)
        return CUBLAS_STATUS_NOT_INITIALIZED;
    free(handle);
    return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t set_stream(cublasHandle_t handle, cudaStream_t stream)
{
    if (!handle)
        return CUBLAS_STATUS_NOT_INITIALIZED;
    handle->library.stream = stream;
    return CUBLAS_STATUS_SUCCESS;
}

static const char *status_name(cublasStatus_t status)
{
    switch (status) {
    case CUBLAS_STATUS_SUCCESS:
        return "CUBLAS_STATUS_SUCCESS";
    case CUBLAS_STATUS_NOT_INITIALIZED:
        return "CUBLAS_STATUS_NOT_INITIALIZED";
    case CUBLAS_STATUS_INVALID_VALUE:
        return "CUBLAS_STATUS_INVALID_VALUE";
    case CUBLAS_STATUS_EXECUTION_FAILED:
        return "CUBLAS_STATUS_EXECUTION_FAILED";
    default:
        return "CUBLAS_STATUS_INTERNAL_ERROR";
    }
}

/* Arguments of any of the functions, with their matrices a, b and c. */
struct call {
    bool single;
    CBLAS_TRANSPOSE trans_a, trans_b;
    CBLAS_SIDE side;
    CBLAS_UPLO uplo;
    CBLAS_DIAG diag;
    int m, n, k;
    double alpha, beta;
    void *a, *b, *c;
    int lda, ldb, ldc;
};

static CBLAS_TRANSPOSE trans_of(cublasOperation_t operation)
{
    return operation == CUBLAS_OP_N ? CblasNoTrans : CblasTrans;
}

static CBLAS_UPLO uplo_of(cublasFillMode_t fill)
{
    return fill == CUBLAS_FILL_MODE_LOWER ? CblasLower : CblasUpper;
}

/* True if sizes are wrong, or the leading dimension is too small. */
static bool wrong(int rows, int cols, int ld)
{
    return rows < 0 || cols < 0 || ld < (rows > 1 ? rows : 1);
}

/* Returns a matrix of `call`, whose address is in it. */
static struct fake_matrix matrix(const struct call *call, void *const *address, int rows, int cols,
                                 int ld)
{
    return (struct fake_matrix){(void **)(uintptr_t)address, (size_t)rows, (size_t)cols, (size_t)ld,
                                call->single ? sizeof(float) : sizeof(double)};
}

static cublasStatus_t compute(cublasHandle_t handle, void (*run)(void *argument), struct call *call,
                              const struct fake_matrix *matrices, size_t count)
{
    cudaError_t error = fake_compute(&handle->library, run, call, sizeof *call, matrices, count);
    return error ? CUBLAS_STATUS_EXECUTION_FAILED : CUBLAS_STATUS_SUCCESS;
}

/* ------------------------------------------------------------------------------------------- */
/* Products                                                                                     */

static void run_gemm(void *argument)
{
    const struct call *x = argument;
    if (x->single)
        cblas_sgemm(CblasColMajor, x->trans_a, x->trans_b, x->m, x->n, x->k, (float)x->alpha, x->a,
                    x->lda, x->b, x->ldb, (float)x->beta, x->c, x->ldc);
    else
        cblas_dgemm(CblasColMajor, x->trans_a, x->trans_b, x->m, x->n, x->k, x->alpha, x->a, x->lda,
                    x->b, x->ldb, x->beta, x->c, x->ldc);
}

static cublasStatus_t gemm(cublasHandle_t handle, struct call call)
{
    bool normal_a = call.trans_a == CblasNoTrans, normal_b = call.trans_b == CblasNoTrans;
    int rows_a = normal_a ? call.m : call.k, cols_a = normal_a ? call.k : call.m;
    int rows_b = normal_b ? call.k : call.n, cols_b = normal_b ? call.n : call.k;
    if (!handle)
        return CUBLAS_STATUS_NOT_INITIALIZED;
    if (wrong(rows_a, cols_a, call.lda) || wrong(rows_b, cols_b, call.ldb) ||
        wrong(call.m, call.n, call.ldc))
        return CUBLAS_STATUS_INVALID_VALUE;
    const struct fake_matrix matrices[] = {matrix(&call, &call.a, rows_a, cols_a, call.lda),
                                           matrix(&call, &call.b, rows_b, cols_b, call.ldb),
                                           matrix(&call, &call.c, call.m, call.n, call.ldc)};
    return compute(handle, run_gemm, &call, matrices, 3);
}

static void run_syrk(void *argument)
{
    const struct call *x = argument;
    if (x->single)
        cblas_ssyrk(CblasColMajor, x->uplo, x->trans_a, x->n, x->k, (float)x->alpha, x->a, x->lda,
                    (float)x->beta, x->c, x->ldc);
    else
        cblas_dsyrk(CblasColMajor, x->uplo, x->trans_a, x->n, x->k, x->alpha, x->a, x->lda, x->beta,
                    x->c, x->ldc);
}

static cublasStatus_t syrk(cublasHandle_t handle, struct call call)
{
    bool normal = call.trans_a == CblasNoTrans;
    int rows = normal ? call.n : call.k, cols = normal ? call.k : call.n;
    if (!handle)
        return CUBLAS_STATUS_NOT_INITIALIZED;
    if (wrong(rows, cols, call.lda) || wrong(call.n, call.n, call.ldc))
        return CUBLAS_STATUS_INVALID_VALUE;
    const struct fake_matrix matrices[] = {matrix(&call, &call.a, rows, cols, call.lda),
                                           matrix(&call, &call.c, call.n, call.n, call.ldc)};
    return compute(handle, run_syrk, &call, matrices, 2);
}

/* Defines the two precisions of both products, as cuBLAS declares them. */
#define DEFINE_PRODUCTS(prefix, type, is_single)                                                   \
    static cublasStatus_t prefix##gemm(cublasHandle_t handle, cublasOperation_t trans_a,           \
                                       cublasOperation_t trans_b, int m, int n, int k,             \
                                       const type *alpha, const type *a, int lda, const type *b,   \
                                       int ldb, const type *beta, type *c, int ldc)                \
    {                                                                                              \
        return gemm(handle, (struct call){.single = is_single,                                     \
                                          .trans_a = trans_of(trans_a),                            \
                                          .trans_b = trans_of(trans_b),                            \
                                          .m = m,                                                  \
                                          .n = n,                                                  \
                                          .k = k,                                                  \
                                          .alpha = *alpha,                                         \
                                          .beta = *beta,                                           \
                                          .a = (void *)(uintptr_t)a,                               \
                                          .b = (void *)(uintptr_t)b,                               \
                                          .c = c,                                                  \
                                          .lda = lda,                                              \
                                          .ldb = ldb,                                              \
                                          .ldc = ldc});                                            \
    }                                                                                              \
    static cublasStatus_t prefix##syrk(cublasHandle_t handle, cublasFillMode_t uplo,               \
                                       cublasOperation_t trans, int n, int k, const type *alpha,   \
                                       const type *a, int lda, const type *beta, type *c, int ldc) \
    {                                                                                              \
        return syrk(handle, (struct call){.single = is_single,                                     \
                                          .trans_a = trans_of(trans),                              \
                                          .uplo = uplo_of(uplo),                                   \
                                          .n = n,                                                  \
                                          .k = k,                                                  \
                                          .alpha = *alpha,                                         \
                                          .beta = *beta,                                           \
                                          .a = (void *)(uintptr_t)a,                               \
                                          .c = c,                                                  \
                                          .lda = lda,                                              \
                                          .ldc = ldc});                                            \
    }

DEFINE_PRODUCTS(s, float, true)
DEFINE_PRODUCTS(d, double, false)

/* ------------------------------------------------------------------------------------------- */
/* Triangles and vectors                                                                        */

static void run_trsm(void *argument)
{
    const struct call *x = argument;
    if (x->single)
        cblas_strsm(CblasColMajor, x->side, x->uplo, x->trans_a, x->diag, x->m, x->n,
                    (float)x->alpha, x->a, x->lda, x->b, x->ldb);
    else
        cblas_dtrsm(CblasColMajor, x->side, x->uplo, x->trans_a, x->diag, x->m, x->n, x->alpha,
                    x->a, x->lda, x->b, x->ldb);
}

static cublasStatus_t trsm(cublasHandle_t handle, struct call call)
{
    int order = call.side == CblasLeft ? call.m : call.n;
    if (!handle)
        return CUBLAS_STATUS_NOT_INITIALIZED;
    if (wrong(order, order, call.lda) || wrong(call.m, call.n, call.ldb))
        return CUBLAS_STATUS_INVALID_VALUE;
    const struct fake_matrix matrices[] = {matrix(&call, &call.a, order, order, call.lda),
                                           matrix(&call, &call.b, call.m, call.n, call.ldb)};
    return compute(handle, run_trsm, &call, matrices, 2);
}

static void run_axpy(void *argument)
{
    const struct call *x = argument;
    if (x->single)
        cblas_saxpy(x->n, (float)x->alpha, x->a, x->lda, x->b, x->ldb);
    else
        cblas_daxpy(x->n, x->alpha, x->a, x->lda, x->b, x->ldb);
}

/* Adds vectors: the increments are leading dimensions of matrices of one row. */
static cublasStatus_t axpy(cublasHandle_t handle, struct call call)
{
    if (!handle)
        return CUBLAS_STATUS_NOT_INITIALIZED;
    if (call.n < 0 || call.lda < 1 || call.ldb < 1)
        return CUBLAS_STATUS_INVALID_VALUE;
    const struct fake_matrix matrices[] = {matrix(&call, &call.a, 1, call.n, call.lda),
                                           matrix(&call, &call.b, 1, call.n, call.ldb)};
    return compute(handle, run_axpy, &call, matrices, 2);
}

#define DEFINE_REST(prefix, type, is_single)                                                       \
    static cublasStatus_t prefix##trsm(cublasHandle_t handle, cublasSideMode_t side,               \
                                       cublasFillMode_t uplo, cublasOperation_t trans,             \
                                       cublasDiagType_t diag, int m, int n, const type *alpha,     \
                                       const type *a, int lda, type *b, int ldb)                   \
    {                                                                                              \
        return trsm(handle,                                                                        \
                    (struct call){.single = is_single,                                             \
                                  .side = side == CUBLAS_SIDE_LEFT ? CblasLeft : CblasRight,       \
                                  .uplo = uplo_of(uplo),                                           \
                                  .trans_a = trans_of(trans),                                      \
                                  .diag = diag == CUBLAS_DIAG_UNIT ? CblasUnit : CblasNonUnit,     \
                                  .m = m,                                                          \
                                  .n = n,                                                          \
                                  .alpha = *alpha,                                                 \
                                  .a = (void *)(uintptr_t)a,                                       \
                                  .b = b,                                                          \
                                  .lda = lda,                                                      \
                                  .ldb = ldb});                                                    \
    }                                                                                              \
    static cublasStatus_t prefix##axpy(cublasHandle_t handle, int n, const type *alpha,            \
                                       const type *x, int incx, type *y, int incy)                 \
    {                                                                                              \
        return axpy(handle, (struct call){.single = is_single,                                     \
                                          .n = n,                                                  \
                                          .alpha = *alpha,                                         \
                                          .a = (void *)(uintptr_t)x,                               \
                                          .b = y,                                                  \
                                          .lda = incx,                                             \
                                          .ldb = incy});                                           \
    }

DEFINE_REST(s, float, true)
DEFINE_REST(d, double, false)

void fake_cublas(struct duet__cuda_library *out)
{
    out->cublasCreate = create;
    out->cublasDestroy = destroy;
    out->cublasSetStream = set_stream;
    out->cublasGetStatusName = status_name;
    out->cublasSgemm = sgemm;
    out->cublasDgemm = dgemm;
    out->cublasSsyrk = ssyrk;
    out->cublasDsyrk = dsyrk;
    out->cublasStrsm = strsm;
    out->cublasDtrsm = dtrsm;
    out->cublasSaxpy = saxpy;
    out->cublasDaxpy = daxpy;
}
