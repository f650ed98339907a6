/* SPDX-License-Identifier: Apache-2.0 */
/* Reading back a trace that duet has written (perfetto.h), so that it can be accounted for. */
#ifndef DUET_TRACE_FILE_H
#define DUET_TRACE_FILE_H

#include <stddef.h>

#include <duet/error.h>

#include "runs/recording.h"

/* A trace that was read. Zero-initialise. */
struct duet_trace_file {
    struct duet_machine machine; /* names, workers and memories; routes and costs are all zero */
    struct duet_event *events;
    char **kernels;                  /* names, NULL-ended */
    struct duet_recording recording; /* of the above */
};

/*
 * Reads the text of a trace (length bytes and a final zero). Dates count from the first submission
 * that it shows, the makespan is from there to the end of the last kernel that did not fail; both
 * to the nanosecond, as they are written. A copy's worker is the one of its device. `path` is for
 * messages. The caller owns *out (duet_trace_file_fini). Errors, with one line that names file and
 * place: DUET_EPARSE (no JSON, not one of duet's traces, nothing in it), DUET_ENOMEM; *out is then
 * empty.
 */
DUET_MUST_CHECK int duet_trace_file_parse(const char *text, size_t length, const char *path,
                                          struct duet_trace_file *out,
                                          struct duet_message *message);

/* Frees it. Safe on a zeroed one, and twice. */
void duet_trace_file_fini(struct duet_trace_file *file);

#endif
