/* SPDX-License-Identifier: Apache-2.0 */
/* Fits the time of one kernel to executions of one point. */
#ifndef DUET_CALIBRATE_KERNEL_FIT_H
#define DUET_CALIBRATE_KERNEL_FIT_H

#include <stdbool.h>
#include <stddef.h>

#include "calibrate/executions.h"
#include "calibrate/fit.h"

/* ------------------------------------------------------------------------------------------- */
/* The data of the fit */

/* One execution, beside its time. */
struct duet__row {
    uint32_t run;
    double others;      /* mean number of the socket's other workers that computed */
    double workers;     /* number in its socket; 0: on a device */
    double bytes;       /* sum over all operands */
    double from_memory; /* bytes of `bytes` that were missing in the socket's cache */
};

struct duet__rows {
    size_t count;
    double *seconds;
    double *missing; /* part of each row's bytes that came from memory */
    struct duet__row *list;
    double bytes; /* mean */
};

/*
 * Makes the rows of a group: all its executions, or with `limit` above 0 those among the first
 * `limit` of their run. `missing` is from duet__missing_find. The caller owns *out
 * (duet__rows_fini).
 */
void duet__rows_make(const struct duet__executions *executions, const struct duet__group *group,
                     const double *missing, size_t limit, struct duet__rows *out);

void duet__rows_fini(struct duet__rows *rows); /* safe on zeroed ones, and twice */

/* Returns the part of the socket's other workers that computed, 0 to 1. */
static inline double duet__row_busy_part(const struct duet__row *row)
{
    return row->workers > 1 ? row->others / (row->workers - 1) : 0;
}

/* True if at most a tenth of the socket's other workers computed. */
static inline bool duet__row_alone(const struct duet__row *row)
{
    return duet__row_busy_part(row) <= 0.1;
}

/* True if more than half of the socket's other workers computed. */
static inline bool duet__row_busy(const struct duet__row *row)
{
    return duet__row_busy_part(row) > 0.5;
}

/* True if most of its data was in memory. */
static inline bool duet__row_cold(const struct duet__row *row)
{
    return row->from_memory > row->bytes / 2;
}

/* ------------------------------------------------------------------------------------------- */
/* The fit                                                                                       */

struct duet__kernel_fit {
    struct duet__fit fit;
    double busy_ratio, bandwidth_Bps;
};

/* Expected time of a row, with its neighbours: that of duet__rates if the others are executions
 * like this one. */
double duet__kernel_seconds(const struct duet__kernel_fit *kernel, const struct duet__rows *rows,
                            size_t row);

/*
 * Fits the rows with used[i] (NULL: all). Base and memory come from the rows that were alone; from
 * all if fewer than 5 were alone, but all are 10 or more, or none was. With fewer than 10 rows the
 * base is their mean, and memory costs nothing. busy_ratio, in [0.8, 3], makes the expected times
 * of the busy rows add up to the measured ones; it is 1 with fewer than 5 busy rows, if even 0.8 is
 * too much (neighbours then are not the cause), or if the base comes from them. With `rejected` not
 * NULL, and all rows used, outliers are found in three rounds, marked there and left out.
 */
void duet__kernel_fit(const struct duet__rows *rows, const bool *used, double bandwidth_Bps,
                      struct duet__kernel_fit *out, bool *rejected);

/* A fit of the same form that replaces duet__kernel_fit in comparisons: bench/corpus/. */
typedef void duet__kernel_fit_fn(const struct duet__rows *rows, const bool *used,
                                 double bandwidth_Bps, struct duet__kernel_fit *out,
                                 bool *rejected);

#endif
