/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Models of what one kernel takes, side by side: each is fitted to some executions of one point, as
 * rows of figures, and asked for others. The first one is what the platform's file and the
 * simulation have; the others are there to be compared with it on the same recorded runs.
 */
#ifndef DUET_CALIBRATE_KERNEL_MODELS_H
#define DUET_CALIBRATE_KERNEL_MODELS_H

#include <stdbool.h>
#include <stddef.h>

#include "calibrate/executions.h"
#include "calibrate/fit.h"

/* ------------------------------------------------------------------------------------------- */
/* rows.c: what models are fitted to                                                             */

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
 * The rows of a group: of all its executions, or with `limit` above 0 of those among the first
 * `limit` of their run. misses as of duet__misses_find. Operands beyond DUET_OPERANDS count as the
 * last, their misses added up, as duet__demand does. The caller owns *out (duet__rows_fini).
 */
void duet__rows_make(const struct duet__executions *executions, const struct duet__group *group,
                     const struct duet__miss *misses, size_t limit, struct duet__rows *out);

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
/* effects_model.c, table_model.c                                                                */

/* What a kernel takes by the model "effects". */
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
 * `rejected` not NULL, and all used, outliers are looked for, in three rounds, marked there and
 * left out.
 */
void duet__kernel_fit(const struct duet__rows *rows, const bool *used, double bandwidth_Bps,
                      struct duet__kernel_fit *out, bool *rejected);

/* Executions in one condition of the model "table": data in caches or not, alone or busy. */
struct duet__cell {
    double seconds; /* mean; 0: there are too few */
    double missing; /* mean part of the bytes that came from memory */
    double busy;    /* mean part of the neighbours that computed */
};

struct duet__table_fit {
    struct duet__cell cells[2][2]; /* by busy, then cold */
    double bandwidth_Bps;
};

union duet__parameters {
    struct duet__kernel_fit effects;
    struct duet__table_fit table;
    double mean_s;
};

struct duet__kernel_model {
    const char *name, *description;
    /* Fits the rows that are used[i], of which there is one at least. */
    void (*fit)(const struct duet__rows *rows, const bool *used, double bandwidth_Bps,
                union duet__parameters *out);
    /* Seconds that a row is expected to take, by its misses and neighbours, not by its time. */
    double (*predict)(const union duet__parameters *parameters, const struct duet__rows *rows,
                      size_t row);
};

enum { DUET__EFFECTS_MODEL, DUET__TABLE_MODEL, DUET__MEAN_MODEL, DUET__KERNEL_MODELS };

extern const struct duet__kernel_model duet__effects_model, duet__table_model, duet__mean_model;

/* All of them, by the numbers above. */
extern const struct duet__kernel_model *const duet__kernel_models[DUET__KERNEL_MODELS];

#endif
