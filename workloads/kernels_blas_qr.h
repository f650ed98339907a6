/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels of QR factorisations, described in kernels.h. */
#ifndef DUET_KERNELS_BLAS_QR_H
#define DUET_KERNELS_BLAS_QR_H

#include <duet/duet.h>

int duet__kernel_geqrt(const struct duet_call *call);
int duet__kernel_ormqr(const struct duet_call *call);
int duet__kernel_tsqrt(const struct duet_call *call);
int duet__kernel_tsmqr(const struct duet_call *call);

#endif
