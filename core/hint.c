/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hints: acquisitions that nobody waits for, which end when the data is where it was to be brought.
 */
#include <duet/hint.h>

#include "core/internal.h"

/* The data is in the host's memory: its places on devices are to be used again first. */
static void wont_use_end(struct duet_view *view, struct duet_task *hint)
{
    struct duet_runtime *core = view->core;
    struct duet_handle *handle = hint->accesses[0].handle;
    for (unsigned n = 1; n < core->machine.node_count; n++) {
        spin_lock(&handle->lock);
        struct replica *replica = handle->replicas[n];
        spin_unlock(&handle->lock);
        if (replica)
            duet__cache_stale(core, replica);
    }
    duet__acquire_end(view, hint);
}

/* What the host's memory holds stands for the contents; if they were not valid, they are not. */
static void invalidate_end(struct duet_view *view, struct duet_task *hint)
{
    hint->accesses[0].mode |= DUET_R;
    duet__acquire_end(view, hint);
}

static int give(struct duet_runtime *core, struct duet_handle *handle, enum duet_mode mode,
                unsigned node, void (*over)(struct duet_view *view, struct duet_task *hint))
{
    if (!handle || node >= core->machine.node_count)
        return duet__refuse(core, DUET_EINVAL,
                            "a hint needs a handle and one of the %u memory nodes of machine %s",
                            core->machine.node_count, core->machine.name);
    bool inside = core->ops->inside && core->ops->inside(core->engine) != DUET_OUTSIDE;
    if (inside || duet__failed(core))
        return DUET_OK;
    struct duet_task *hint = duet__acquisition_new(core, 1);
    if (!hint)
        return duet__refuse(core, DUET_ENOMEM, "no memory left for a hint");
    hint->accesses[0].handle = handle;
    hint->accesses[0].mode = (uint8_t)mode;
    hint->worker = node;
    hint->over = over;
    core->ops->submitted(core->engine, hint);
    return DUET_OK;
}

int duet_prefetch(struct duet_runtime *runtime, struct duet_handle *handle, unsigned node)
{
    return give(runtime, handle, DUET_R, node, duet__acquire_end);
}

int duet_wont_use(struct duet_runtime *runtime, struct duet_handle *handle)
{
    return give(runtime, handle, DUET_R, DUET_HOST, wont_use_end);
}

int duet_invalidate(struct duet_runtime *runtime, struct duet_handle *handle)
{
    return give(runtime, handle, DUET_W, DUET_HOST, invalidate_end);
}
