/* SPDX-License-Identifier: Apache-2.0 */
/* The module "blas": kernels on CPUs, and the check of results, on OpenBLAS and LAPACK. */
#include "runtime/modules/module.h"

extern const struct duet__blas_module duet__module;

const struct duet__blas_module duet__module = {
    .module.build = DUET_MODULE_BUILD,
    .kernel = duet__blas_kernel,
    .begin = duet__blas_begin,
    .residual_cholesky = duet__residual_cholesky,
    .residual_lu = duet__residual_lu,
    .about = duet__blas_about,
};
