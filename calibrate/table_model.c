/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The simplest candidates: a table of four means, warm and cold, alone and busy, with straight
 * lines between them; and the mean alone.
 */
#include <math.h>

#include "calibrate/kernel_models.h"

enum { LEAST_ROWS = 5 /* of a condition */ };

static double missing_part(const struct duet__row *row)
{
    return row->bytes > 0 ? row->from_memory / row->bytes : 0;
}

/* The condition of a row; a row with few neighbours, neither alone nor busy, has none. */
static struct duet__cell *cell_of(struct duet__table_fit *table, const struct duet__row *row)
{
    if (!duet__row_alone(row) && !duet__row_busy(row))
        return NULL;
    return &table->cells[duet__row_busy(row)][duet__row_cold(row)];
}

static void fit_mean(const struct duet__rows *rows, const bool *used, double bandwidth_Bps,
                     union duet__parameters *out)
{
    double sum = 0;
    size_t count = 0;
    (void)bandwidth_Bps;
    for (size_t i = 0; i < rows->count; i++) {
        if (used[i]) {
            sum += rows->seconds[i];
            count++;
        }
    }
    out->mean_s = count ? sum / (double)count : 0;
}

static void fit_table(const struct duet__rows *rows, const bool *used, double bandwidth_Bps,
                      union duet__parameters *out)
{
    size_t counts[2][2] = {{0}}, known = 0;
    struct duet__table_fit *table = &out->table;
    union duet__parameters all;
    *table = (struct duet__table_fit){.bandwidth_Bps = bandwidth_Bps};
    for (size_t i = 0; i < rows->count; i++) {
        const struct duet__row *row = &rows->list[i];
        struct duet__cell *cell = used[i] ? cell_of(table, row) : NULL;
        if (!cell)
            continue;
        counts[duet__row_busy(row)][duet__row_cold(row)]++;
        cell->seconds += rows->seconds[i];
        cell->missing += missing_part(row);
        cell->busy += duet__row_busy_part(row);
    }
    for (int busy = 0; busy < 2; busy++) {
        for (int cold = 0; cold < 2; cold++) {
            struct duet__cell *cell = &table->cells[busy][cold];
            double count = (double)counts[busy][cold];
            *cell = count < LEAST_ROWS
                        ? (struct duet__cell){0}
                        : (struct duet__cell){cell->seconds / count, cell->missing / count,
                                              cell->busy / count};
            known += cell->seconds > 0;
        }
    }
    if (known)
        return;
    fit_mean(rows, used, bandwidth_Bps, &all);
    table->cells[0][0].seconds = all.mean_s;
}

/* The value at x of the line through two points; never below half of the lower one. */
static double line(double x0, double y0, double x1, double y1, double x)
{
    double y = x1 > x0 ? y0 + (y1 - y0) * (x - x0) / (x1 - x0) : (y0 + y1) / 2;
    return fmax(y, fmin(y0, y1) / 2);
}

/* By the part that misses, alone or busy: the time and the part of busy neighbours; 0: not known.
 */
static struct duet__cell between(const struct duet__cell cells[2], double missing)
{
    const struct duet__cell *warm = &cells[0], *cold = &cells[1];
    if (!(warm->seconds > 0) || !(cold->seconds > 0))
        return warm->seconds > 0 ? *warm : *cold;
    return (struct duet__cell){
        .seconds = line(warm->missing, warm->seconds, cold->missing, cold->seconds, missing),
        .missing = missing,
        .busy = line(warm->missing, warm->busy, cold->missing, cold->busy, missing),
    };
}

static double predict_table(const union duet__parameters *parameters, const struct duet__rows *rows,
                            size_t index)
{
    const struct duet__table_fit *table = &parameters->table;
    const struct duet__row *row = &rows->list[index];
    double missing = missing_part(row), part = duet__row_busy_part(row);
    struct duet__cell alone = between(table->cells[0], missing);
    struct duet__cell busy = between(table->cells[1], missing);
    double seconds = alone.seconds > 0 ? alone.seconds : busy.seconds;
    if (alone.seconds > 0 && busy.seconds > 0)
        seconds = line(alone.busy, alone.seconds, busy.busy, busy.seconds, part);
    if (table->bandwidth_Bps > 0)
        seconds = fmax(seconds, (row->others + 1) * row->from_memory / table->bandwidth_Bps);
    return seconds;
}

static double predict_mean(const union duet__parameters *parameters, const struct duet__rows *rows,
                           size_t row)
{
    (void)rows;
    (void)row;
    return parameters->mean_s;
}

const struct duet__kernel_model duet__table_model = {
    .name = "table",
    .description = "four means, warm and cold, alone and busy, and straight lines between them",
    .fit = fit_table,
    .predict = predict_table,
};

const struct duet__kernel_model duet__mean_model = {
    .name = "mean",
    .description = "the mean of the kernel in that workload",
    .fit = fit_mean,
    .predict = predict_mean,
};

const struct duet__kernel_model *const duet__kernel_models[DUET__KERNEL_MODELS] = {
    [DUET__EFFECTS_MODEL] = &duet__effects_model,
    [DUET__TABLE_MODEL] = &duet__table_model,
    [DUET__MEAN_MODEL] = &duet__mean_model,
};
