/* SPDX-License-Identifier: Apache-2.0 */
/* Stands in for NVIDIA GPUs where duet was built without CUDA: there are none, and it says why. */
#include <math.h>

#include "backends/backend.h"

static const char reason[] = "this duet was built without CUDA (the toolkit was not found, or "
                             "DUET_CUDA=OFF)";

static unsigned count(struct duet_message *why)
{
    (void)duet_fail(why, DUET_EABSENT, "%s", reason);
    return 0;
}

static int describe(unsigned index, struct backend_info *info, struct duet_message *message)
{
    return duet_fail(message, DUET_EABSENT, "GPU %u: %s", index, reason);
}

static int attach(void **shared, const struct backend_setup *setup, struct duet_message *message)
{
    *shared = NULL;
    return duet_fail(message, DUET_EABSENT, "%s", reason);
}

static void detach(void *shared)
{
}

static int open(struct backend_device **out, void *shared, const struct backend_config *config,
                struct duet_message *message)
{
    *out = NULL;
    return duet_fail(message, DUET_EABSENT, "GPU %u: %s", config->index, reason);
}

static void close(struct backend_device *device)
{
}

/* There is no device that the rest could be called with. */

static void *base(const struct backend_device *device)
{
    return NULL;
}

static int launch(struct backend_device *device, const struct backend_kernel *kernel)
{
    return DUET_EABSENT;
}

static int copy(struct backend_device *device, const struct backend_copy *what)
{
    return DUET_EABSENT;
}

static size_t poll(struct backend_device *device, struct backend_completion *out, size_t max)
{
    return 0;
}

static bool lost(const struct backend_device *device)
{
    return true;
}

static double next_s(const struct backend_device *device)
{
    return INFINITY;
}

const struct duet__backend duet__backend_cuda = {
    .name = "cuda",
    .description = "NVIDIA GPUs (not in this build)",
    .count = count,
    .describe = describe,
    .attach = attach,
    .detach = detach,
    .open = open,
    .close = close,
    .base = base,
    .launch = launch,
    .copy = copy,
    .poll = poll,
    .lost = lost,
    .next_s = next_s,
};
