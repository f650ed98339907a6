/* SPDX-License-Identifier: Apache-2.0 */
/* The table of backends. */
#include <string.h>

#include "backends/backend.h"

#define BACKEND(name) extern const struct duet__backend duet__backend_##name;
#include "backends/list.h"
#undef BACKEND

static const struct duet__backend *const backends[] = {
#define BACKEND(name) &duet__backend_##name,
#include "backends/list.h"
#undef BACKEND
};

const struct duet__backend *duet__backend_at(size_t index)
{
    return index < sizeof backends / sizeof *backends ? backends[index] : NULL;
}

const struct duet__backend *duet__backend_find(const char *name)
{
    for (size_t i = 0; duet__backend_at(i); i++)
        if (!strcmp(backends[i]->name, name))
            return backends[i];
    return NULL;
}
