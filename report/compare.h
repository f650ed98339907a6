/* SPDX-License-Identifier: Apache-2.0 */
/* Reads files that duet has written, and compares two of them as cases with one side from each. */
#ifndef DUET_REPORT_COMPARE_H
#define DUET_REPORT_COMPARE_H

#include <stddef.h>

#include <glib.h>

#include <duet/error.h>

#include "base/json.h"
#include "trace/trace.h"
#include "validate/validation.h"

/* ------------------------------------------------------------------------------------------- */
/* Traces, and the JSON of reports and validations, as runs                                     */

/* Runs of one problem under one policy. */
struct duet__read_run {
    const char *world;         /* "simulated", "real", "emulated"; in a validation "predicted" or
                                  "measured" */
    struct duet__case problem; /* problem of the runs; the sides of this case are empty */
    struct duet__side side;    /* at least one run */
    bool matched;              /* used by those who match runs */
};

/* Contents of a file. */
struct duet__file_runs {
    bool traced;  /* it is a trace of one run, with its account and recording */
    bool cases;   /* it is from duet validate or compare, else from duet simulate or run */
    GArray *runs; /* struct duet__read_run */
    /* owners of what runs point to */
    struct duet__json document;
    GPtrArray *arrays;
    struct duet__trace trace;
    struct duet__account account;
};

/*
 * Reads a file or pipe. Cases of a validation become two runs; a side without values is left out.
 * The caller owns *out (duet__read_fini), also after an error, and does not move it. Errors, with
 * one line that names file and place: DUET_EIO, DUET_EPARSE (no JSON, another schema, something
 * missing, no run in it).
 */
DUET_MUST_CHECK int duet__read_runs(const char *path, struct duet__file_runs *out,
                                    struct duet_message *message);

/* Reads a text of length bytes and a final zero; `path` is for messages. Otherwise as
 * duet__read_runs. */
DUET_MUST_CHECK int duet__read_text(const char *text, size_t length, const char *path,
                                    struct duet__file_runs *out, struct duet_message *message);

/* Frees it. Safe on a zeroed one, and twice. */
void duet__read_fini(struct duet__file_runs *file);

/* ------------------------------------------------------------------------------------------- */
/* Comparisons                                                                                  */

/* A comparison. Zero-initialise; duet__comparison_fini frees it. */
struct duet__comparison {
    /* of the cases, "A: run.json" against "B: ..."; the caller sets command, date and limit */
    struct duet__validation validation;
    GPtrArray *notes; /* lines about runs that are not compared, or only in part */
    /* files that the members above point to */
    struct duet__file_runs files[2];
    GArray *cases; /* struct duet__case */
    GPtrArray *texts;
};

/*
 * Reads both files, which may be pipes, and matches their runs; `policy` NULL: of all policies.
 * Errors: those of duet__read_runs; DUET_EINVAL if no run, or no clear choice of runs, is in both.
 */
DUET_MUST_CHECK int duet__comparison_make(struct duet__comparison *comparison,
                                          const char *const paths[2], const char *policy,
                                          struct duet_message *message);

void duet__comparison_fini(struct duet__comparison *comparison);

#endif
