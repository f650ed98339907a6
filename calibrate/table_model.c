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

static void fit_mean(const struct duet__rows *rows, const bool *used, double bandwidth_Bps,
                     union duet__parameters *out)
{
    double sum = 0;
    size_t count = 0;
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
    struct duet__table_fit *table = &out->table;
    union duet__parameters all;
    bool known = false;
    *table = (struct duet__table_fit){.bandwidth_Bps = bandwidth_Bps};
    for (int condition = 0; condition < 4; condition++) {
        struct duet__cell *cell = &table->cells[condition / 2][condition % 2], sum = {0};
        size_t count = 0;
        for (size_t i = 0; i < rows->count; i++) {
            const struct duet__row *row = &rows->list[i];
            bool busy = duet__row_busy(row);
            /* a row with few neighbours, neither alone nor busy, is in no condition */
            if (!used[i] || (!busy && !duet__row_alone(row)) ||
                condition != 2 * busy + duet__row_cold(row))
                continue;
            count++;
            sum.seconds += rows->seconds[i];
            sum.missing += missing_part(row);
            sum.busy += duet__row_busy_part(row);
        }
        if (count < LEAST_ROWS)
            continue;
        *cell = (struct duet__cell){sum.seconds / (double)count, sum.missing / (double)count,
                                    sum.busy / (double)count};
        known = true;
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
