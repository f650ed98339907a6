/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kernel jacobi2d on GPUs: computes a block of points, and the borders for its neighbours, from
 * the block and the borders of the step before. jacobi2d.c lists the accesses, kernels.c
 * has the kernel for CPUs.
 */
#include <cuda_runtime.h>

#include "workloads/kernels_cuda.h"

namespace
{

/* Buffers of the call, those that are read first. */
enum { OLD, FROM_NORTH, FROM_SOUTH, FROM_WEST, FROM_EAST, NEW, NORTH, SOUTH, WEST, EAST, BUFFERS };

enum {
    THREADS = 128, /* of a block: neighbouring rows, adjacent in memory */
    COLUMNS = 4,   /* of a thread: the point east of one is its next */
};

struct buffers {
    duet_buffer of[BUFFERS];
};

template <typename Real> __device__ Real &at(const duet_buffer &matrix, size_t i, size_t j)
{
    return static_cast<Real *>(matrix.data)[i + j * matrix.ld];
}

/* Returns the old point at (i,j), where j may be one outside of the block. */
template <typename Real> __device__ Real beside(const buffers &b, size_t i, size_t j, size_t cols)
{
    if (j == static_cast<size_t>(-1))
        return at<Real>(b.of[FROM_WEST], i, 0);
    return j < cols ? at<Real>(b.of[OLD], i, j) : at<Real>(b.of[FROM_EAST], i, 0);
}

/* Stores a new point, also in the borders if it lies on the edge of the block. */
template <typename Real>
__device__ void store(const buffers &b, size_t i, size_t j, size_t rows, size_t cols, Real value)
{
    at<Real>(b.of[NEW], i, j) = value;
    if (i == 0)
        at<Real>(b.of[NORTH], 0, j) = value;
    if (i == rows - 1)
        at<Real>(b.of[SOUTH], 0, j) = value;
    if (j == 0)
        at<Real>(b.of[WEST], i, 0) = value;
    if (j == cols - 1)
        at<Real>(b.of[EAST], i, 0) = value;
}

/* Adds in the order of the CPU's kernel, and multiplies without adding, so that nothing is fused:
 * results are equal to the last bit. */
template <typename Real>
__global__ void __launch_bounds__(THREADS) step(buffers b, size_t rows, size_t cols)
{
    size_t i = blockIdx.x * static_cast<size_t>(THREADS) + threadIdx.x;
    size_t first = blockIdx.y * static_cast<size_t>(COLUMNS);
    size_t last = first + COLUMNS < cols ? first + COLUMNS : cols;
    if (i >= rows)
        return;
    Real west = beside<Real>(b, i, first - 1, cols), middle = beside<Real>(b, i, first, cols);
    for (size_t j = first; j < last; j++) {
        Real east = beside<Real>(b, i, j + 1, cols);
        Real north = i ? at<Real>(b.of[OLD], i - 1, j) : at<Real>(b.of[FROM_NORTH], 0, j);
        Real south =
            i + 1 < rows ? at<Real>(b.of[OLD], i + 1, j) : at<Real>(b.of[FROM_SOUTH], 0, j);
        store<Real>(b, i, j, rows, cols, ((north + south) + (west + east)) * Real(0.25));
        west = middle;
        middle = east;
    }
}

} // namespace

int duet__cuda_jacobi2d(const struct duet_buffer *given, void *stream)
{
    buffers b;
    for (int i = 0; i < BUFFERS; i++)
        b.of[i] = given[i];
    size_t rows = given[NEW].rows, cols = given[NEW].cols;
    void *arguments[] = {&b, &rows, &cols};
    dim3 grid(static_cast<unsigned>((rows + THREADS - 1) / THREADS),
              static_cast<unsigned>((cols + COLUMNS - 1) / COLUMNS));
    const void *kernel = given[NEW].element_bytes == sizeof(float)
                             ? reinterpret_cast<const void *>(step<float>)
                             : reinterpret_cast<const void *>(step<double>);
    return cudaLaunchKernel(kernel, grid, dim3(THREADS), arguments, 0,
                            static_cast<cudaStream_t>(stream));
}
