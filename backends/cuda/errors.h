/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Errors of the CUDA runtime: their texts with the call's name, what they mean for a device, and
 * which of duet's errors they become.
 */
#ifndef DUET_CUDA_ERRORS_H
#define DUET_CUDA_ERRORS_H

#include <stdbool.h>
#include <stddef.h>

#include <cuda_runtime_api.h>

#include "backends/backend.h"

/* A call that has failed. */
struct failure {
    const char *call; /* "cudaMalloc"; a constant. NULL: none has */
    cudaError_t error;
};

/* What an error means for the device on which it was seen. */
enum fate {
    FATE_REFUSED, /* one call was refused; everything else goes on */
    FATE_KERNEL,  /* a kernel has done what it may not do, and the device's context is broken */
    FATE_GONE,    /* the context is broken and no kernel is to blame: hardware, driver */
};

enum { FAILURE_TEXT = 192 };

/*
 * The result of a call that is to be looked at. true: it has failed, *failure is filled, and the
 * error is not pending in cudaGetLastError any more, where the next one would be mistaken for it.
 */
DUET_MUST_CHECK bool duet__cuda_failed(struct failure *failure, const char *call,
                                       cudaError_t error);

/* The same of a call whose result changes nothing: what is cleaned up is gone either way. */
void duet__cuda_ignore(cudaError_t error);

enum fate duet__cuda_fate(cudaError_t error);

/* DUET_ENOMEM for a lack of memory, else `otherwise`. */
int duet__cuda_status(cudaError_t error, int otherwise);

/*
 * "cudaMalloc: out of memory (cudaErrorMemoryAllocation)". Once a context is broken any call says
 * so and none is to blame: "an illegal memory access was encountered (cudaErrorIllegalAddress),
 * seen by cudaEventQuery". Returns text.
 */
const char *duet__cuda_text(char text[FAILURE_TEXT], const struct failure *failure);

#endif
