/* SPDX-License-Identifier: Apache-2.0 */
/* The module "blas": kernels on CPUs, and the check of results, on OpenBLAS and LAPACK. */
#include "runtime/modules/module.h"

extern const struct duet__blas_module duet__module;

const struct duet__blas_module duet__module = {
    .module.build = DUET_MODULE_BUILD,
    .kernel = duet__blas_kernel,
    .begin = duet__blas_begin,
    .residual = duet__residual,
    .about = duet__blas_about,
};
