/* SPDX-License-Identifier: Apache-2.0 */
/* The table of backends, and what stands in it for those that this build is without. */
#include <string.h>

#include "backends/backend.h"

/* The build chooses a stand-in by giving its name to the backend. */
#define ABSENT(backend, devices, missing)                                                          \
    static unsigned no_##backend(struct duet_message *why)                                         \
    {                                                                                              \
        (void)duet_fail(why, DUET_EABSENT, "this duet was built without " missing);                \
        return 0;                                                                                  \
    }                                                                                              \
    const struct duet__backend duet__absent_##backend = {.name = #backend,                         \
                                                         .description =                            \
                                                             devices " (not in this build)",       \
                                                         .count = no_##backend};

ABSENT(cuda, "NVIDIA GPUs", "CUDA (the toolkit was not found, or DUET_CUDA=OFF)")
ABSENT(opencl, "OpenCL's devices",
       "OpenCL (its headers and loader were not found, or DUET_OPENCL=OFF)")

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
