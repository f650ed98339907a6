/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kernels of tests that work on a GPU's memory, without code of a GPU: they copy to page-locked
 * memory, let the stream call a function of the host there, and copy back. All of it is enqueued,
 * as kernels of users are. One that blocks is code for a GPU (testing_gpu.h).
 * testing_kernels_absent.c stands in without CUDA.
 */
#ifndef DUET_CUDA_TESTING_KERNELS_H
#define DUET_CUDA_TESTING_KERNELS_H

#include <stddef.h>

#include <duet/duet.h>

enum {
    TESTING_CUDA_BYTES = 1 << 20, /* largest buffer */
    TESTING_CUDA_FLIGHT = 4,      /* kernels with a buffer that may be in flight */
    TESTING_CUDA_SHARED = 4096,   /* bytes */
};

/*
 * Makes the page-locked memory, on the first device, once before any kernel; and takes it away when
 * none is in flight. Negative enum duet_error.
 */
int testing_cuda_start(void);
void testing_cuda_stop(void);

/* Works on the bytes of the kernel's first buffer (NULL without); the result is its status. */
typedef int (*testing_body)(const void *args, unsigned char *bytes, size_t count);

/* Calls `body` from a kernel, which returns the result. The first buffer, if any, must be dense. */
int testing_cuda_call(const struct duet_call *call, testing_body body);

/* Page-locked memory for TESTING_CUDA_SHARED bytes that kernels and the host share; one at a time.
 */
void *testing_cuda_shared(void);

#endif
