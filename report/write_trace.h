/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Export to the JSON trace event format, which Perfetto (ui.perfetto.dev) and Chrome's
 * about:tracing open. One process for the CPUs and one a device; in a device, one thread for
 * kernels, one for copies coming in and one for copies going out (more where records of one thread
 * overlap).
 */
#ifndef DUET_PERFETTO_H
#define DUET_PERFETTO_H

#include <stdio.h>

#include "platforms/fields.h"
#include "runs/run.h"

/* A recorded run, and what a trace says of it beside its records. Read ones are owned, by
   duet__trace_fini (read.h). */
struct duet__trace {
    struct duet__run run; /* with its seed, counters, bounds and recording */
    char *world;          /* "simulated", "real", "emulated"; NULL here and below: not known */
    char *workload;       /* or program, */
    char *settings;       /* its parameters */
    uint64_t n, tile;     /* and sizes; 0: not known */
    char *estimated;      /* kernels whose times nobody has measured, NULL: none */
    char *policy;
};

/*
 * Writes the trace to `stream` in one pass: memory does not grow with the number of events. Write
 * errors are left for the one who closes the stream. A copy from device to device stands with the
 * one that receives it.
 */
void duet__trace_write(FILE *stream, const struct duet__trace *trace);

/* The keys of otherData that are members of struct duet__trace, for writer and reader. */
extern const struct duet__field duet__trace_fields[];
/* Those of what a policy has chosen, a struct duet_choice. */
extern const struct duet__field duet__choice_fields[];

#endif
