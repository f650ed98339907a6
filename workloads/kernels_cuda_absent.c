/* SPDX-License-Identifier: Apache-2.0 */
/* Stands in for the kernels for GPUs, in a build without the CUDA toolkit. */
#include "workloads/kernels.h"
#include "workloads/kernels_cuda.h"

duet_kernel_fn duet__cuda_kernel(const char *base)
{
    (void)base;
    return NULL;
}

int duet__cuda_about(struct duet_message *message)
{
    return duet_fail(message, DUET_EABSENT, "this duet was built without CUDA");
}
