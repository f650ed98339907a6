/* SPDX-License-Identifier: Apache-2.0 */
/* Finds workloads by name or number in the list of list.h. */
#include <string.h>

#include "workloads/workload.h"

#define WORKLOAD(name) extern const struct duet__workload duet__workload_##name;
#include "workloads/list.h"
#undef WORKLOAD

static const struct duet__workload *const workloads[] = {
#define WORKLOAD(name) &duet__workload_##name,
#include "workloads/list.h"
#undef WORKLOAD
};

const struct duet__workload *duet__workload_at(size_t index)
{
    return index < sizeof workloads / sizeof *workloads ? workloads[index] : NULL;
}

const struct duet__workload *duet__workload_find(const char *name)
{
    for (size_t i = 0; i < sizeof workloads / sizeof *workloads; i++) {
        if (!strcmp(workloads[i]->name, name))
            return workloads[i];
    }
    return NULL;
}
