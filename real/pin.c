/* SPDX-License-Identifier: Apache-2.0 */
/* Page-locking, by those backends in use that support it. */
#include "real/internal.h"

/*
 * True if the backend page-locks. In a paced emulation nothing is copied that could be copied
 * faster.
 */
static bool does_pin(const struct real *real, const struct use *use)
{
    return use->backend->pin && use->attached && !(real->options.scale > 0);
}

int duet__real_pin(void *engine, void *data, size_t bytes, struct duet_message *message)
{
    const struct real *real = engine;
    int error = DUET_OK;
    for (unsigned i = 0; i < real->use_count; i++) {
        const struct use *use = &real->uses[i];
        int status = does_pin(real, use)
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
        int status = does_pin(real, use)
                         ? use->backend->unpin(use->shared, data, error ? NULL : message)
                         : DUET_OK;
        error = error ? error : status;
    }
    return error;
}

/* Returns the first backend that uses marks: a handle has one mark. */
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
