/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Page-locking of the application's memory: requests are checked here and carried out by the
 * engine.
 */
#include <stdint.h>

#include "core/internal.h"

int duet_pin(struct duet_runtime *runtime, void *data, size_t bytes)
{
    struct duet_message message = {""};
    int error = DUET_OK;
    if (bytes == 0 || bytes > UINTPTR_MAX - (uintptr_t)data)
        error = duet_fail(&message, DUET_EINVAL,
                          "cannot page-lock %zu bytes at %p: it must be at least one byte, and end "
                          "within the address space",
                          bytes, data);
    else if (!data && runtime->computes)
        error = duet_fail(&message, DUET_EINVAL,
                          "cannot page-lock %zu bytes without an address (NULL)", bytes);
    else if (data && runtime->ops->pin)
        error = runtime->ops->pin(runtime->engine, data, bytes, &message);
    if (error)
        duet__tell(runtime, &message);
    return error;
}

int duet_unpin(struct duet_runtime *runtime, void *data)
{
    struct duet_message message = {""};
    int error = DUET_OK;
    if (!data && runtime->computes)
        error = duet_fail(&message, DUET_EINVAL, "nothing is page-locked at no address (NULL)");
    else if (data && runtime->ops->unpin)
        error = runtime->ops->unpin(runtime->engine, data, &message);
    if (error)
        duet__tell(runtime, &message);
    return error;
}
