/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kernels of the workloads' tasks on OpenCL's devices: calls of CLBlast; kernels_opencl_absent.c
 * stands in where that or OpenCL is missing. Semantics are those of the CPUs' kernels (kernels.h).
 * There are no factorisations of tiles, no panels and no jacobi2d.
 *
 * A kernel is called on the thread of the device's worker and enqueues on the queue of its call.
 * CLBlast's code is compiled by the first calls in a process, which takes seconds; solves also wait
 * for parts of their work.
 */
#ifndef DUET_KERNELS_OPENCL_H
#define DUET_KERNELS_OPENCL_H

#include <duet/duet.h>

/* Returns the code for the kernel of this base name (both precisions), or NULL if there is none. */
duet_kernel_fn duet__opencl_kernel(const char *base);

#endif
