/* SPDX-License-Identifier: Apache-2.0 */
/* The part of testing_cuda.c that computes: cuBLAS, cuBLASXt and cuSOLVER by CBLAS and LAPACKE. */
#include <stdlib.h>
#include <string.h>

#include <cblas.h>
#include <cublasXt.h>
#include <cusolverDn.h>
#include <lapacke.h>

static void spoil(const char *what, double *value)
{
    const char *chosen = getenv("PEERS_TEST_BREAK");
    if (chosen && !strcmp(chosen, what))
        *value += 1;
}

/* NOLINTBEGIN(readability-*): CUDA has names of its own for parameters */

/* ------------------------------------------------------------------------------------------- */
/* cuBLAS                                                                                       */

cublasStatus_t cublasCreate(cublasHandle_t *handle)
{
    *handle = NULL;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetStream(cublasHandle_t handle, cudaStream_t stream)
{
    return CUBLAS_STATUS_SUCCESS;
}

const char *cublasGetStatusName(cublasStatus_t status)
{
    return status == CUBLAS_STATUS_SUCCESS ? "CUBLAS_STATUS_SUCCESS" : "another status";
}

cublasStatus_t cublasSgemm(cublasHandle_t handle, cublasOperation_t transa,
                           cublasOperation_t transb, int m, int n, int k, const float *alpha,
                           const float *a, int lda, const float *b, int ldb, const float *beta,
                           float *c, int ldc)
{
    cblas_sgemm(CblasColMajor, CblasNoTrans, CblasNoTrans, m, n, k, *alpha, a, lda, b, ldb, *beta,
                c, ldc);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasDgemm(cublasHandle_t handle, cublasOperation_t transa,
                           cublasOperation_t transb, int m, int n, int k, const double *alpha,
                           const double *a, int lda, const double *b, int ldb, const double *beta,
                           double *c, int ldc)
{
    cblas_dgemm(CblasColMajor, CblasNoTrans, CblasNoTrans, m, n, k, *alpha, a, lda, b, ldb, *beta,
                c, ldc);
    spoil("dgemm", c);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSaxpy(cublasHandle_t handle, int n, const float *alpha, const float *x,
                           int incx, float *y, int incy)
{
    cblas_saxpy(n, *alpha, x, incx, y, incy);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasDaxpy(cublasHandle_t handle, int n, const double *alpha, const double *x,
                           int incx, double *y, int incy)
{
    cblas_daxpy(n, *alpha, x, incx, y, incy);
    spoil("daxpy", y);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasXtCreate(cublasXtHandle_t *handle)
{
    *handle = NULL;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasXtDeviceSelect(cublasXtHandle_t handle, int count, int devices[])
{
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasXtSetBlockDim(cublasXtHandle_t handle, int block)
{
    return block > 0 ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_INVALID_VALUE;
}

cublasStatus_t cublasXtSgemm(cublasXtHandle_t handle, cublasOperation_t transa,
                             cublasOperation_t transb, size_t m, size_t n, size_t k,
                             const float *alpha, const float *a, size_t lda, const float *b,
                             size_t ldb, const float *beta, float *c, size_t ldc)
{
    return cublasSgemm(NULL, transa, transb, (int)m, (int)n, (int)k, alpha, a, (int)lda, b,
                       (int)ldb, beta, c, (int)ldc);
}

cublasStatus_t cublasXtDgemm(cublasXtHandle_t handle, cublasOperation_t transa,
                             cublasOperation_t transb, size_t m, size_t n, size_t k,
                             const double *alpha, const double *a, size_t lda, const double *b,
                             size_t ldb, const double *beta, double *c, size_t ldc)
{
    return cublasDgemm(NULL, transa, transb, (int)m, (int)n, (int)k, alpha, a, (int)lda, b,
                       (int)ldb, beta, c, (int)ldc);
}

/* ------------------------------------------------------------------------------------------- */
/* cuSOLVER                                                                                     */

cusolverStatus_t cusolverDnCreate(cusolverDnHandle_t *handle)
{
    *handle = NULL;
    return CUSOLVER_STATUS_SUCCESS;
}

cusolverStatus_t cusolverDnSetStream(cusolverDnHandle_t handle, cudaStream_t stream)
{
    return CUSOLVER_STATUS_SUCCESS;
}

cusolverStatus_t cusolverDnCreateParams(cusolverDnParams_t *parameters)
{
    *parameters = NULL;
    return CUSOLVER_STATUS_SUCCESS;
}

cusolverStatus_t cusolverDnXpotrf_bufferSize(cusolverDnHandle_t handle,
                                             cusolverDnParams_t parameters, cublasFillMode_t uplo,
                                             int64_t n, cudaDataType type, const void *a,
                                             int64_t lda, cudaDataType compute, size_t *device,
                                             size_t *host)
{
    *device = *host = 0;
    return CUSOLVER_STATUS_SUCCESS;
}

cusolverStatus_t cusolverDnXpotrf(cusolverDnHandle_t handle, cusolverDnParams_t parameters,
                                  cublasFillMode_t uplo, int64_t n, cudaDataType type, void *a,
                                  int64_t lda, cudaDataType compute, void *device,
                                  size_t device_bytes, void *host, size_t host_bytes, int *info)
{
    *info = type == CUDA_R_32F ? LAPACKE_spotrf(LAPACK_COL_MAJOR, 'L', (int)n, a, (int)lda)
                               : LAPACKE_dpotrf(LAPACK_COL_MAJOR, 'L', (int)n, a, (int)lda);
    spoil("dpotrf", a);
    return CUSOLVER_STATUS_SUCCESS;
}

cusolverStatus_t cusolverDnXgetrf_bufferSize(cusolverDnHandle_t handle,
                                             cusolverDnParams_t parameters, int64_t m, int64_t n,
                                             cudaDataType type, const void *a, int64_t lda,
                                             cudaDataType compute, size_t *device, size_t *host)
{
    *device = *host = 0;
    return CUSOLVER_STATUS_SUCCESS;
}

cusolverStatus_t cusolverDnXgetrf(cusolverDnHandle_t handle, cusolverDnParams_t parameters,
                                  int64_t m, int64_t n, cudaDataType type, void *a, int64_t lda,
                                  int64_t *pivots, cudaDataType compute, void *device,
                                  size_t device_bytes, void *host, size_t host_bytes, int *info)
{
    lapack_int *narrow = calloc((size_t)n, sizeof *narrow);
    *info = type == CUDA_R_32F
                ? LAPACKE_sgetrf(LAPACK_COL_MAJOR, (int)m, (int)n, a, (int)lda, narrow)
                : LAPACKE_dgetrf(LAPACK_COL_MAJOR, (int)m, (int)n, a, (int)lda, narrow);
    for (int64_t i = 0; i < n; i++)
        pivots[i] = narrow[i];
    free(narrow);
    spoil("dgetrf", a);
    return CUSOLVER_STATUS_SUCCESS;
}

/* NOLINTEND(readability-*) */
