/* SPDX-License-Identifier: Apache-2.0 */
/* The executions of one point as rows of figures: what models of kernel times are fitted to. */
#ifndef DUET_CALIBRATE_ROWS_H
#define DUET_CALIBRATE_ROWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "calibrate/executions.h"

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

#endif
