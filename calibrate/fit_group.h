/* SPDX-License-Identifier: Apache-2.0 */
/* The executions of one point as rows of figures, and what its kernel takes, by them. */
#ifndef DUET_CALIBRATE_FIT_GROUP_H
#define DUET_CALIBRATE_FIT_GROUP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <duet/calibration.h>
#include <duet/error.h>

#include "calibrate/fit.h"
#include "calibrate/samples.h"

/* One execution, beside its time and its misses. */
struct duet__row {
    uint32_t run;
    double others;      /* how many of the socket's other workers computed, as a mean */
    double workers;     /* of its socket, 0: on a device */
    double bytes;       /* of all operands */
    double from_memory; /* of these, what missed the shared cache */
};

struct duet__rows {
    size_t count;
    unsigned columns; /* even: first the near ones of each operand, then the far ones */
    double *seconds;
    double *shares; /* count rows of columns */
    struct duet__row *list;
    double operand_bytes[DUET_OPERANDS]; /* of each operand, mean */
};

/*
 * The rows of a group's samples: of all, or with `limit` above 0 of those among the first `limit`
 * of their run. misses as of duet__samples_walk. Operands beyond DUET_OPERANDS count as the last,
 * their misses added up, as duet__demand does. DUET_ENOMEM. The caller owns *out (duet__rows_fini).
 */
DUET_MUST_CHECK int duet__rows_make(const struct duet__samples *samples,
                                    const struct duet__group *group,
                                    const struct duet__miss *misses, size_t limit,
                                    struct duet__rows *out);

void duet__rows_fini(struct duet__rows *rows); /* safe on zeroed ones, and twice */

/* Did most (at least nine tenths) of the socket's other workers not compute, or more than half? */
bool duet__row_alone(const struct duet__row *row);
bool duet__row_busy(const struct duet__row *row);

/* What a kernel takes. */
struct duet__kernel_fit {
    unsigned columns; /* as the rows', or 0: the base alone */
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
 * Fits the rows that are used[i] (NULL: all). Base and misses come from the rows that were alone;
 * from all if fewer than 5 were alone, but all are 10 or more, or none was. With fewer than 10 rows
 * the base is their mean, and misses cost nothing. busy_ratio makes the sum of the expected times
 * of the busy rows that of the measured ones, in [0.8, 3]; it is 1 with fewer than 5 of these,
 * where even 0.8 is too much (then it is no matter of neighbours), or if the base is theirs. With
 * `rejected` not NULL outliers are looked for, in three rounds, marked there and left out.
 * DUET_ENOMEM.
 */
DUET_MUST_CHECK int duet__kernel_fit(const struct duet__rows *rows, const bool *used,
                                     double bandwidth_Bps, struct duet__kernel_fit *out,
                                     bool *rejected);

#endif
