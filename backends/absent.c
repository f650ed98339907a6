/* SPDX-License-Identifier: Apache-2.0 */
/* Slots of a backend that is not in this build: all fail with DUET_EABSENT. */
#include "backends/absent.h"

#include <math.h>

static const char reason[] = "this duet was built without what it is programmed by";

int duet__absent_describe(unsigned index, struct backend_info *info, struct duet_message *message)
{
    return duet_fail(message, DUET_EABSENT, "GPU %u: %s", index, reason);
}

int duet__absent_attach(void **shared, const struct backend_setup *setup,
                        struct duet_message *message)
{
    *shared = NULL;
    return duet_fail(message, DUET_EABSENT, "GPUs: %s", reason);
}

void duet__absent_detach(void *shared)
{
}

int duet__absent_open(struct backend_device **out, void *shared,
                      const struct backend_config *config, struct duet_message *message)
{
    *out = NULL;
    return duet_fail(message, DUET_EABSENT, "GPU %u: %s", config->index, reason);
}

void duet__absent_close(struct backend_device *device)
{
}

void *duet__absent_base(const struct backend_device *device)
{
    return NULL;
}

int duet__absent_launch(struct backend_device *device, const struct backend_kernel *kernel)
{
    return DUET_EABSENT;
}

int duet__absent_copy(struct backend_device *device, const struct backend_copy *copy)
{
    return DUET_EABSENT;
}

size_t duet__absent_poll(struct backend_device *device, struct backend_completion *out, size_t max)
{
    return 0;
}

bool duet__absent_lost(const struct backend_device *device)
{
    return true;
}

double duet__absent_next_s(const struct backend_device *device)
{
    return INFINITY;
}
