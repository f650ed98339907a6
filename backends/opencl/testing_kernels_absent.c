/* SPDX-License-Identifier: Apache-2.0 */
/* In the place of testing_kernels.c where there is no OpenCL. */
#include "backends/opencl/testing_kernels.h"

int testing_opencl_call(const struct duet_call *call, testing_opencl_body body)
{
    return DUET_EABSENT;
}

unsigned testing_opencl_devices(void)
{
    return 0;
}
