/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Just as much of CUDA, cuBLAS, cuBLASXt and cuSOLVER as the peers use, on the host and at once:
 * with it tests run the peers' own code where there is no GPU. Handles and streams are never looked
 * at; memory of the "GPU" is the host's. PEERS_TEST_BREAK in the environment names a function whose
 * result is spoilt ("dgemm", "copy") or which fails ("malloc"), to test that it is noticed.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/cuda/peers.h"

static bool broken(const char *what)
{
    const char *chosen = getenv("PEERS_TEST_BREAK");
    return chosen && !strcmp(chosen, what);
}

/* NOLINTBEGIN(readability-*): CUDA has names of its own for parameters */

/* ------------------------------------------------------------------------------------------- */
/* Devices, memory                                                                              */

cudaError_t cudaGetDeviceCount(int *count)
{
    *count = broken("count") || broken("driver") ? 0 : 1;
    if (broken("driver"))
        return cudaErrorInsufficientDriver; /* as CUDA says where there is none */
    return *count ? cudaSuccess : cudaErrorNoDevice;
}

cudaError_t cudaSetDevice(int device)
{
    return device == 0 ? cudaSuccess : cudaErrorInvalidDevice;
}

cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *properties, int device)
{
    (void)device;
    memset(properties, 0, sizeof *properties);
    snprintf(properties->name, sizeof properties->name, "stand-in for a GPU");
    return cudaSuccess;
}

cudaError_t cudaMemGetInfo(size_t *available, size_t *total)
{
    *available = *total = broken("memory") ? 1 << 20 : (size_t)4 << 30;
    return cudaSuccess;
}

cudaError_t cudaDriverGetVersion(int *version)
{
    *version = broken("driver") ? 0 : CUDART_VERSION;
    return cudaSuccess;
}

cudaError_t cudaRuntimeGetVersion(int *version)
{
    *version = CUDART_VERSION;
    return cudaSuccess;
}

const char *cudaGetErrorName(cudaError_t error)
{
    return error == cudaErrorMemoryAllocation     ? "cudaErrorMemoryAllocation"
           : error == cudaErrorInsufficientDriver ? "cudaErrorInsufficientDriver"
                                                  : "cudaErrorNoDevice";
}

const char *cudaGetErrorString(cudaError_t error)
{
    return error == cudaErrorMemoryAllocation ? "out of memory" : "no CUDA-capable device";
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
    return *memory ? cudaSuccess : cudaErrorMemoryAllocation;
}

cudaError_t cudaFreeHost(void *memory)
{
    free(memory);
    return cudaSuccess;
}

cudaError_t cudaHostRegister(void *memory, size_t bytes, unsigned flags)
{
    return memory && bytes && flags == cudaHostRegisterDefault ? cudaSuccess
                                                               : cudaErrorMemoryAllocation;
}

cudaError_t cudaHostUnregister(void *memory)
{
    return memory ? cudaSuccess : cudaErrorMemoryAllocation;
}

/* ------------------------------------------------------------------------------------------- */
/* Streams and events: everything is done when it is asked for                                  */

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned flags)
{
    (void)flags;
    *stream = NULL;
    return cudaSuccess;
}

cudaError_t cudaStreamDestroy(cudaStream_t stream)
{
    (void)stream;
    return cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream)
{
    (void)stream;
    return cudaSuccess;
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags)
{
    (void)stream, (void)event, (void)flags;
    return cudaSuccess;
}

cudaError_t cudaDeviceSynchronize(void)
{
    return cudaSuccess;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned flags)
{
    (void)flags;
    *event = NULL;
    return cudaSuccess;
}

cudaError_t cudaEventDestroy(cudaEvent_t event)
{
    (void)event;
    return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream)
{
    (void)event, (void)stream;
    return cudaSuccess;
}

cudaError_t cudaEventQuery(cudaEvent_t event)
{
    (void)event;
    return cudaSuccess;
}

cudaError_t cudaEventSynchronize(cudaEvent_t event)
{
    (void)event;
    return cudaSuccess;
}

/* ------------------------------------------------------------------------------------------- */
/* Copies and kernels                                                                           */

cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind)
{
    memcpy(to, from, bytes);
    if (kind == cudaMemcpyDeviceToHost && broken("copy"))
        *(char *)to ^= 1;
    return cudaSuccess;
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind,
                            cudaStream_t stream)
{
    (void)stream;
    return cudaMemcpy(to, from, bytes, kind);
}

cudaError_t cudaMemcpy2DAsync(void *to, size_t to_pitch, const void *from, size_t from_pitch,
                              size_t width, size_t height, enum cudaMemcpyKind kind,
                              cudaStream_t stream)
{
    (void)kind, (void)stream;
    for (size_t i = 0; i < height; i++)
        memcpy((char *)to + i * to_pitch, (const char *)from + i * from_pitch, width);
    return cudaSuccess;
}

cudaError_t cudaMemsetAsync(void *memory, int value, size_t bytes, cudaStream_t stream)
{
    (void)stream;
    memset(memory, value, bytes);
    return cudaSuccess;
}

cudaError_t peers_launch_empty(cudaStream_t stream)
{
    (void)stream;
    return cudaSuccess;
}

cudaError_t peers_launch_jacobi2d(cudaStream_t stream, size_t element, size_t n, const void *in,
                                  void *out)
{
    (void)stream;
    for (size_t i = 1; i + 1 < n; i++)
        for (size_t j = 1; j + 1 < n; j++) {
            size_t at = i * n + j;
            if (element == sizeof(float)) {
                const float *from = in;
                ((float *)out)[at] =
                    0.25f * (from[at - 1] + from[at + 1] + from[at - n] + from[at + n]);
            } else {
                const double *from = in;
                ((double *)out)[at] =
                    0.25 * (from[at - 1] + from[at + 1] + from[at - n] + from[at + n]);
            }
        }
    if (broken("jacobi2d"))
        memset((char *)out + (n + 1) * element, 0, (n - 2) * element * (n - 2));
    return cudaSuccess;
}

/* NOLINTEND(readability-*) */
