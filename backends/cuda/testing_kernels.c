/* SPDX-License-Identifier: Apache-2.0 */
/* The tests' kernels for GPUs; see testing_kernels.h. */
#include "backends/cuda/testing_kernels.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>

#include <cuda_runtime_api.h>

/* A call in flight. */
struct flight {
    testing_body body;
    const void *args;
    int *status;
    unsigned char *bytes; /* page-locked, or NULL */
    size_t count;
    _Atomic(bool) *used;
};

static struct {
    unsigned char *bytes;
    _Atomic(bool) used[TESTING_CUDA_FLIGHT];
} pool;

static int check(const struct duet_call *call, const char *name, cudaError_t error)
{
    if (error)
        return duet_fail(call->message, DUET_ETASK, "%s: %s", name, cudaGetErrorString(error));
    return DUET_OK;
}

int testing_cuda_start(void)
{
    void *bytes;
    if (cudaSetDevice(0))
        return DUET_EABSENT;
    if (cudaHostAlloc(&bytes,
                      (size_t)TESTING_CUDA_FLIGHT * TESTING_CUDA_BYTES + TESTING_CUDA_SHARED,
                      cudaHostAllocPortable))
        return DUET_ENOMEM;
    pool.bytes = bytes;
    return DUET_OK;
}

void testing_cuda_stop(void)
{
    (void)cudaFreeHost(pool.bytes);
    pool.bytes = NULL;
}

void *testing_cuda_shared(void)
{
    return pool.bytes + (size_t)TESTING_CUDA_FLIGHT * TESTING_CUDA_BYTES;
}

/* On a thread of CUDA's, in stream order. */
static void run(void *argument)
{
    const struct flight *flight = argument;
    *flight->status = flight->body(flight->args, flight->bytes, flight->count);
}

static void finish(void *argument)
{
    struct flight *flight = argument;
    if (flight->used)
        *flight->used = false;
    free(flight);
}

/* Memory for a buffer; false if too many are in flight. */
static bool take(struct flight *flight)
{
    for (unsigned i = 0; i < TESTING_CUDA_FLIGHT; i++) {
        bool free_one = false;
        if (!atomic_compare_exchange_strong(&pool.used[i], &free_one, true))
            continue;
        flight->used = &pool.used[i];
        flight->bytes = pool.bytes + (size_t)i * TESTING_CUDA_BYTES;
        return true;
    }
    return false;
}

/* In page-locked memory and back again; the flight is gone afterwards, or the last call's. */
static int enqueue(const struct duet_call *call, struct flight *flight)
{
    cudaStream_t stream = call->stream;
    void *data = call->buffer_count ? call->buffers[0].data : NULL;
    size_t count = flight->count;
    int error = DUET_OK;
    if (data)
        error = check(call, "cudaMemcpyAsync",
                      cudaMemcpyAsync(flight->bytes, data, count, cudaMemcpyDeviceToHost, stream));
    if (!error)
        error = check(call, "cudaLaunchHostFunc", cudaLaunchHostFunc(stream, run, flight));
    if (error) {
        finish(flight);
        return error;
    }
    if (data)
        error = check(call, "cudaMemcpyAsync",
                      cudaMemcpyAsync(data, flight->bytes, count, cudaMemcpyHostToDevice, stream));
    int last = check(call, "cudaLaunchHostFunc", cudaLaunchHostFunc(stream, finish, flight));
    return error ? error : last;
}

int testing_cuda_call(const struct duet_call *call, testing_body body)
{
    struct flight *flight = calloc(1, sizeof *flight);
    if (!flight)
        return DUET_ENOMEM;
    flight->body = body;
    flight->args = call->args;
    flight->status = call->status;
    if (call->buffer_count) {
        const struct duet_buffer *buffer = &call->buffers[0];
        flight->count = buffer->rows * buffer->cols * buffer->element_bytes;
        if (flight->count > TESTING_CUDA_BYTES || !take(flight)) {
            free(flight);
            return duet_fail(call->message, DUET_ENOMEM, "too many test kernels in flight");
        }
    }
    return enqueue(call, flight);
}
