/* SPDX-License-Identifier: Apache-2.0 */
/* Finds kernels by name. */
#include "workloads/kernels.h"

/* The kernels that need no BLAS. */
static const struct duet__kernel kernels[] = {
    {"jacobi2d", duet__kernel_jacobi2d},
    {"nbody", duet__kernel_nbody},
    {"sort", duet__kernel_sort},
    {NULL, NULL},
};

duet_kernel_fn duet__kernel(const char *base)
{
    const duet_kernel_fn run = duet__kernel_in(kernels, base);
    return run ? run : duet__blas_kernel(base);
}
