/* SPDX-License-Identifier: Apache-2.0 */
/* Finds kernels by name. */
#include "workloads/kernels.h"

#include <string.h>

duet_kernel_fn duet__kernel(const char *base)
{
    return strcmp(base, "jacobi2d") ? duet__blas_kernel(base) : duet__kernel_jacobi2d;
}
