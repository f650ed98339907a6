/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kernels of tests that are code for GPUs (testing_gpu.cu); the fake CUDA has functions of the host
 * in their place. What they are told lies in page-locked memory, which GPUs reach at its address.
 */
#ifndef DUET_CUDA_TESTING_GPU_H
#define DUET_CUDA_TESTING_GPU_H

#include <stddef.h>
#include <stdint.h>

#include <duet/duet.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { TESTING_GPU_BUFFERS = 500 };

/* A task of a random program (core/testing_program.h), as one thread of a GPU computes it. */
struct testing_gpu_work {
    uint64_t salt, sum; /* sum: what it has read, written at its end */
    uint64_t add_words; /* 0, or: it adds to so many words of its buffer, and nothing else */
    int failure;        /* not 0: it leaves that as its status, and nothing else */
    int *status;
    size_t count;
    uint8_t modes[TESTING_GPU_BUFFERS];
    struct duet_buffer buffers[TESTING_GPU_BUFFERS];
};

/*
 * Enqueues the task on a stream of the current device. `on_host` does the same with buffers in the
 * host's memory, for the fake. Returns a cudaError_t.
 */
int testing_gpu_compute(void *stream, struct testing_gpu_work *work,
                        void (*on_host)(struct testing_gpu_work *work));

/* Enqueues a kernel that sets *waiting, and ends once *go is set: bools. Returns a cudaError_t. */
int testing_gpu_wait(void *stream, void *waiting, void *go);

#ifdef __cplusplus
}
#endif
#endif
