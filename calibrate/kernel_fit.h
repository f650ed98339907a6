/* SPDX-License-Identifier: Apache-2.0 */
/* What one kernel takes, fitted to some executions of one point. */
#ifndef DUET_CALIBRATE_KERNEL_FIT_H
#define DUET_CALIBRATE_KERNEL_FIT_H

#include <stdbool.h>
#include <stddef.h>

#include "calibrate/executions.h"
#include "calibrate/fit.h"

/* ------------------------------------------------------------------------------------------- */
/* rows.c: what is fitted to                                                                     */

/* One execution, beside its time. */
struct duet__row {
    uint32_t run;
    double others;      /* how many of the socket's other workers computed, as a mean */
    double workers;     /* of its socket, 0: on a device */
    double bytes;       /* of all operands */
    double from_memory; /* of these, what missed the cache of the socket */
};

struct duet__rows {
    size_t count;
    double *seconds;
    double *missing; /* the part of its bytes that came from memory */
    struct duet__row *list;
    double bytes; /* mean */
};

/*
 * The rows of a group: of all its executions, or with `limit` above 0 of those among the first
 * `limit` of their run. missing as of duet__missing_find. The caller owns *out (duet__rows_fini).
 */
void duet__rows_make(const struct duet__executions *executions, const struct duet__group *group,
                     const double *missing, size_t limit, struct duet__rows *out);

void duet__rows_fini(struct duet__rows *rows); /* safe on zeroed ones, and twice */

/* Which part of the socket's other workers computed, 0 to 1. */
static inline double duet__row_busy_part(const struct duet__row *row)
{
    return row->workers > 1 ? row->others / (row->workers - 1) : 0;
}

/* Did most (at least nine tenths) of the socket's other workers not compute, or more than half? */
static inline bool duet__row_alone(const struct duet__row *row)
{
    return duet__row_busy_part(row) <= 0.1;
}

static inline bool duet__row_busy(const struct duet__row *row)
{
    return duet__row_busy_part(row) > 0.5;
}

/* Was most of its data in memory? */
static inline bool duet__row_cold(const struct duet__row *row)
{
    return row->from_memory > row->bytes / 2;
}

/* ------------------------------------------------------------------------------------------- */
/* kernel_fit.c                                                                                  */

struct duet__kernel_fit {
    struct duet__fit fit;
    double busy_ratio, bandwidth_Bps;
};

/*
 * Expected time of a row, beside what computed beside it: what duet__rates makes of it if the
 * others are executions like this one.
 */
double duet__kernel_seconds(const struct duet__kernel_fit *kernel, const struct duet__rows *rows,
                            size_t row);

/*
 * Fits the rows that are used[i] (NULL: all). Base and memory come from the rows that were alone;
 * from all if fewer than 5 were alone, but all are 10 or more, or none was. With fewer than 10 rows
 * the base is their mean, and memory costs nothing. busy_ratio makes the sum of the expected times
 * of the busy rows that of the measured ones, in [0.8, 3]; it is 1 with fewer than 5 of these,
 * where even 0.8 is too much (then it is no matter of neighbours), or if the base is theirs. With
 * `rejected` not NULL, and all used, outliers are looked for, in three rounds, marked there and
 * left out.
 */
void duet__kernel_fit(const struct duet__rows *rows, const bool *used, double bandwidth_Bps,
                      struct duet__kernel_fit *out, bool *rejected);

/* Another model of the same form, to be compared: bench/corpus/. */
typedef void duet__kernel_fit_fn(const struct duet__rows *rows, const bool *used,
                                 double bandwidth_Bps, struct duet__kernel_fit *out,
                                 bool *rejected);

#endif
