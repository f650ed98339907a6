/* SPDX-License-Identifier: Apache-2.0 */
/* Page-locking, by the backends in use that know of it. */
#include "real/internal.h"

/* Where time is all that passes, nothing is copied that could be copied faster. */
static bool pins(const struct real *real, const struct use *use)
{
    return use->backend->pin && use->attached && !(real->options.scale > 0);
}

int duet__real_pin(void *engine, void *data, size_t bytes, struct duet_message *message)
{
    const struct real *real = engine;
    int error = DUET_OK;
    for (unsigned i = 0; i < real->use_count; i++) {
        const struct use *use = &real->uses[i];
        int status = pins(real, use)
                         ? use->backend->pin(use->shared, data, bytes, error ? NULL : message)
                         : DUET_OK;
        error = error ? error : status;
    }
    return error;
}

int duet__real_unpin(void *engine, void *data, struct duet_message *message)
{
    const struct real *real = engine;
    int error = DUET_OK;
    for (unsigned i = 0; i < real->use_count; i++) {
        const struct use *use = &real->uses[i];
        int status = pins(real, use)
                         ? use->backend->unpin(use->shared, data, error ? NULL : message)
                         : DUET_OK;
        error = error ? error : status;
    }
    return error;
}

/* A handle has one mark: it is the first one's that has a use for it. */
const struct use *duet__marker(const struct real *real)
{
    for (unsigned i = 0; i < real->use_count; i++)
        if (real->uses[i].backend->forget)
            return &real->uses[i];
    return NULL;
}

void duet__real_forget(void *engine, struct duet_handle *handle)
{
    const struct use *marker = duet__marker(engine);
    _Atomic(void *) *mark = marker ? duet__handle_mark(handle) : NULL;
    if (mark && atomic_load_explicit(mark, memory_order_acquire))
        marker->backend->forget(marker->shared, mark);
}
