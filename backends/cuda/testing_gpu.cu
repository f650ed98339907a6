/* SPDX-License-Identifier: Apache-2.0 */
/* The tests' kernels that are code for GPUs; see testing_gpu.h. One thread each. */
#include "backends/cuda/testing_gpu.h"

#include <cuda_runtime.h>

namespace
{

/* duet_random_next on a copy of its state. */
__device__ uint64_t mix(uint64_t x)
{
    x += 0x9e3779b97f4a7c15;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
    x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
    return x ^ (x >> 31);
}

__device__ uint64_t &word(const duet_buffer &buffer, size_t row, size_t col)
{
    return static_cast<uint64_t *>(buffer.data)[row + col * buffer.ld];
}

/* Reads all, then writes all, as `compute` in core/testing_program.h does. */
__device__ void compute(testing_gpu_work *work)
{
    uint64_t sum = work->salt;
    for (size_t i = 0; i < work->count; i++)
        for (size_t col = 0; (work->modes[i] & DUET_R) && col < work->buffers[i].cols; col++)
            for (size_t row = 0; row < work->buffers[i].rows; row++)
                sum = mix(sum ^ word(work->buffers[i], row, col));
    for (size_t i = 0; i < work->count; i++)
        for (size_t col = 0; (work->modes[i] & DUET_W) && col < work->buffers[i].cols; col++)
            for (size_t row = 0; row < work->buffers[i].rows; row++)
                word(work->buffers[i], row, col) = mix(sum + 31 * i + row + 1000 * col);
    work->sum = sum;
}

__global__ void run(testing_gpu_work *work)
{
    if (work->failure)
        *work->status = work->failure;
    else if (!work->add_words)
        compute(work);
    for (uint64_t j = 0; !work->failure && j < work->add_words; j++)
        word(work->buffers[0], j, 0) += mix(work->salt + j);
}

__global__ void wait_for(volatile bool *waiting, const volatile bool *go)
{
    *waiting = true;
    __threadfence_system();
    while (!*go)
        ;
}

} // namespace

int testing_gpu_compute(void *stream, testing_gpu_work *work, void (*on_host)(testing_gpu_work *))
{
    run<<<1, 1, 0, static_cast<cudaStream_t>(stream)>>>(work);
    return cudaGetLastError();
}

int testing_gpu_wait(void *stream, void *waiting, void *go)
{
    wait_for<<<1, 1, 0, static_cast<cudaStream_t>(stream)>>>(static_cast<bool *>(waiting),
                                                             static_cast<bool *>(go));
    return cudaGetLastError();
}
