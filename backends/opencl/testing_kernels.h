/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kernels of tests that work on the memory of OpenCL's devices without code to compile: functions
 * of the host that the queue calls (native kernels), as devices that are CPUs can do.
 * testing_kernels_absent.c stands in without OpenCL.
 */
#ifndef DUET_BACKENDS_OPENCL_TESTING_KERNELS_H
#define DUET_BACKENDS_OPENCL_TESTING_KERNELS_H

#include <stddef.h>

#include <duet/duet.h>

/* Works on the bytes of the kernel's first buffer (NULL without); the result is its status. */
typedef int (*testing_opencl_body)(const void *args, unsigned char *bytes, size_t count);

/* Calls `body` from a kernel, which returns the result. The first buffer, if any, must be dense. */
int testing_opencl_call(const struct duet_call *call, testing_opencl_body body);

/* Returns the number of devices, if the first of them has native kernels; else 0. */
unsigned testing_opencl_devices(void);

#endif
