/* SPDX-License-Identifier: Apache-2.0 */
/* The results in a file, put together: cells with their runs, in the order of their cases. */
#ifndef DUET_STUDY_RESULTS_H
#define DUET_STUDY_RESULTS_H

#include "base/texts.h"
#include "study/store.h"

/* A setting that has several values in the file. */
struct duet__varied {
    char *name;
    struct duet__texts levels; /* its values */
};

/* A combination of values, and what its runs say. */
struct duet__cell {
    const uint32_t *levels; /* one for each that varies */
    size_t first, count;    /* its runs, in `seeds` and `spans` of the results, by ascending seed */
    double mean_s;          /* makespan */
    double reach_s; /* half the 95 % interval of that; INFINITY: of too few runs, or equal ones */
    double flops;   /* of one run, in GFlop */
    double bound_s; /* the largest lower bound; 0: none is known */
};

struct duet__results {
    const struct duet__store *store;
    GPtrArray *constants; /* char *: name and value of each setting with one value, in turn */
    GPtrArray *varied;    /* struct duet__varied *: those of problems, of cases, and chosen ones */
    guint problem_varied; /* workload, n, precision: of problems, which are not compared */
    guint case_varied;    /* with these, those that tell cases apart */
    size_t cell_count, case_count;
    struct duet__cell *cells; /* case after case, the best one first */
    size_t *cases;            /* the first cell of each, and behind the last one */
    uint32_t *levels;
    uint64_t *seeds;
    double *spans; /* makespans in seconds */
    size_t run_count;
    bool repeated; /* there are cells of enough runs for intervals */
};

/* The newest result of each run: what is asked for stands before it, and more conditions behind. */
#define DUET__NEWEST                                                                               \
    "FROM runs WHERE id IN (SELECT id FROM (SELECT id, max(made_at || (1000000000000 + id)) FROM " \
    "runs WHERE error IS NULL GROUP BY command, rep))"

/*
 * Reads what the store, which has to outlive it, has. `best`: names of settings that are chosen
 * over, "tile,policy"; NULL: policy, tile and others that one is free to choose; "": none. A run
 * made by several versions or on a platform that has changed counts once, as its newest result.
 * Without any result there are no cells. duet__results_fini frees it, also after an error.
 * DUET_EINVAL: `best` names something else; DUET_EIO.
 */
DUET_MUST_CHECK int duet__results_read(struct duet__results *results,
                                       const struct duet__store *store, const char *best,
                                       struct duet_message *message);
void duet__results_fini(struct duet__results *results);

/* A setting that varies, and its value in a cell. */
const struct duet__varied *duet__varied(const struct duet__results *results, guint index);
const char *duet__level_text(const struct duet__results *results, const struct duet__cell *cell,
                             guint varied);

#endif
