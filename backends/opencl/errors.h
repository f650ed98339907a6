/* SPDX-License-Identifier: Apache-2.0 */
/* Errors of OpenCL: their names with the call's, and what they mean for a device. */
#ifndef DUET_BACKENDS_OPENCL_ERRORS_H
#define DUET_BACKENDS_OPENCL_ERRORS_H

#include <stdbool.h>

#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>

#include <duet/error.h>

/* A call, or a command, that has failed. */
struct failure {
    const char *call; /* "clCreateBuffer"; a constant. NULL: none has */
    cl_int error;
};

enum { FAILURE_TEXT = 128 };

/* The result of a call that is to be looked at. true: it has failed, and *failure is filled. */
DUET_MUST_CHECK bool duet__opencl_failed(struct failure *failure, const char *call, cl_int error);

/*
 * true: the device is of no use any more. The calls of a backend are right, so that an object of
 * its own that is "invalid" has been broken by what ran on the device.
 */
bool duet__opencl_gone(cl_int error);

/* DUET_ENOMEM for a lack of memory, else `otherwise`. */
int duet__opencl_status(cl_int error, int otherwise);

/* "clCreateBuffer: CL_OUT_OF_RESOURCES (-5)". Returns text. */
const char *duet__opencl_text(char text[FAILURE_TEXT], const struct failure *failure);

#endif
