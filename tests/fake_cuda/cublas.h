/* SPDX-License-Identifier: Apache-2.0 */
/* The two libraries of the fake: each fills its members. */
#ifndef DUET_TESTS_FAKE_CUDA_CUBLAS_H
#define DUET_TESTS_FAKE_CUDA_CUBLAS_H

#include "workloads/kernels_cuda_handles.h"

void fake_cublas(struct duet__cuda_library *out);
void fake_cusolver(struct duet__cuda_library *out);

#endif
