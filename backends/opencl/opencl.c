/* SPDX-License-Identifier: Apache-2.0 */
/* Devices of OpenCL 1.2: the table of the backend. */
#include <stdlib.h>

#include "backends/opencl/internal.h"

static int opencl_attach(void **shared, const struct backend_setup *setup,
                         struct duet_message *message)
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

static void opencl_detach(void *shared)
{
    free(shared);
}

/*
 * No direct copies: a context for each device has none, and a context for several lets the
 * implementation move a whole slab from one to the other. All copies go through the host's memory.
 */
static int opencl_links(unsigned count, struct backend_link *links, struct duet_message *message)
{
    return DUET_OK;
}

static void *opencl_base(const struct backend_device *device)
{
    return device->base;
}

static const char *opencl_why(const struct backend_device *device)
{
    return device->why;
}

static bool opencl_is_lost(const struct backend_device *device)
{
    return opencl_lost(device);
}

/*
 * Always 0: a callback comes on a thread of the implementation, which would have to be waited for
 * when the device is closed, and costs more than polling.
 */
static double opencl_next_s(const struct backend_device *device)
{
    return 0;
}

const struct duet__backend duet__backend_opencl = {
    .name = "opencl",
    .description = "GPUs and accelerators, by OpenCL",
    .count = duet__opencl_count,
    .describe = duet__opencl_describe,
    .links = opencl_links,
    .attach = opencl_attach,
    .detach = opencl_detach,
    .open = duet__opencl_open,
    .close = duet__opencl_close,
    .base = opencl_base,
    .launch = duet__opencl_launch,
    .copy = duet__opencl_copy,
    .why = opencl_why,
    .poll = duet__opencl_poll,
    .lost = opencl_is_lost,
    .next_s = opencl_next_s,
};
