/* SPDX-License-Identifier: Apache-2.0 */
/* In the place of the tests' kernels for GPUs, where there is no CUDA: nobody calls them. */
#include "backends/cuda/testing_gpu.h"
#include "backends/cuda/testing_kernels.h"

int testing_cuda_start(void)
{
    return DUET_EABSENT;
}

void testing_cuda_stop(void)
{
}

int testing_cuda_call(const struct duet_call *call, testing_body body)
{
    return DUET_EABSENT;
}

void *testing_cuda_shared(void)
{
    return NULL;
}

int testing_gpu_wait(void *stream, void *waiting, void *go)
{
    return DUET_EABSENT;
}
