/* SPDX-License-Identifier: Apache-2.0 */
/* Devices of OpenCL 1.2: the table of the backend. */
#include <stdlib.h>

#include "backends/opencl/internal.h"

static int attach(void **shared, const struct backend_setup *setup, struct duet_message *message)
{
    if (!setup->now || setup->scale > 0)
        return duet_fail(message, DUET_EINVAL,
                         "GPUs need a clock, and have a pace of their own: no scale");
    struct opencl *opencl = calloc(1, sizeof *opencl);
    if (!opencl)
        return duet_fail(message, DUET_ENOMEM, "GPUs: out of memory");
    opencl->setup = *setup;
    opencl->staging_bytes = STAGING_BYTES;
    *shared = opencl;
    return DUET_OK;
}

static void detach(void *shared)
{
    free(shared);
}

/*
 * OpenCL has no direct copies in one context for each device, and a context for several lets the
 * implementation move a whole slab from one to the other: all go through the host's memory.
 */
static int links(unsigned count, struct backend_link *links, struct duet_message *message)
{
    return DUET_OK;
}

static void *base(const struct backend_device *device)
{
    return device->base;
}

static const char *why(const struct backend_device *device)
{
    return device->why;
}

static bool lost(const struct backend_device *device)
{
    return opencl_lost(device);
}

/*
 * Nobody tells when something ends: a callback comes on a thread of the implementation, which would
 * have to be waited for when the device is closed, and costs more than looking.
 */
static double next_s(const struct backend_device *device)
{
    return 0;
}

const struct duet__backend duet__backend_opencl = {
    .name = "opencl",
    .description = "GPUs and accelerators, by OpenCL",
    .count = duet__opencl_count,
    .describe = duet__opencl_describe,
    .links = links,
    .attach = attach,
    .detach = detach,
    .open = duet__opencl_open,
    .close = duet__opencl_close,
    .base = base,
    .launch = duet__opencl_launch,
    .copy = duet__opencl_copy,
    .why = why,
    .poll = duet__opencl_poll,
    .lost = lost,
    .next_s = next_s,
};
