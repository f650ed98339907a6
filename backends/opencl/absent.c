/* SPDX-License-Identifier: Apache-2.0 */
/* Stub for OpenCL's devices where duet was built without: there are none. */
#include "backends/backend.h"

static unsigned absent_count(struct duet_message *why)
{
    (void)duet_fail(why, DUET_EABSENT,
                    "this duet was built without OpenCL (its headers and loader were not found, or "
                    "DUET_OPENCL=OFF)");
    return 0;
}

const struct duet__backend duet__backend_opencl = {
    .name = "opencl",
    .description = "OpenCL's devices (not in this build)",
    .count = absent_count,
};
