/* SPDX-License-Identifier: Apache-2.0 */
/* Two files that duet has written become cases, one side of each from each file. */
#ifndef DUET_REPORT_COMPARE_H
#define DUET_REPORT_COMPARE_H

#include <stddef.h>

#include <glib.h>

#include "report/runs_file.h"
#include "report/trace_file.h"
#include "validate/account.h"
#include "validate/validation.h"

/* One of the two files. */
struct duet_compared_file {
    char *name; /* "A: run.json" */
    enum duet_file_kind kind;
    struct duet_runs_file runs;   /* of a report or a validation */
    struct duet_trace_file trace; /* of a trace, as what follows */
    struct duet_account account;
    double makespan_s;
};

/* Zero-initialise; duet_comparison_fini. */
struct duet_comparison {
    struct duet_compared_file files[2];
    GArray *cases;    /* struct duet_case; what they point to belongs to this */
    GPtrArray *texts; /* strings */
    GPtrArray *notes; /* lines about what is not compared, or only in part */
};

/*
 * Reads both files, which may be pipes, and puts together what they have in common; `policy` NULL:
 * runs of all policies. Errors: those of trace_file.h and runs_file.h, DUET_EIO, DUET_EINVAL where
 * nothing is in both, or where it is not clear what.
 */
DUET_MUST_CHECK int duet_comparison_make(struct duet_comparison *comparison,
                                         const char *const paths[2], const char *policy,
                                         struct duet_message *message);

/* "idgraf, 4 CPUs (x5650)": what is known of where the runs were made; free with g_free. */
char *duet_comparison_place(const struct duet_comparison *comparison);

void duet_comparison_fini(struct duet_comparison *comparison);

#endif
