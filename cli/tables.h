/* SPDX-License-Identifier: Apache-2.0 */
/* What the commands that make tables of runs share: from options to a plan, and its runs. */
#ifndef DUET_CLI_TABLES_H
#define DUET_CLI_TABLES_H

#include "cli/job.h"
#include "study/study.h"

/* A table of runs under way: what was asked for, and what the runs are of. The first three are to
   be set; duet__tables_fini frees it, also half-built. */
struct duet__tables {
    struct duet__job *job;
    const struct duet__command *command; /* of its cells: simulate or run */
    struct duet__study *study;
    bool single; /* a real run is one, too, however many its command would make */
    struct duet__plan plan;
    struct duet__store store;
    /* struct duet__platform by the text of --platform, for cells: loaded once, before any run */
    GHashTable *platforms;
};

/*
 * The factors: options and the workloads behind argv[0], or what a file has besides; then the cells
 * have numbers. Errors of duet__study_add and duet__study_read.
 */
DUET_MUST_CHECK int duet__tables_read(struct duet__tables *tables, int argc, char *const *argv,
                                      struct duet_message *message);

/*
 * What a cell asks for of one run, as a request with one policy beside what `base` says of all. Its
 * texts are the study's and the job's. To be freed also after an error.
 */
DUET_MUST_CHECK int duet__tables_cell(const struct duet__tables *tables, uint64_t cell,
                                      const struct duet__request *base,
                                      struct duet__request *request, struct duet_message *message);

/* What is to be made of it. DUET_EINVAL and errors of loading where it misses something. */
DUET_MUST_CHECK int duet__tables_plan(struct duet__tables *tables, struct duet_message *message);

/* A duet__execute_fn, of struct duet__tables: one run of a cell. */
void duet__tables_execute(uint64_t job, FILE *result, void *data);

/* Closes the store, and frees what a table owns. Errors of duet__store_close. */
int duet__tables_fini(struct duet__tables *tables, struct duet_message *message);

#endif
