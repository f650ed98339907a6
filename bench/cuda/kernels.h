/* SPDX-License-Identifier: Apache-2.0 */
/* The peers' own kernels, for C. They enqueue, and return what cudaGetLastError says. */
#ifndef DUET_BENCH_CUDA_KERNELS_H
#define DUET_BENCH_CUDA_KERNELS_H

#include <stddef.h>

#include <cuda_runtime_api.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Does nothing. */
cudaError_t peers_launch_empty(cudaStream_t stream);
/* One step of Jacobi's iteration on n x n points, whose border stays; out and in differ. */
cudaError_t peers_launch_jacobi2d(cudaStream_t stream, size_t element, size_t n, const void *in,
                                  void *out);

#ifdef __cplusplus
}
#endif

#endif
