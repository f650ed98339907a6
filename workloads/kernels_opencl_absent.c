/* SPDX-License-Identifier: Apache-2.0 */
/* Stands in for the kernels for OpenCL's devices, in a build without OpenCL or CLBlast. */
#include "workloads/kernels.h"

duet_kernel_fn duet__opencl_kernel(const char *base)
{
    (void)base;
    return NULL;
}

int duet__opencl_about(struct duet_message *message)
{
    return duet_fail(message, DUET_EABSENT, "this duet was built without CLBlast");
}
