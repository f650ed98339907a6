/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Errors of the CUDA runtime: their texts with the call's name, their meaning for a device, and
 * duet's error codes for them.
 */
#ifndef DUET_CUDA_ERRORS_H
#define DUET_CUDA_ERRORS_H

#include <stdbool.h>
#include <stddef.h>

#include <cuda_runtime_api.h>

#include "backends/common.h"

/* Consequence of an error for the device on which it was seen. */
enum fate {
    FATE_REFUSED, /* one call was refused; everything else works */
    FATE_KERNEL,  /* a kernel has done what is not allowed, and the device's context is broken */
    FATE_GONE,    /* the context is broken and no kernel is to blame: hardware, driver */
};

/*
 * Returns true if the call has failed: *failure is filled, and the error is cleared in
 * cudaGetLastError, where the next one would be mistaken for it.
 */
DUET_MUST_CHECK bool duet__cuda_failed(struct failure *failure, const char *call,
                                       cudaError_t error);

/* Clears the error of a call whose result does not matter, as in cleaning up. */
void duet__cuda_ignore(cudaError_t error);

enum fate duet__cuda_fate(cudaError_t error);

/* Returns DUET_ENOMEM for a lack of memory, else `otherwise`. */
int duet__cuda_status(cudaError_t error, int otherwise);

/*
 * Writes "cudaMalloc: out of memory (cudaErrorMemoryAllocation)". Once a context is broken all
 * calls fail and none is to blame: "an illegal memory access was encountered
 * (cudaErrorIllegalAddress), seen by cudaEventQuery". Returns text.
 */
const char *duet__cuda_text(char text[FAILURE_TEXT], const struct failure *failure);

#endif
