/* SPDX-License-Identifier: Apache-2.0 */
/* The empty task on data of the overhead benchmarks, on an NVIDIA GPU. */
#include <duet/duet.h>

static __global__ void bump(unsigned long long *cell)
{
    ++*cell;
}

extern "C" int run_bump_on_gpu(const struct duet_call *call)
{
    void *cell = call->buffers[call->buffer_count - 1].data;
    bump<<<1, 1, 0, static_cast<cudaStream_t>(call->stream)>>>(
        static_cast<unsigned long long *>(cell));
    cudaError_t status = cudaGetLastError();
    if (status == cudaSuccess)
        return DUET_OK;
    return duet_fail(call->message, DUET_ETASK, "bump: %s (%s)", cudaGetErrorString(status),
                     cudaGetErrorName(status));
}
