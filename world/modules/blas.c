/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels on CPUs, in their module: OpenBLAS, which starts threads, is opened when they compute. */
#include "world/modules/module.h"

duet_kernel_fn duet__blas_kernel(const char *base)
{
    const struct duet__blas_module *blas = duet__module_open("blas", NULL);
    return blas ? blas->kernel(base) : NULL;
}

void duet__blas_one_thread(void)
{
    const struct duet__blas_module *blas = duet__module_open("blas", NULL);
    if (blas)
        blas->one_thread();
}

int duet__residual_cholesky(const struct duet__storage *a, const struct duet__judging *how,
                            double *residual, struct duet_message *message)
{
    const struct duet__blas_module *blas = duet__module_open("blas", message);
    return blas ? blas->residual_cholesky(a, how, residual, message) : DUET_EABSENT;
}

int duet__residual_lu(const struct duet__storage *a, const struct duet__storage *pivots,
                      const struct duet__judging *how, double *residual,
                      struct duet_message *message)
{
    const struct duet__blas_module *blas = duet__module_open("blas", message);
    return blas ? blas->residual_lu(a, pivots, how, residual, message) : DUET_EABSENT;
}

bool duet__blas_about(struct duet__blas *about)
{
    const struct duet__blas_module *blas = duet__module_open("blas", NULL);
    return blas && blas->about(about);
}
