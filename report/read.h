/* SPDX-License-Identifier: Apache-2.0 */
/* Reading back what duet has written: traces, and the JSON of reports and validations. */
#ifndef DUET_REPORT_READ_H
#define DUET_REPORT_READ_H

#include <stddef.h>

#include <glib.h>

#include <duet/error.h>

#include "base/json.h"
#include "trace/trace.h"
#include "validate/validation.h"

/* Runs of one problem under one policy. */
struct duet__read_run {
    const char *world; /* "simulated", "real", "emulated"; of a validation the side: "predicted" */
    struct duet__case problem; /* without sides */
    struct duet__side side;    /* at least one run */
    bool matched;              /* for those who look for its like */
};

/* All of a file. */
struct duet__file_runs {
    bool traced;  /* a trace: of one run, with its account and recording */
    bool cases;   /* of duet validate or duet compare, else of duet simulate or duet run */
    GArray *runs; /* struct duet__read_run */
    /* what they point to: */
    struct duet__json document;
    GPtrArray *arrays;
    struct duet__trace trace;
    struct duet__account account;
};

/*
 * Reads a file, or what a pipe gives. Cases of a validation are two runs; a side without values is
 * left out. The caller owns *out (duet__read_fini), also after an error, and does not move it.
 * Errors, with one line that names file and place: DUET_EIO, DUET_EPARSE (no JSON, another schema,
 * something missing, no run in it).
 */
DUET_MUST_CHECK int duet__read_runs(const char *path, struct duet__file_runs *out,
                                    struct duet_message *message);

/* The same from a text of length bytes and a final zero; `path` is for messages. */
DUET_MUST_CHECK int duet__read_text(const char *text, size_t length, const char *path,
                                    struct duet__file_runs *out, struct duet_message *message);

/* Frees it. Safe on a zeroed one, and twice. */
void duet__read_fini(struct duet__file_runs *file);

#endif
