/* SPDX-License-Identifier: Apache-2.0 */
/* Describes the OpenBLAS that kernels on CPUs call. */
#include <cblas.h>

#include "workloads/kernels_about.h"

bool duet__blas_about(struct duet__blas *blas)
{
    int parallel = openblas_get_parallel();
    blas->build = openblas_get_config();
    blas->core = openblas_get_corename();
    blas->threading = parallel == 2 ? "OpenMP" : parallel ? "pthreads" : "sequential";
    return true;
}
