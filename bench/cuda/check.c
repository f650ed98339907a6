/* SPDX-License-Identifier: Apache-2.0 */
/* Calls of the peers that end the program when they fail, and memory that is there. */
#include "bench/cuda/peers.h"
#include "bench/timing.h"

void peers_cuda(cudaError_t status, const char *call)
{
    if (status != cudaSuccess)
        peers_fail("%s: %s (%s)", call, cudaGetErrorString(status), cudaGetErrorName(status));
}

void peers_cublas(cublasStatus_t status, const char *call)
{
    if (status != CUBLAS_STATUS_SUCCESS)
        peers_fail("%s: %s (%s)", call, cublasGetStatusString(status), cublasGetStatusName(status));
}

void peers_cusolver(cusolverStatus_t status, const char *call)
{
    if (status != CUSOLVER_STATUS_SUCCESS)
        peers_fail("%s: status %d of cuSOLVER", call, (int)status);
}

void peers_need(const struct peers *peers, double bytes)
{
    const double reserve = 0x1p29; /* of libraries */
    size_t available, total;
    CUDA(cudaMemGetInfo(&available, &total));
    if (bytes + reserve > (double)available)
        peers_skip("%s of order %zu needs %.2f GiB of the GPU's memory, %.2f GiB are free",
                   peers->mode, peers->n, bytes * 0x1p-30, (double)available * 0x1p-30);
}

void *peers_device(size_t bytes)
{
    void *memory = NULL;
    CUDA(cudaMalloc(&memory, bytes));
    return memory;
}

void *peers_pinned(size_t bytes)
{
    void *memory = NULL;
    CUDA(cudaMallocHost(&memory, bytes));
    return memory;
}

bool peers_again(const struct peers *peers, const struct peers_times *times)
{
    if (times->count == 0)
        return true;
    return times->count < peers->repeats && seconds() - peers->start_s < peers->limit_s;
}

void peers_add(struct peers_times *times, bool *warm, double elapsed_s)
{
    if (*warm)
        times->values[times->count++] = elapsed_s;
    *warm = true;
}
