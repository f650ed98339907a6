/* SPDX-License-Identifier: Apache-2.0 */
/* What options mean whatever the machine is. */
#include <math.h>
#include <string.h>

#include "platforms/description.h"

double duet__override(const struct duet_platform_options *options, const char *name)
{
    double bandwidth = 0;

    for (size_t i = 0; i < options->link_count; i++)
        if (strcmp(options->links[i].name, name) == 0)
            bandwidth = options->links[i].bandwidth_Bps; /* the last one wins */
    return bandwidth;
}

static int unknown_link(const char *name, const char *const *names, unsigned count,
                        struct duet_message *message)
{
    GString *list = g_string_new(NULL);

    for (unsigned i = 0; i < count; i++)
        g_string_append_printf(list, "%s%s", i > 0 ? ", " : "", names[i]);
    duet_fail(message, DUET_EINVAL, "no link is named %.60s (known: %.300s)", name,
              count > 0 ? list->str : "none");
    g_string_free(list, TRUE);
    return DUET_EINVAL;
}

uint64_t duet__gpu_memory(const struct duet_platform_options *options, uint64_t bytes)
{
    if (options->gpu_memory_bytes > 0)
        return options->gpu_memory_bytes;
    if (!(options->gpu_memory_share > 0))
        return bytes;
    return MAX((uint64_t)((double)bytes * options->gpu_memory_share), 1);
}

void duet__set_windows(const struct duet_platform_options *options, struct duet_worker *worker)
{
    enum { USUAL = 2, USUAL_SHORT = 8 };
    unsigned window = options->gpu_window;

    worker->window = window > 0 ? window : USUAL;
    worker->window_short = window > 0 ? window : USUAL_SHORT;
    if (options->gpu_window_short > 0)
        worker->window_short = options->gpu_window_short;
}

static int check_memory(const struct duet_platform_options *options, struct duet_message *message)
{
    double share = options->gpu_memory_share;

    if (!(share >= 0) || share > 1)
        return duet_fail(message, DUET_EINVAL,
                         "a part of %g of each GPU's memory: it must be above 0 and at most 1",
                         share);
    if (share > 0 && options->gpu_memory_bytes > 0)
        return duet_fail(message, DUET_EINVAL,
                         "the memory of GPUs is given twice, in bytes and as a part");
    return DUET_OK;
}

int duet__check_options(const struct duet_platform_options *options, const char *const *names,
                        unsigned count, struct duet_message *message)
{
    if (options->cpus < -1 || options->gpus < -1)
        return duet_fail(message, DUET_EINVAL, "the number of %s cannot be negative",
                         options->cpus < -1 ? "CPUs" : "GPUs");
    if (options->gpus > DUET__MAX_GPUS)
        return duet_fail(message, DUET_EINVAL, "%d GPUs are too many, the most is %d",
                         options->gpus, DUET__MAX_GPUS);
    if (options->cpus == 0 && options->gpus == 0)
        return duet_fail(message, DUET_EINVAL, "no CPU and no GPU: at least one worker is needed");
    if (check_memory(options, message) != DUET_OK)
        return DUET_EINVAL;
    if (options->link_count > 0 && options->links == NULL)
        return duet_fail(message, DUET_EINVAL, "link_count without links");
    for (size_t i = 0; i < options->link_count; i++) {
        const struct duet_link_override *link = &options->links[i];
        bool known = false;

        if (link->name == NULL)
            return duet_fail(message, DUET_EINVAL, "a link without a name");
        for (unsigned j = 0; j < count && !known; j++)
            known = strcmp(names[j], link->name) == 0;
        if (!known)
            return unknown_link(link->name, names, count, message);
        if (!isfinite(link->bandwidth_Bps) || !(link->bandwidth_Bps > 0))
            return duet_fail(message, DUET_EINVAL,
                             "link %s: the bandwidth must be a positive number of bytes a second",
                             link->name);
    }
    return DUET_OK;
}
