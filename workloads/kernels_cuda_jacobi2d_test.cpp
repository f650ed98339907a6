// SPDX-License-Identifier: Apache-2.0
/*
 * The code of the kernel jacobi2d for GPUs, compiled for the host: every thread of its grid runs,
 * one after another, and the results are the CPU's to the last bit, gaps included. Only a GPU can
 * tell whether nvcc's code does the same (kernels_cuda_test.c).
 */
#include <cuda_runtime.h>

#include <cstdlib>
#include <cstring>
#include <vector>

// a function and a structure with one name are usual in C
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow"
#include <glib.h>
#include "workloads/kernels_cuda.h"
#pragma GCC diagnostic pop

extern "C" int duet__kernel_jacobi2d(const struct duet_call *call);

namespace
{

// Variables that CUDA's compiler provides, for the thread that is running now.
dim3 block_index, thread_index;

struct buffers; // of the kernel

cudaError_t launch(const void *kernel, dim3 grid, dim3 block, void **arguments, size_t shared,
                   cudaStream_t stream);

} // namespace

#undef __global__
#undef __device__
#undef __launch_bounds__
#define __global__
#define __device__
#define __launch_bounds__(threads)
#define blockIdx block_index
#define threadIdx thread_index
#define cudaLaunchKernel launch
#define duet__cuda_jacobi2d jacobi2d_of_threads

extern "C" int jacobi2d_of_threads(const struct duet_buffer *given, void *stream);

#include "workloads/kernels_cuda_jacobi2d.cu" // NOLINT(bugprone-suspicious-include)

namespace
{

cudaError_t launch(const void *kernel, dim3 grid, dim3 block, void **arguments, size_t shared,
                   cudaStream_t stream)
{
    auto run = reinterpret_cast<void (*)(buffers, size_t, size_t)>(const_cast<void *>(kernel));
    g_assert_true(shared == 0 && stream == nullptr && block.y == 1 && block.z == 1 && grid.z == 1);
    g_assert_cmpuint(block.x, <=, 1024);
    g_assert_cmpuint(grid.y, <=, 65535);
    for (block_index.y = 0; block_index.y < grid.y; block_index.y++)
        for (block_index.x = 0; block_index.x < grid.x; block_index.x++)
            for (thread_index.x = 0; thread_index.x < block.x; thread_index.x++)
                run(*static_cast<buffers *>(arguments[0]), *static_cast<size_t *>(arguments[1]),
                    *static_cast<size_t *>(arguments[2]));
    return cudaSuccess;
}

// The buffers of a call on a block of rows x cols, columns `gap` elements apart, random.
template <typename Real> struct problem {
    std::vector<std::vector<Real>> memory;
    duet_buffer of[BUFFERS];

    problem(size_t rows, size_t cols, size_t gap)
    {
        GRand *random = g_rand_new_with_seed(static_cast<guint32>(rows + 1000 * cols));
        memory.resize(BUFFERS);
        for (int i = 0; i < BUFFERS; i++) {
            bool flat = i == FROM_NORTH || i == FROM_SOUTH || i == NORTH || i == SOUTH;
            bool high = i == FROM_WEST || i == FROM_EAST || i == WEST || i == EAST;
            size_t m = flat ? 1 : rows, n = high ? 1 : cols;
            memory[i].resize((m + gap) * n);
            for (Real &value : memory[i])
                value = static_cast<Real>(g_rand_double(random));
            of[i] = {memory[i].data(), m, n, m + gap, sizeof(Real), 1, (m + gap) * n};
        }
        g_rand_free(random);
    }
};

template <typename Real> void equal(size_t rows, size_t cols, size_t gap)
{
    problem<Real> by_cpu(rows, cols, gap), by_threads(rows, cols, gap);
    duet_call call = {};
    call.buffers = by_cpu.of;
    call.buffer_count = BUFFERS;
    g_assert_cmpint(duet__kernel_jacobi2d(&call), ==, 0);
    g_assert_cmpint(jacobi2d_of_threads(by_threads.of, nullptr), ==, 0);
    for (int i = 0; i < BUFFERS; i++)
        g_assert_cmpmem(by_threads.memory[i].data(), by_threads.memory[i].size() * sizeof(Real),
                        by_cpu.memory[i].data(), by_cpu.memory[i].size() * sizeof(Real));
}

void test_equal()
{
    const size_t sizes[] = {1, 2, 3, 4, 5, 8, 127, 128, 129, 300};
    for (size_t rows : sizes)
        for (size_t cols : sizes)
            for (size_t gap : {0, 3}) {
                equal<float>(rows, cols, gap);
                equal<double>(rows, cols, gap);
            }
}

} // namespace

TEST_MAIN(test_equal)
