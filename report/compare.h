/* SPDX-License-Identifier: Apache-2.0 */
/* Two files that duet has written become cases, one side of each from each file. */
#ifndef DUET_REPORT_COMPARE_H
#define DUET_REPORT_COMPARE_H

#include <glib.h>

#include "report/read.h"

/* Zero-initialise; duet__comparison_fini. */
struct duet__comparison {
    /* of the cases, called "A: run.json" against "B: ..."; what is left to the caller, who may have
       it judged: command, date, limit */
    struct duet__validation validation;
    GPtrArray *notes; /* lines about what is not compared, or only in part */
    /* what the above point to: */
    struct duet__file_runs files[2];
    GArray *cases; /* struct duet__case */
    GPtrArray *texts;
};

/*
 * Reads both files, which may be pipes, and puts together what they have in common; `policy` NULL:
 * runs of all policies. Errors: those of duet__read_runs, DUET_EINVAL where nothing is in both, or
 * where it is not clear what.
 */
DUET_MUST_CHECK int duet__comparison_make(struct duet__comparison *comparison,
                                          const char *const paths[2], const char *policy,
                                          struct duet_message *message);

void duet__comparison_fini(struct duet__comparison *comparison);

#endif
