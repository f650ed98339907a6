/* SPDX-License-Identifier: Apache-2.0 */
/* The results in a file, in groups: cells with their runs, in the order of their cases. */
#ifndef DUET_STUDY_RESULTS_H
#define DUET_STUDY_RESULTS_H

#include "base/texts.h"
#include "study/store.h"

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

#endif
