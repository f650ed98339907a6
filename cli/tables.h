/* SPDX-License-Identifier: Apache-2.0 */
/* Tables of runs, which several commands share: from options to a plan, and its runs. */
#ifndef DUET_CLI_TABLES_H
#define DUET_CLI_TABLES_H

#include "cli/job.h"
#include "study/study.h"

/* A table of runs under way: the plan, and what its runs need. The caller sets the first three;
   duet__tables_fini frees it, also half-built. */
struct duet__tables {
    struct duet__job *job;
    const struct duet__command *command; /* command of a cell: simulate or run */
    struct duet__study *study;
    bool single; /* a cell is one run, also where its command would make several real ones */
    struct duet__plan plan;
    struct duet__store store;
    /* struct duet__platform by the text of --platform, for cells: loaded once, before any run */
    GHashTable *platforms;
};

/*
 * Reads the factors: options and the workloads behind argv[0], or what a file has besides; then
 * numbers the cells. Returns errors of duet__study_add and duet__study_read.
 */
DUET_MUST_CHECK int duet__tables_read(struct duet__tables *tables, int argc, char *const *argv,
                                      struct duet_message *message);

/*
 * Makes the request for one run of a cell, with one policy, from `base` and the cell's values. Its
 * texts are the study's and the job's. The caller frees it, also after an error.
 */
DUET_MUST_CHECK int duet__tables_cell(const struct duet__tables *tables, uint64_t cell,
                                      const struct duet__request *base,
                                      struct duet__request *request, struct duet_message *message);

/* Completes the plan of the table. Returns DUET_EINVAL, or errors of loading, if something is
   missing. */
DUET_MUST_CHECK int duet__tables_plan(struct duet__tables *tables, struct duet_message *message);

/* Closes the store, and frees what a table owns. Returns errors of duet__store_close. */
int duet__tables_fini(struct duet__tables *tables, struct duet_message *message);

#endif
