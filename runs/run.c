/* SPDX-License-Identifier: Apache-2.0 */
/* What one run left: arrays of it, and their end. */
#include "runs/run.h"

#include <glib.h>

void duet_run_fini(struct duet_run *run)
{
    duet_recording_fini(&run->recording);
    g_free(run->message);
    *run = (struct duet_run){0};
}

struct duet_run *duet_runs_new(size_t count)
{
    struct duet_run *runs = g_new0(struct duet_run, count);

    for (size_t i = 0; i < count; i++)
        runs[i].error = DUET_ECANCELED;
    return runs;
}

void duet_runs_free(struct duet_run *runs, size_t count)
{
    for (size_t i = 0; runs && i < count; i++)
        duet_run_fini(&runs[i]);
    g_free(runs);
}

int duet_run_fail(struct duet_run *run, int error, const struct duet_message *message)
{
    run->error = error;
    if (!run->message)
        run->message = g_strdup(message->text[0] ? message->text : duet_strerror(error));
    return error;
}
