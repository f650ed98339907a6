/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels of the peers: nothing at all, and one step of Jacobi's iteration. */
#include "bench/cuda/kernels.h"

static __global__ void empty(void)
{
}

template <typename real> static __global__ void jacobi2d(size_t n, const real *in, real *out)
{
    size_t j = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
    size_t i = blockIdx.y * (size_t)blockDim.y + threadIdx.y;
    if (i < 1 || j < 1 || i + 1 >= n || j + 1 >= n)
        return;
    const real *at = in + i * n + j;
    out[i * n + j] = real(0.25) * (at[-1] + at[1] + *(at - n) + at[n]);
}

extern "C" cudaError_t peers_launch_empty(cudaStream_t stream)
{
    empty<<<1, 1, 0, stream>>>();
    return cudaGetLastError();
}

extern "C" cudaError_t peers_launch_jacobi2d(cudaStream_t stream, size_t element, size_t n,
                                             const void *in, void *out)
{
    const dim3 block(32, 8);
    const dim3 grid(unsigned((n + block.x - 1) / block.x), unsigned((n + block.y - 1) / block.y));
    if (element == sizeof(float))
        jacobi2d<<<grid, block, 0, stream>>>(n, (const float *)in, (float *)out);
    else
        jacobi2d<<<grid, block, 0, stream>>>(n, (const double *)in, (double *)out);
    return cudaGetLastError();
}
