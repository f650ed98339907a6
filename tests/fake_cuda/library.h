/* SPDX-License-Identifier: Apache-2.0 */
/* Handles of the fake's cuBLAS and cuSOLVER, and the way of their computations to a stream. */
#ifndef DUET_TESTS_FAKE_CUDA_LIBRARY_H
#define DUET_TESTS_FAKE_CUDA_LIBRARY_H

#include <stddef.h>

#include <cuda_runtime_api.h>

/* The beginning of both kinds of handle. */
struct fake_library {
    unsigned device; /* the current device when the handle was made */
    cudaStream_t stream;
};

/* A matrix of the caller's, or a vector: one column. Its address is replaced by that of its
   bytes. */
struct fake_matrix {
    void **address;
    size_t rows, cols, ld, element_bytes;
};

/*
 * Gives a computation with a copy of its arguments to the handle's stream, after replacing the
 * addresses of the `count` matrices, which must lie in the handle's device: if one does not, the
 * computation breaks the device (an illegal address) when it is executed. Returns a cudaError_t,
 * also if the current device is another one, or no stream was set.
 */
cudaError_t fake_compute(const struct fake_library *library, void (*run)(void *argument),
                         void *argument, size_t bytes, const struct fake_matrix *matrices,
                         size_t count);

#endif
