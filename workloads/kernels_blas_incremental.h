/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels of LU factorisations with incremental pivoting, described in kernels.h. */
#ifndef DUET_KERNELS_BLAS_INCREMENTAL_H
#define DUET_KERNELS_BLAS_INCREMENTAL_H

#include <duet/duet.h>

int duet__kernel_getrf_incpiv(const struct duet_call *call);
int duet__kernel_gessm(const struct duet_call *call);
int duet__kernel_tstrf(const struct duet_call *call);
int duet__kernel_ssssm(const struct duet_call *call);

#endif
