/* SPDX-License-Identifier: Apache-2.0 */
/* A kernel that does nothing, to measure a launch. */
#include <cuda_runtime.h>

#include "workloads/kernels_cuda.h"

static __global__ void nothing()
{
}

int duet__cuda_launch_empty(void *stream)
{
    return cudaLaunchKernel(reinterpret_cast<const void *>(nothing), dim3(1), dim3(1), nullptr, 0,
                            static_cast<cudaStream_t>(stream));
}
