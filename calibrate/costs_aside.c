/* SPDX-License-Identifier: Apache-2.0 */
/* The measuring thread makes room for the worker that it measures. */
#include <sched.h>
#include <stdlib.h>

#include "calibrate/costs_lab.h"

int duet__lab_processor(void)
{
    return sched_getcpu();
}

void *duet__lab_aside(int processor)
{
    cpu_set_t *before = malloc(sizeof *before);
    if (before && processor >= 0 && processor < CPU_SETSIZE &&
        !sched_getaffinity(0, sizeof *before, before)) {
        cpu_set_t others = *before;
        CPU_CLR((size_t)processor, &others);
        if (CPU_COUNT(&others) > 0 && !sched_setaffinity(0, sizeof others, &others))
            return before;
    }
    free(before);
    return NULL;
}

void duet__lab_back(void *before)
{
    if (before)
        (void)sched_setaffinity(0, sizeof(cpu_set_t), before);
    free(before);
}
