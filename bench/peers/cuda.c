/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuBLAS and cuSOLVER with all arrays in the GPU's memory, copied from page-locked memory of the
 * host one after the other; and cuBLASXt's product, out of the host's memory. The GPU is CUDA's
 * first one.
 */
#include <stdlib.h>
#include <string.h>

#include <cublasXt.h>
#include <cuda_runtime_api.h>
#include <cusolverDn.h>

#include "bench/peers/peers.h"
#include "bench/timing.h"

static bool opened; /* handles and arrays exist, for the largest order */
static cudaStream_t stream;
static void *device[ARRAYS_MAX]; /* the arrays */
static cublasHandle_t blas;
static cublasXtHandle_t xt;

/* of cuSOLVER */
static cusolverDnHandle_t solver;
static cusolverDnParams_t parameters;
static cudaDataType type;
static void *workspace, *host_workspace;
static size_t workspace_bytes, host_workspace_bytes;
static int64_t *pivots;
static int *info;

static void check_cuda(cudaError_t status, const char *call)
{
    bool no_place = status == cudaErrorNoDevice || status == cudaErrorInsufficientDriver ||
                    status == cudaErrorMemoryAllocation;
    if (status != cudaSuccess)
        peer_end(no_place ? PEER_SKIPPED : 1, "%s: %s (%s)", call, cudaGetErrorString(status),
                 cudaGetErrorName(status));
}

static void check_cublas(cublasStatus_t status, const char *call)
{
    if (status != CUBLAS_STATUS_SUCCESS)
        peer_end(1, "%s: %s", call, cublasGetStatusName(status));
}

static void check_cusolver(cusolverStatus_t status, const char *call)
{
    if (status != CUSOLVER_STATUS_SUCCESS)
        peer_end(1, "%s: status %d of cuSOLVER", call, (int)status);
}
#define CUDA(call) check_cuda((call), #call)
#define CUBLAS(call) check_cublas((call), #call)
#define CUSOLVER(call) check_cusolver((call), #call)

void *peer_allocate(size_t bytes)
{
    void *memory = NULL;
    CUDA(cudaMallocHost(&memory, bytes));
    return memory;
}

static void *allocate_device(size_t bytes)
{
    void *memory = NULL;
    CUDA(cudaMalloc(&memory, bytes));
    return memory;
}

static void wait_for_all(void)
{
    CUDA(cudaStreamSynchronize(stream));
}

static void copy_in(const struct problem *p)
{
    for (unsigned i = 0; i < p->arrays; i++)
        CUDA(cudaMemcpyAsync(device[i], p->given[i], p->array_bytes, cudaMemcpyHostToDevice,
                             stream));
    wait_for_all();
}

static void copy_out(const struct problem *p)
{
    CUDA(cudaMemcpyAsync(p->result, device[p->arrays - 1], p->array_bytes, cudaMemcpyDeviceToHost,
                         stream));
    wait_for_all();
}

/* ------------------------------------------------------------------------------------------- */
/* cuBLAS                                                                                       */

static const float one_s = 1, alpha_s = (float)ALPHA;
static const double one_d = 1, alpha_d = ALPHA;

static void gemm(const struct problem *p)
{
    int n = (int)p->n;
    if (p->precision == 's')
        CUBLAS(cublasSgemm(blas, CUBLAS_OP_N, CUBLAS_OP_N, n, n, n, &one_s, device[0], n, device[1],
                           n, &one_s, device[2], n));
    else
        CUBLAS(cublasDgemm(blas, CUBLAS_OP_N, CUBLAS_OP_N, n, n, n, &one_d, device[0], n, device[1],
                           n, &one_d, device[2], n));
    wait_for_all();
}

static void axpy(const struct problem *p)
{
    if (p->precision == 's')
        CUBLAS(cublasSaxpy(blas, (int)p->n, &alpha_s, device[0], 1, device[1], 1));
    else
        CUBLAS(cublasDaxpy(blas, (int)p->n, &alpha_d, device[0], 1, device[1], 1));
    wait_for_all();
}

static void gemm_xt(const struct problem *p)
{
    size_t n = p->n;
    if (p->precision == 's')
        CUBLAS(cublasXtSgemm(xt, CUBLAS_OP_N, CUBLAS_OP_N, n, n, n, &one_s, p->given[0], n,
                             p->given[1], n, &one_s, p->result, n));
    else
        CUBLAS(cublasXtDgemm(xt, CUBLAS_OP_N, CUBLAS_OP_N, n, n, n, &one_d, p->given[0], n,
                             p->given[1], n, &one_d, p->result, n));
    CUDA(cudaDeviceSynchronize());
}

/* ------------------------------------------------------------------------------------------- */
/* cuSOLVER's 64-bit functions                                                                  */

static void open_solver(const struct problem *p)
{
    int64_t n = (int64_t)p->n;
    size_t before = workspace_bytes, host_before = host_workspace_bytes;
    if (!pivots) {
        type = p->precision == 's' ? CUDA_R_32F : CUDA_R_64F;
        CUSOLVER(cusolverDnCreate(&solver));
        CUSOLVER(cusolverDnSetStream(solver, stream));
        CUSOLVER(cusolverDnCreateParams(&parameters));
        pivots = allocate_device(p->n * sizeof *pivots);
        info = allocate_device(sizeof *info);
    }
    if (p->operation->kind == CHOLESKY)
        CUSOLVER(cusolverDnXpotrf_bufferSize(solver, parameters, CUBLAS_FILL_MODE_LOWER, n, type,
                                             device[0], n, type, &workspace_bytes,
                                             &host_workspace_bytes));
    else
        CUSOLVER(cusolverDnXgetrf_bufferSize(solver, parameters, n, n, type, device[0], n, type,
                                             &workspace_bytes, &host_workspace_bytes));
    /* one byte more, as an allocation of 0 bytes fails */
    if (!workspace || workspace_bytes > before) {
        CUDA(cudaFree(workspace));
        workspace = allocate_device(workspace_bytes + 1);
    }
    if (!host_workspace || host_workspace_bytes > host_before) {
        free(host_workspace);
        host_workspace = zeroed(host_workspace_bytes + 1);
    }
}

static void factorise(const struct problem *p)
{
    int64_t n = (int64_t)p->n;
    if (p->operation->kind == CHOLESKY)
        CUSOLVER(cusolverDnXpotrf(solver, parameters, CUBLAS_FILL_MODE_LOWER, n, type, device[0], n,
                                  type, workspace, workspace_bytes, host_workspace,
                                  host_workspace_bytes, info));
    else
        CUSOLVER(cusolverDnXgetrf(solver, parameters, n, n, type, device[0], n, pivots, type,
                                  workspace, workspace_bytes, host_workspace, host_workspace_bytes,
                                  info));
    wait_for_all();
}

static void factors_out(const struct problem *p)
{
    int failed;
    copy_out(p);
    CUDA(cudaMemcpy(&failed, info, sizeof failed, cudaMemcpyDeviceToHost));
    if (failed)
        peer_end(1, "%s: info = %d", p->operation->name, failed);
    if (p->operation->kind == LU)
        CUDA(cudaMemcpy(p->pivots, pivots, p->n * sizeof *pivots, cudaMemcpyDeviceToHost));
}

/* ------------------------------------------------------------------------------------------- */

static void open_blas(const struct problem *p)
{
    CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    if (!p->operation->in) {
        CUBLAS(cublasXtCreate(&xt));
        CUBLAS(cublasXtDeviceSelect(xt, 1, (int[]){0}));
        if (p->block)
            CUBLAS(cublasXtSetBlockDim(xt, (int)p->block));
        return;
    }
    CUBLAS(cublasCreate(&blas));
    CUBLAS(cublasSetStream(blas, stream));
    for (unsigned i = 0; i < p->arrays; i++)
        device[i] = allocate_device(p->array_bytes);
}

void peer_open(const struct problem *p)
{
    if (!opened)
        open_blas(p);
    opened = true;
    if (p->operation->kind == CHOLESKY || p->operation->kind == LU)
        open_solver(p);
}

const struct operation peer_operations[] = {
    {"gemm", "cublas", PRODUCT, copy_in, gemm, copy_out},
    {"gemm-xt", "cublasxt", PRODUCT, .compute = gemm_xt},
    {"cholesky", "cusolver", CHOLESKY, copy_in, factorise, factors_out},
    {"lu", "cusolver", LU, copy_in, factorise, factors_out},
    {"saxpy", "cublas", AXPY, copy_in, axpy, copy_out},
    {0},
};
