/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels of LU factorisations, described in kernels.h. */
#ifndef DUET_KERNELS_BLAS_LU_H
#define DUET_KERNELS_BLAS_LU_H

#include <duet/duet.h>

int duet__kernel_getrf_nopiv(const struct duet_call *call);
int duet__kernel_getrf(const struct duet_call *call);
int duet__kernel_laswp(const struct duet_call *call);

#endif
