/* SPDX-License-Identifier: Apache-2.0 */
/* Taking the records of a run out of its runtime, and freeing runs. Part of libduet too, which
   writes traces. */
#include <stdlib.h>

#include <glib.h>

#include "trace/run.h"

/* Takes the application's names of its tasks, and its marks. */
static int take_names(struct duet__recording *out, const struct duet_runtime *runtime)
{
    int error = duet_trace_marks(runtime, &out->marks, &out->mark_count);
    GPtrArray *names = g_ptr_array_new();
    const char *name;
    while ((name = duet_trace_name(runtime, names->len + 1)))
        g_ptr_array_add(names, g_strdup(name));
    out->name_count = names->len;
    g_ptr_array_add(names, NULL);
    out->names = (const char **)(void *)g_ptr_array_free(names, FALSE);
    return error;
}

int duet__recording_take(struct duet__recording *out, const struct duet_runtime *runtime,
                         bool accesses)
{
    struct duet_stats stats;
    int error;
    *out = (struct duet__recording){.machine = calloc(1, sizeof(*out->machine))};
    error =
        out->machine ? duet_machine_copy(out->machine, duet_runtime_machine(runtime)) : DUET_ENOMEM;
    if (!error)
        error = duet_trace_events(runtime, &out->events, &out->event_count);
    if (!error && accesses)
        error = duet_trace_accesses(runtime, &out->accesses, &out->access_count);
    if (!error)
        error = take_names(out, runtime);
    out->kernel_count = duet_kernel_count(runtime);
    out->kernels = g_new0(const char *, out->kernel_count + 1);
    for (size_t i = 0; i < out->kernel_count; i++)
        out->kernels[i] = g_strdup(duet_kernel_name(runtime, i));
    duet_stats(runtime, &stats);
    out->makespan_s = stats.makespan_s;
    if (error)
        duet__recording_fini(out);
    return error;
}

/* Makes every date t of events and marks factor * t + shift_s. */
static void move_dates(struct duet__recording *recording, double factor, double shift_s)
{
    for (size_t i = 0; i < recording->event_count; i++) {
        struct duet_event *event = &recording->events[i];
        double *const dates[] = {&event->submit_s, &event->ready_s, &event->start_s, &event->end_s};
        for (size_t k = 0; k < G_N_ELEMENTS(dates); k++)
            *dates[k] = factor * *dates[k] + shift_s;
    }
    for (size_t i = 0; i < recording->mark_count; i++) {
        recording->marks[i].start_s = factor * recording->marks[i].start_s + shift_s;
        recording->marks[i].end_s = factor * recording->marks[i].end_s + shift_s;
    }
}

void duet__recording_shift(struct duet__recording *recording, double seconds)
{
    move_dates(recording, 1, seconds);
}

void duet__recording_scale(struct duet__recording *recording, double factor)
{
    recording->makespan_s *= factor;
    move_dates(recording, factor, 0);
}

void duet__recording_fini(struct duet__recording *recording)
{
    if (recording->machine)
        duet_machine_fini(recording->machine);
    free(recording->machine);
    free(recording->events);
    free(recording->accesses);
    free(recording->marks);
    g_strfreev((char **)(void *)recording->kernels);
    g_strfreev((char **)(void *)recording->names);
    *recording = (struct duet__recording){0};
}

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
