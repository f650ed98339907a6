/* SPDX-License-Identifier: Apache-2.0 */
/* Opens the libraries that kernels on GPUs call. */
#include "workloads/kernels_about.h"
#include "workloads/kernels_cuda_library.h"

int duet__cuda_about(struct duet_message *message)
{
    return duet__cuda_library(message) ? DUET_OK : DUET_EABSENT;
}
