/* SPDX-License-Identifier: Apache-2.0 */
/* Whether there is a GPU to measure, and, if not, why: in the same words as `duet info`. */
#include <stdio.h>

#include <cuda_runtime_api.h>

#include "bench/cuda/devices.h"

/*
 * Without any driver CUDA's own words are that it is too old; only its version, 0, tells these
 * apart.
 */
static void explain(cudaError_t status, char *why, size_t size)
{
    int driver = 0, runtime = CUDART_VERSION;
    (void)cudaDriverGetVersion(&driver);
    if (status == cudaErrorStubLibrary)
        snprintf(why, size,
                 "the CUDA driver that was found is a stub to link with (libcuda.so in a folder "
                 "\"stubs\"): take that folder out of LD_LIBRARY_PATH");
    else if (!driver)
        snprintf(why, size, "no NVIDIA driver is installed or loaded");
    else if (status == cudaErrorInsufficientDriver)
        snprintf(why, size,
                 "the NVIDIA driver is too old: it knows CUDA up to %d.%d, this program is built "
                 "with %d.%d",
                 driver / 1000, driver % 1000 / 10, runtime / 1000, runtime % 1000 / 10);
    else
        snprintf(why, size, "cudaGetDeviceCount: %s (%s)", cudaGetErrorString(status),
                 cudaGetErrorName(status));
}

int count_devices(char *why, size_t size)
{
    int count = 0;
    cudaError_t status = cudaGetDeviceCount(&count);
    if (status == cudaSuccess && count > 0)
        return count;
    explain(status == cudaSuccess ? cudaErrorNoDevice : status, why, size);
    return 0;
}
