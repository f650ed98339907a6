/* SPDX-License-Identifier: Apache-2.0 */
/* Taking the records of a run out of its runtime. Part of libduet too, which writes traces. */
#include "runs/recording.h"

#include <stdlib.h>
#include <string.h>

const char **duet_recording_names(const char *const *kernels, size_t count)
{
    size_t pointers = (count + 1) * sizeof(const char *), bytes = 0;
    const char **names;
    char *text;

    for (size_t i = 0; i < count; i++)
        bytes += strlen(kernels[i]) + 1;
    names = malloc(pointers + bytes);
    if (!names)
        return NULL;
    text = (char *)names + pointers;
    for (size_t i = 0; i < count; i++) {
        size_t length = strlen(kernels[i]) + 1;

        names[i] = memcpy(text, kernels[i], length);
        text += length;
    }
    names[count] = NULL;
    return names;
}

static int take_kernels(struct duet_recording *out, const struct duet_runtime *runtime)
{
    size_t count = duet_kernel_count(runtime);
    const char **kernels = calloc(count + 1, sizeof(*kernels));

    for (size_t i = 0; kernels && i < count; i++)
        kernels[i] = duet_kernel_name(runtime, i);
    out->kernels = kernels ? duet_recording_names(kernels, count) : NULL;
    out->kernel_count = count;
    free(kernels);
    return out->kernels ? DUET_OK : DUET_ENOMEM;
}

int duet_recording_take(struct duet_recording *out, const struct duet_runtime *runtime,
                        bool accesses)
{
    struct duet_stats stats;
    int error;

    *out = (struct duet_recording){.machine = calloc(1, sizeof(*out->machine))};
    error =
        out->machine ? duet_machine_copy(out->machine, duet_runtime_machine(runtime)) : DUET_ENOMEM;
    if (!error)
        error = duet_trace_events(runtime, &out->events, &out->event_count);
    if (!error && accesses)
        error = duet_trace_accesses(runtime, &out->accesses, &out->access_count);
    if (!error)
        error = take_kernels(out, runtime);
    duet_stats(runtime, &stats);
    out->makespan_s = stats.makespan_s;
    if (error)
        duet_recording_fini(out);
    return error;
}

void duet_recording_shift(struct duet_recording *recording, double seconds)
{
    for (size_t i = 0; i < recording->event_count; i++) {
        struct duet_event *event = &recording->events[i];

        event->submit_s += seconds;
        event->ready_s += seconds;
        event->start_s += seconds;
        event->end_s += seconds;
    }
}

void duet_recording_scale(struct duet_recording *recording, double factor)
{
    recording->makespan_s *= factor;
    for (size_t i = 0; i < recording->event_count; i++) {
        struct duet_event *event = &recording->events[i];

        event->submit_s *= factor;
        event->ready_s *= factor;
        event->start_s *= factor;
        event->end_s *= factor;
    }
}

void duet_recording_fini(struct duet_recording *recording)
{
    if (recording->machine)
        duet_machine_fini(recording->machine);
    free(recording->machine);
    free(recording->events);
    free(recording->accesses);
    free(recording->kernels);
    *recording = (struct duet_recording){0};
}
