/* SPDX-License-Identifier: Apache-2.0 */
/* Answers from a file of results: the best setting for each case, and how sure that is. */
#ifndef DUET_STUDY_ANSWER_H
#define DUET_STUDY_ANSWER_H

#include <stdio.h>

#include "study/results.h"

/*
 * Prints a table with a line for each case: each combination of the settings that vary and are not
 * chosen over. The line names the best values of the chosen settings (`best`, see
 * duet__results_read) by the mean makespan of their runs, and how far they are before the second.
 * If both have three runs or more, compared seed by seed, there is an interval of the lead in
 * percent: of Student's t, 95 % for all comparisons of a case together (Bonferroni). Of many cases
 * some are shown, unless `every`. Returns errors of duet__results_read.
 */
DUET_MUST_CHECK int duet__study_show(FILE *stream, const struct duet__store *store,
                                     const char *best, bool every, struct duet_message *message);

/*
 * Writes the page: duet__study_show's table, and charts that its reader makes of all cells.
 * `command`: the command line that asks for it, shown where none is known that made the rows.
 * Returns errors of duet__results_read; DUET_EIO, with an older file unchanged, also if it cannot
 * be written.
 */
DUET_MUST_CHECK int duet__study_page(const char *path, const struct duet__store *store,
                                     const char *best, const char *command,
                                     struct duet_message *message);

/*
 * Writes charts into a folder, which is there: those with which the page begins, for each problem
 * and over each number that varies, effects, and rankings, each as NAME.svg, and the numbers that
 * it shows as NAME.csv. Without several results there are none, and *message says so. Returns
 * errors of duet__results_read; DUET_EIO, with older files unchanged from the one on that cannot be
 * written.
 */
DUET_MUST_CHECK int duet__study_charts(const char *folder, const struct duet__store *store,
                                       const char *best, struct duet_message *message);

/*
 * Prints a tabular of LaTeX with a row for each case and a column for each value of the setting
 * that is ranked: its best makespan, the shortest in bold. Returns errors of duet__results_read.
 */
DUET_MUST_CHECK int duet__study_latex(FILE *stream, const struct duet__store *store,
                                      const char *best, struct duet_message *message);

/* Prints all rows as CSV, with everything known of them. Returns DUET_EIO. */
DUET_MUST_CHECK int duet__study_csv(FILE *stream, const struct duet__store *store,
                                    struct duet_message *message);

/*
 * Returns the builds of the rows if there are several, as texts, one a row, to be finalized;
 * duet__study_failed, runs without a result; duet__study_estimated (may be NULL), results that rest
 * on estimates.
 */
sqlite3_stmt *duet__study_builds(const struct duet__store *store);
sqlite3_stmt *duet__study_failed(const struct duet__store *store);
sqlite3_stmt *duet__study_estimated(const struct duet__store *store);

/* Returns the command lines that made the rows, a line each, for g_free; or `other`, where the file
   has none. */
char *duet__study_commands(const struct duet__store *store, const char *other);

/* The lead of the best cell of a case before its others. */
struct duet__lead {
    guint others;
    double mean, reach; /* to the second, in parts of the best; INFINITY: too few runs */
    char sure[32];      /* "sure", or why the lead is not */
};

/* Returns the setting whose values are ranked: the policy, or else the first that is chosen over;
   the number of settings: none is. */
guint duet__study_ranked(const struct duet__results *results);

struct duet__lead duet__study_lead(const struct duet__results *results, size_t index);

/* Returns the part of the seeds with which the cell of this rank in a case has the shortest run:
   its chance to be the best on a machine that is drawn (--interval); NaN of too few runs. */
double duet__study_chance(const struct duet__results *results, size_t index, size_t rank);

/* Returns a sentence about the setting that is best for all cases together, for g_free; NULL if
   there is none that all cases have, or nothing to choose. */
char *duet__study_advice(const struct duet__results *results);

#endif
