/* SPDX-License-Identifier: Apache-2.0 */
/* Reading back what duet has printed as JSON: the runs of reports, and both sides of validations.
 */
#ifndef DUET_RUNS_FILE_H
#define DUET_RUNS_FILE_H

#include <stddef.h>

#include <glib.h>

#include <duet/error.h>

#include "validate/validation.h"

enum duet_file_kind {
    DUET_FILE_UNKNOWN,
    DUET_FILE_TRACE,      /* trace_file.h */
    DUET_FILE_REPORT,     /* of duet simulate and duet run: runs */
    DUET_FILE_VALIDATION, /* of duet validate and duet compare: cases */
};

/* What the first key of a JSON object that is one of theirs says; bad JSON is unknown. */
enum duet_file_kind duet_file_kind(const char *text, size_t length);

/* Runs of one problem under one policy. */
struct duet_file_run {
    const char *world; /* "simulated", "real", "emulated"; of a validation the side: "predicted" */
    struct duet_case problem; /* without sides */
    struct duet_side side;    /* makespans and rounds; at least one run */
};

/* All of a file. Zero-initialise. */
struct duet_runs_file {
    enum duet_file_kind kind;
    struct duet_file_run *runs;
    size_t count;
    GPtrArray *owned; /* what the runs point to */
};

/*
 * Reads the text of a report or of a validation, schema 1 (length bytes and a final zero). Cases of
 * a validation are two runs; a side without values is left out. `path` is for messages. The caller
 * owns *out (duet_runs_file_fini). Errors, with one line that names file and place: DUET_EPARSE (no
 * JSON, another schema, something missing, no run in it); *out is then empty.
 */
DUET_MUST_CHECK int duet_runs_file_parse(const char *text, size_t length, const char *path,
                                         struct duet_runs_file *out, struct duet_message *message);

/* Frees it. Safe on a zeroed one, and twice. */
void duet_runs_file_fini(struct duet_runs_file *file);

#endif
