/* SPDX-License-Identifier: Apache-2.0 */
/* Answers from a file of results: the best setting for each case, and how sure that is. */
#ifndef DUET_STUDY_ANSWER_H
#define DUET_STUDY_ANSWER_H

#include <stdio.h>

#include "base/texts.h"
#include "study/store.h"

/* ------------------------------------------------------------------------------------------- */
/* The results in a file, in groups: cells with their runs, in the order of their cases. */

/* A setting that has several values in the file. */
struct duet__varied {
    char *name;
    struct duet__texts levels; /* values of the factor */
};

/* A combination of values, and the results of its runs. */
struct duet__cell {
    const uint32_t *levels; /* one for each setting that varies */
    size_t first, count;    /* range of its runs in `seeds` and `spans` of the results, by ascending
                               seed */
    double mean_s;          /* mean makespan */
    double reach_s; /* half the 95 % interval of mean_s; INFINITY: too few runs, or equal ones */
    double flops;   /* work of one run, in GFlop */
    double bound_s; /* the largest lower bound; 0: none is known */
};

struct duet__results {
    const struct duet__store *store;
    GPtrArray *constants; /* char *: name and value of each setting with one value, in turn */
    GPtrArray *varied;    /* struct duet__varied *: those of problems, of cases, and chosen ones */
    guint problem_varied; /* number of settings that tell problems apart: workload, n, precision */
    guint case_varied;    /* number of settings that tell cases apart, with these */
    size_t cell_count, case_count;
    struct duet__cell *cells; /* case after case, the best one first */
    size_t *cases;            /* index of the first cell of each, and behind the last one */
    uint32_t *levels;
    uint64_t *seeds;
    double *spans; /* makespans in seconds */
    size_t run_count;
    bool repeated; /* some cells have enough runs for intervals */
};

/* Selects the newest row of each run, however its inputs have changed: DUET__NEWEST if that is a
   result, DUET__FAILED_NEWEST if not. Columns go before it, and more conditions behind. */
#define DUET__NEWEST_IF(is)                                                                        \
    "FROM runs WHERE error " is " AND id IN (SELECT id FROM (SELECT id, max(made_at || "           \
    "(1000000000000 + id)) FROM runs GROUP BY command, rep))"
#define DUET__NEWEST DUET__NEWEST_IF("IS NULL")
#define DUET__FAILED_NEWEST DUET__NEWEST_IF("IS NOT NULL")

/*
 * Reads the results of a store, which has to outlive them. `best`: names of settings that are
 * chosen over, "tile,policy"; NULL: policy, tile and others that one is free to choose; "": none. A
 * run made by several versions or on a platform that has changed counts once, as its newest row.
 * Without any result there are no cells. duet__results_fini frees the results, also after an error.
 * Returns DUET_EINVAL if `best` names something else, or DUET_EIO.
 */
DUET_MUST_CHECK int duet__results_read(struct duet__results *results,
                                       const struct duet__store *store, const char *best,
                                       struct duet_message *message);
void duet__results_fini(struct duet__results *results);

/* Returns a setting that varies, by its index. */
const struct duet__varied *duet__varied(const struct duet__results *results, guint index);
const char *duet__level_text(const struct duet__results *results, const struct duet__cell *cell,
                             guint varied);

/* Returns a value as tables show it: a file's path from the root without the folders. */
const char *duet__shown_text(const char *text);

/* ------------------------------------------------------------------------------------------- */
/*
 * Comparison of the levels of one setting over all cases: a case of such a comparison is a
 * combination of all other settings that vary, so that only this one differs in it.
 */

struct duet__ranking {
    size_t levels;          /* number of the setting's levels */
    size_t cases, left_out; /* cases with all levels, and cases without */
    double *ranks;          /* mean rank of each level; 1: the shortest makespan */
    double *ratios;         /* geometric mean of each level's makespan to that of all levels of a
                               case */
    size_t *order;          /* levels by ascending rank */
    /* Share of the variance of logarithms of makespans that the setting explains, without its
       interactions (eta squared), problems (workload, n, precision) each around their own mean: 0
       to 1. */
    double share;
    double p;        /* Friedman's test that all levels are alike; NAN: fewer than two cases */
    double distance; /* significant one between mean ranks (Nemenyi, 5 %) */
    /* The level that is compared with each other one: of files, as one's own policies are, that
       with the best mean rank; without any, of all. */
    size_t own;
    double
        *against; /* Wilcoxon's test of `own` against each level, adjusted by Holm; NAN: itself */
};

/* Compares the levels of the `varied`-th setting that varies. duet__ranking_fini frees the
   result. */
void duet__rank(const struct duet__results *results, guint varied, struct duet__ranking *ranking);
void duet__ranking_fini(struct duet__ranking *ranking);

/*
 * Friedman's test that `levels` > 1 things are alike, from `cases` rows of one value of each:
 * writes their mean ranks, equal values sharing theirs, and returns the probability of ranks as
 * different as these by chance; NAN for fewer than two cases. The statistic is that of Iman and
 * Davenport (Communications in Statistics A9, 1980) with ties as in Conover, Practical
 * Nonparametric Statistics, 5.8; see Demsar (Journal of Machine Learning Research 7, 2006).
 */
double duet__friedman(const double *values, size_t cases, size_t levels, double *ranks);

/*
 * Returns the least significant difference of mean ranks of `levels` things over `cases` cases, in
 * 95 % of all such comparisons together: Nemenyi's critical difference (Demsar, 3.2.2).
 */
double duet__nemenyi(size_t levels, size_t cases);

/*
 * Returns the p-quantile of the range of `count` > 1 independent values of the standard normal
 * distribution (the studentized range with infinitely many degrees of freedom), 0 < p < 1:
 * bisection of its distribution function, count * integral of phi(z) (Phi(z) - Phi(z - q))^(count -
 * 1) dz, by the trapezoidal rule, which for such integrands is exact but for rounding.
 */
double duet__range_quantile(double p, size_t count);

/* ------------------------------------------------------------------------------------------- */
/* Answers                                                                                      */

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

/* Returns a sentence about the setting that is best for all cases together, for g_free; NULL if
   there is none that all cases have, or nothing to choose. */
char *duet__study_advice(const struct duet__results *results);

#endif
