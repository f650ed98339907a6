/* SPDX-License-Identifier: Apache-2.0 */
/* Frees the results of runs. */
#include "trace/run.h"

#include <glib.h>

void duet__run_fini(struct duet__run *run)
{
    duet__recording_fini(&run->recording);
    *run = (struct duet__run){0};
}

void duet__series_fini(struct duet__series *series)
{
    for (size_t i = 0; i < series->count; i++)
        duet__run_fini(&series->runs[i]);
    g_free(series->runs);
    *series = (struct duet__series){0};
}
