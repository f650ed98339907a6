/* SPDX-License-Identifier: Apache-2.0 */
/* Errors of OpenCL: their names with the call's, and their meaning for a device. */
#ifndef DUET_BACKENDS_OPENCL_ERRORS_H
#define DUET_BACKENDS_OPENCL_ERRORS_H

#include <stdbool.h>

#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>

#include "backends/common.h"

/* Returns true if the call has failed, and fills *failure. */
DUET_MUST_CHECK bool duet__opencl_failed(struct failure *failure, const char *call, cl_int error);

/*
 * True if the device is of no use any more. The backend's calls are correct, so an "invalid" object
 * of its own has been broken by what ran on the device.
 */
bool duet__opencl_gone(cl_int error);

/* Returns DUET_ENOMEM for a lack of memory, else `otherwise`. */
int duet__opencl_status(cl_int error, int otherwise);

/* Writes "clCreateBuffer: CL_OUT_OF_RESOURCES (-5)". Returns text. */
const char *duet__opencl_text(char text[FAILURE_TEXT], const struct failure *failure);

#endif
