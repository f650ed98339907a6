/* SPDX-License-Identifier: Apache-2.0 */
/* What a file of results says: the best setting for each case, and how sure that is. */
#ifndef DUET_STUDY_ANSWER_H
#define DUET_STUDY_ANSWER_H

#include <stdio.h>

#include "study/results.h"

/*
 * Prints a table with a line for each case: each combination of the settings that vary and are not
 * chosen over. Of those that are (`best`, as of duet__results_read), it says which are best there,
 * by the mean makespan of their runs, and how far before the second. With three runs or more of
 * both, whose differences are taken seed by seed, there is an interval of the lead in percent: of
 * Student's t, 95 % for all comparisons of a case together (Bonferroni). Of many cases some are
 * shown, unless `every`. Errors as of duet__results_read.
 */
DUET_MUST_CHECK int duet__study_show(FILE *stream, const struct duet__store *store,
                                     const char *best, bool every, struct duet_message *message);

/*
 * Writes the page: the same, and charts that its reader makes of all cells. `command`: the command
 * line that asks for it. Errors as of duet__results_read; DUET_EIO, with an older file as it was,
 * also where it cannot be written.
 */
DUET_MUST_CHECK int duet__study_page(const char *path, const struct duet__store *store,
                                     const char *best, const char *command,
                                     struct duet_message *message);

/* Prints all rows, with all that is known of them, as CSV. DUET_EIO. */
DUET_MUST_CHECK int duet__study_csv(FILE *stream, const struct duet__store *store,
                                    struct duet_message *message);

/* Texts, one a row, to be finalized: that there are several builds; what has no result; what rests
   on estimates (may be NULL). */
sqlite3_stmt *duet__study_builds(const struct duet__store *store);
sqlite3_stmt *duet__study_failed(const struct duet__store *store);
sqlite3_stmt *duet__study_estimated(const struct duet__store *store);

/* How far the best cell of a case is before its others. */
struct duet__lead {
    guint others;
    double mean, reach; /* to the second, in parts of the best; INFINITY: of too few runs */
    char sure[32];      /* "sure", or why it is not */
};

struct duet__lead duet__study_lead(const struct duet__results *results, size_t index);

/* A sentence about the setting that is best for all cases together, for g_free; NULL: there is
   none that all cases have, or nothing to choose. */
char *duet__study_advice(const struct duet__results *results);

#endif
