/* SPDX-License-Identifier: Apache-2.0 */
/* The keys of traces: one table serves writer and reader. */
#ifndef DUET_TRACE_KEYS_H
#define DUET_TRACE_KEYS_H

#include <glib.h>

#include "trace/trace.h"

/* An event of a trace. */
struct duet__trace_record {
    struct duet_event event; /* dates in microseconds; `end_s` counts from the start */
    const char *phase, *category;
    const char *name; /* the kernel's, or "host to gpu0" */
    const char *own;  /* the application's name of the task; NULL: none */
    double priority;
    unsigned process, thread, worker, source, destination, release;
    const struct duet__recording *recording; /* the one that is written; NULL where one reads */
    GArray *accesses; /* struct duet_trace_access: all that were read; NULL where one writes */
    guint first;      /* index in `accesses` of the event's first */
};

/* Keys of otherData that are members of struct duet_machine. Reading leaves out the routes. */
extern const struct duet__field duet__trace_machine_fields[];
/* The architectures and workers of struct duet_machine. */
extern const struct duet__list duet__trace_workers;
/* Keys of events that are kernels and copies; the root is the machine. */
extern const struct duet__field duet__trace_kernel_fields[], duet__trace_copy_fields[];

#endif
