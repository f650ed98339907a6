/* SPDX-License-Identifier: Apache-2.0 */
/* Compares two files that duet has written, as cases with one side from each. */
#ifndef DUET_REPORT_COMPARE_H
#define DUET_REPORT_COMPARE_H

#include <glib.h>

#include "report/read.h"

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
