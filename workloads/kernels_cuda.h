/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kernels of the workloads' tasks on GPUs programmed with CUDA; kernels_cuda_absent.c stands in
 * where there is no toolkit. Semantics are those of the CPUs' kernels (kernels.h), except that a
 * pivot which is not finite is not noticed: the factors then have NaN in them.
 *
 * A kernel is called on the thread of the GPU's worker. It only enqueues on call->stream. An error
 * that is seen at once is returned, with the name of the CUDA call in call->message; one of the
 * mathematics goes to call->status, as LAPACK's info, in stream order.
 */
#ifndef DUET_KERNELS_CUDA_H
#define DUET_KERNELS_CUDA_H

#include <duet/duet.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Returns the code for the kernel of this base name (both precisions), or NULL if there is none. */
duet_kernel_fn duet__cuda_kernel(const char *base);

/*
 * Enqueues the kernel jacobi2d on a stream (a cudaStream_t) of the current device: `buffers` are
 * the ten of its call, in device memory, in the order of kernels.c, with 4 or 8 bytes an
 * element. Results are the CPU's to the last bit. Returns a cudaError_t.
 */
int duet__cuda_jacobi2d(const struct duet_buffer *buffers, void *stream);

/* Enqueues a kernel that does nothing. Returns a cudaError_t. */
int duet__cuda_launch_empty(void *stream);

#ifdef __cplusplus
}
#endif
#endif
