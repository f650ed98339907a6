/* SPDX-License-Identifier: Apache-2.0 */
/* The records of one run beside what is needed to read them: input of every drawing and export. */
#ifndef DUET_REPORT_RECORDING_H
#define DUET_REPORT_RECORDING_H

#include <stddef.h>

#include <duet/machine.h>
#include <duet/trace.h>

/* Everything is borrowed. Plain data: it may come from a runtime, a file or a test. */
struct duet_recording {
    const struct duet_machine *machine;
    const struct duet_event *events; /* sorted by start_s, as duet_trace_events gives them */
    size_t event_count;
    const char *const *kernels; /* names, by the index that events carry */
    size_t kernel_count;
    double makespan_s; /* of the run; the axis of a drawing is at least as long */
};

/* Name of the kernel of a TASK event; "?" where the index has no name. Never NULL. */
static inline const char *duet_recording_kernel(const struct duet_recording *recording,
                                                const struct duet_event *event)
{
    return event->kernel < recording->kernel_count ? recording->kernels[event->kernel] : "?";
}

#endif
