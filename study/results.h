/* SPDX-License-Identifier: Apache-2.0 */
/* The results in a file, put together: cells with their runs, in the order of their cases. */
#ifndef DUET_STUDY_RESULTS_H
#define DUET_STUDY_RESULTS_H

#include "study/store.h"

/* A setting that has several values in the file. */
struct duet__varied {
    char *name;
    bool chosen;       /* one that is chosen over; else it tells cases apart */
    bool problem;      /* what is to be solved, of which makespans say nothing to each other */
    GPtrArray *levels; /* char *: its values, in the order in which they come */
    GHashTable *known; /* 1 + the place of each there */
};

/* A combination of values, and what its runs say. */
struct duet__cell {
    guint row;          /* its place in `levels` of the results */
    guint first, count; /* its runs, in `seeds` and `spans` of the results, by ascending seed */
    double mean_s;      /* makespan */
    double reach_s;     /* half the 95 % interval of that; INFINITY: of too few runs */
    double flops;       /* of one run, in GFlop */
    double bound_s;     /* the largest lower bound; 0: none is known */
};

struct duet__results {
    const struct duet__store *store;
    GPtrArray *varied; /* struct duet__varied *, those of cases first */
    guint case_varied; /* how many these are */
    GArray *cells;     /* case after case, the best one first */
    GArray *cases;     /* guint: the first cell of each, and behind the last one */
    GArray *levels;    /* uint32_t: of each cell, one for each that varies */
    GArray *seeds;     /* uint64_t */
    GArray *spans;     /* double: makespans in seconds */
    bool repeated;     /* there are cells of enough runs for intervals */
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

static inline guint duet__case_count(const struct duet__results *results)
{
    return results->cases->len - 1;
}

static inline const struct duet__cell *duet__cell(const struct duet__results *results, guint index)
{
    return &g_array_index(results->cells, struct duet__cell, index);
}

/* The first cell of a case; that of the case behind the last one is their number. */
static inline guint duet__case_begin(const struct duet__results *results, guint index)
{
    return g_array_index(results->cases, guint, index);
}

static inline const struct duet__varied *duet__varied(const struct duet__results *results,
                                                      guint index)
{
    return results->varied->pdata[index];
}

static inline uint32_t duet__level(const struct duet__results *results, guint cell, guint varied)
{
    return g_array_index(results->levels, uint32_t,
                         duet__cell(results, cell)->row * results->varied->len + varied);
}

/* The value of a cell as a text. */
const char *duet__level_text(const struct duet__results *results, guint cell, guint varied);

#endif
