/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Looking for the best of many settings by few measurements: successive halving (Jamieson,
 * Talwalkar, Non-stochastic best arm identification, AISTATS 2016) over measurements that are
 * cheap and rough at first and dear and true at last; then what lies beside the best ones.
 */
#ifndef DUET_STUDY_HALVING_H
#define DUET_STUDY_HALVING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <glib.h>

#include <duet/error.h>

/* What is chosen among. */
struct duet__dimension {
    uint32_t values;
    bool ordered; /* values next to each other are alike; else each is as near as any other */
    bool apart;   /* rough measurements do not compare settings that differ in it; of one at most */
};

/*
 * Measures settings at a level: seconds[i] of settings[i], INFINITY where there are none, or no
 * time was left. Not 0: the search ends with that.
 */
typedef int duet__measure_fn(void *data, unsigned level, const uint32_t *settings, size_t count,
                             double *seconds);

/* All combinations, numbered with the last dimension as the fastest. Everything is borrowed. */
struct duet__search {
    const struct duet__dimension *dimensions;
    size_t dimension_count;
    const uint32_t *order; /* all settings, as they are tried while there is time */
    uint32_t count;
    unsigned levels; /* at least 1; the last one is the true one */
    uint32_t part;   /* one in so many goes from a level to the next, of each value apart */
    size_t tops;     /* so many of the best get their neighbours measured */
    duet__measure_fn *measure;
    void *data;
};

/* A setting that was measured at the last level. */
struct duet__found {
    uint32_t setting;
    double seconds;
};

/*
 * All that were measured at the last level, best first: struct duet__found, for g_array_unref. No
 * setting is measured twice at a level. *error: what ended it, else 0.
 */
GArray *duet__search(const struct duet__search *search, int *error);

#endif
