/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Just as much of CUDA, cuBLAS, cuBLASXt and cuSOLVER as cuda.c uses, on the host and at once: with
 * it tests run that code where there is no GPU. Handles and streams are never looked at; memory of
 * the "GPU" is the host's. PEERS_TEST_BREAK in the environment names a function whose result is
 * spoilt ("dgemm", "copy") or what is missing ("malloc": memory, "driver").
 */
#include <stdlib.h>
#include <string.h>

#include <cuda_runtime_api.h>

#include "bench/peers/peers.h"

static bool broken(const char *what)
{
    const char *chosen = getenv("PEERS_TEST_BREAK");
    return chosen && !strcmp(chosen, what);
}

/* NOLINTBEGIN(readability-*): CUDA has names of its own for parameters */

const char *cudaGetErrorName(cudaError_t error)
{
    return error == cudaErrorMemoryAllocation ? "cudaErrorMemoryAllocation"
                                              : "cudaErrorInsufficientDriver";
}

const char *cudaGetErrorString(cudaError_t error)
{
    return error == cudaErrorMemoryAllocation ? "out of memory" : "CUDA driver version";
}

cudaError_t cudaMalloc(void **memory, size_t bytes)
{
    *memory = broken("malloc") ? NULL : malloc(bytes);
    return *memory ? cudaSuccess : cudaErrorMemoryAllocation;
}

cudaError_t cudaFree(void *memory)
{
    free(memory);
    return cudaSuccess;
}

cudaError_t cudaMallocHost(void **memory, size_t bytes)
{
    *memory = malloc(bytes);
    return broken("driver") ? cudaErrorInsufficientDriver : cudaSuccess;
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned flags)
{
    *stream = NULL;
    return cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream)
{
    return cudaSuccess;
}

cudaError_t cudaDeviceSynchronize(void)
{
    return cudaSuccess;
}

cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind)
{
    memcpy(to, from, bytes);
    if (kind == cudaMemcpyDeviceToHost && broken("copy"))
        memset(to, 0, bytes);
    return cudaSuccess;
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind,
                            cudaStream_t stream)
{
    return cudaMemcpy(to, from, bytes, kind);
}

/* NOLINTEND(readability-*) */
