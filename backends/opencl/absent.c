/* SPDX-License-Identifier: Apache-2.0 */
/* Stands in for OpenCL's devices where duet was built without: there are none, and it says why. */
#include "backends/absent.h"

static unsigned count(struct duet_message *why)
{
    (void)duet_fail(why, DUET_EABSENT,
                    "this duet was built without OpenCL (its headers and loader were not found, or "
                    "DUET_OPENCL=OFF)");
    return 0;
}

const struct duet__backend duet__backend_opencl = {
    .name = "opencl",
    .description = "OpenCL's devices (not in this build)",
    .count = count,
    DUET__ABSENT_SLOTS,
};
