/* SPDX-License-Identifier: Apache-2.0 */
/* The end of what runs left. */
#include "runs/run.h"

#include <glib.h>

void duet_run_fini(struct duet_run *run)
{
    duet_recording_fini(&run->recording);
    *run = (struct duet_run){0};
}

void duet_series_fini(struct duet_series *series)
{
    for (size_t i = 0; i < series->count; i++)
        duet_run_fini(&series->runs[i]);
    g_free(series->runs);
    *series = (struct duet_series){0};
}
