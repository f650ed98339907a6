/* SPDX-License-Identifier: Apache-2.0 */
/* Finds kernels by name. */
#include "workloads/kernels.h"

#include <string.h>

/* Those that need no BLAS. */
static const struct {
    const char *base;
    duet_kernel_fn run;
} kernels[] = {
    {"jacobi2d", duet__kernel_jacobi2d},
    {"nbody", duet__kernel_nbody},
    {"sort", duet__kernel_sort},
};

duet_kernel_fn duet__kernel(const char *base)
{
    for (size_t i = 0; i < sizeof kernels / sizeof *kernels; i++) {
        if (!strcmp(kernels[i].base, base))
            return kernels[i].run;
    }
    return duet__blas_kernel(base);
}
