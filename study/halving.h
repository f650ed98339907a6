/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Search for the best of many settings by few measurements: successive halving (Jamieson,
 * Talwalkar, Non-stochastic best arm identification, AISTATS 2016) over measurements that are cheap
 * and rough at first and dear and true at last; then the neighbours of the best ones.
 */
#ifndef DUET_STUDY_HALVING_H
#define DUET_STUDY_HALVING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "study/table.h"

/*
 * Measures settings at a level: seconds[i] is that of settings[i], INFINITY if it has none, or no
 * time was left. A return value other than 0 ends the search.
 */
typedef int duet__measure_fn(void *data, unsigned level, const uint32_t *settings, size_t count,
                             double *seconds);

/*
 * A search among all cells of a product, which are numbered from 0 on. Values of a factor are alike
 * if they are numbers next to each other; of names, each is as near as any other. Rough
 * measurements do not compare settings that differ in the tile. It borrows everything.
 */
struct duet__search {
    const struct duet__product *product;
    const uint32_t *order; /* all settings, in the order in which they are tried while there is
                              time */
    unsigned levels;       /* number of levels, at least 1; the last level is the problem itself */
    uint32_t part; /* one setting in so many goes from a level to the next, of each value apart */
    size_t tops;   /* number of best settings whose neighbours are measured */
    duet__measure_fn *measure;
    void *data;
};

/* A setting that was measured at the last level. */
struct duet__found {
    uint32_t setting;
    double seconds;
};

/*
 * Returns all settings measured at the last level, best first: struct duet__found, for
 * g_array_unref. No setting is measured twice at a level. *error: the error that ended the search,
 * else 0.
 */
GArray *duet__search(const struct duet__search *search, int *error);

#endif
