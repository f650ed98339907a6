/* SPDX-License-Identifier: Apache-2.0 */
/* Stands in for the kernels and checks that need BLAS, in a build without it. */
#include "workloads/kernels.h"

duet_kernel_fn duet__blas_kernel(const char *base)
{
    (void)base;
    return NULL;
}

int duet__blas_begin(unsigned threads, struct duet_message *message)
{
    return DUET_OK;
}

int duet__residual_cholesky(const struct duet__storage *a, const struct duet__judging *how,
                            double *residual, struct duet_message *message)
{
    return duet_fail(message, DUET_EABSENT, "this duet was built without BLAS");
}

int duet__residual_lu(const struct duet__storage *a, const struct duet__storage *pivots,
                      const struct duet__judging *how, double *residual,
                      struct duet_message *message)
{
    return duet_fail(message, DUET_EABSENT, "this duet was built without BLAS");
}

bool duet__blas_about(struct duet__blas *blas)
{
    return false;
}
