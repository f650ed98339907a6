/* SPDX-License-Identifier: Apache-2.0 */
/* The figures of one point. */
#include <math.h>
#include <stdlib.h>

#include "calibrate/model_point.h"
#include "calibrate/states.h"
#include "validate/stats.h"

/* The edge of the tiles of one execution; 0 where they are not square, or it cannot be told. */
static double edge_of(const char *kernel, const struct duet__operand *operands, size_t count,
                      double work)
{
    double element = kernel[0] == 's' ? 4 : kernel[0] == 'd' ? 8 : 0;
    uint64_t largest = 0, sum = 0;
    bool equal = true;
    for (size_t i = 0; i < count; i++) {
        equal = equal && operands[i].bytes == operands[0].bytes;
        sum += operands[i].bytes;
        if (operands[i].bytes > largest)
            largest = operands[i].bytes;
    }
    /* work that is not the bytes is flops: such kernels work on tiles, beside vectors maybe */
    if (element == 0 || largest == 0 || !(equal || work != (double)sum))
        return 0;
    double edge = round(sqrt((double)largest / element));
    return edge * edge * element == (double)largest ? edge : 0;
}

/* Measured times of the rows with that condition (below 0: all), without outliers. */
static size_t pick(const struct duet__fitted *fitted, int condition, double *times)
{
    const struct duet__rows *rows = fitted->rows;
    size_t count = 0;
    for (size_t i = 0; i < rows->count; i++) {
        const struct duet__row *row = &rows->list[i];
        int own = (row->from_memory > row->bytes / 2 ? DUET_CONDITION_COLD : 0) |
                  (duet__row_busy(row) ? DUET_CONDITION_BUSY : 0);
        if (!fitted->rejected[i] && (condition < 0 || own == condition))
            times[count++] = rows->seconds[i];
    }
    return count;
}

static int fill_noise(const struct duet__fitted *fitted, double mean_s, double *ratios,
                      struct duet_point *out)
{
    const struct duet__rows *rows = fitted->rows;
    bool host = fitted->samples->labels[fitted->group->label].host;
    size_t count = 0;
    for (size_t i = 0; i < rows->count; i++)
        if (!fitted->rejected[i])
            ratios[count++] =
                rows->seconds[i] / (host ? duet__kernel_seconds(fitted->kernel, rows, i) : mean_s);
    duet__quantiles(ratios, count, out->quantiles);
    return DUET_OK;
}

/* What only kernels of the host have. */
static void fill_host(const struct duet__fitted *fitted, struct duet_point *out)
{
    const struct duet__kernel_fit *kernel = fitted->kernel;
    unsigned half = kernel->columns / 2;
    out->base_s = kernel->fit.base_s;
    for (unsigned i = 0; i < half; i++) {
        out->near_s[i] = kernel->fit.column_s[i];
        out->far_s[i] = kernel->fit.column_s[half + i];
    }
    out->busy_ratio = kernel->busy_ratio;
}

/* How far the states of the machine in its runs are from the median one. `room` for all rows. */
static int fill_state(const struct duet__fitted *fitted, double *room, struct duet_point *out)
{
    const struct duet__rows *rows = fitted->rows;
    size_t *runs = calloc(rows->count + 1, sizeof *runs);
    if (!runs)
        return DUET_ENOMEM;
    for (size_t i = 0; i < rows->count; i++)
        runs[i] = rows->list[i].run;
    out->run_deviation = duet__states_deviation(fitted->samples, runs, rows->count, room);
    free(runs);
    return DUET_OK;
}

int duet__point_fill(const struct duet__fitted *fitted, struct duet_point *out)
{
    const struct duet__samples *samples = fitted->samples;
    const struct duet__group *group = fitted->group;
    const struct duet__sample *first = &samples->list[samples->order[group->first]];
    const struct duet__label *label = &samples->labels[group->label];
    struct duet_summary summary;
    double *values = calloc(fitted->rows->count + 1, sizeof *values);
    if (!values)
        return DUET_ENOMEM;
    size_t count = pick(fitted, -1, values);
    int error = duet_summarise(values, count, &summary, NULL);
    if (error)
        goto out;
    *out = (struct duet_point){
        .work = group->work,
        .size =
            edge_of(label->kernel, samples->operands + first->first, first->operands, group->work),
        .mean_s = summary.mean,
        .median_s = summary.median,
        .deviation_s = summary.deviation,
        .samples = count,
        .rejected = fitted->rows->count - count,
    };
    if (label->host)
        fill_host(fitted, out);
    for (int i = 0; i < DUET_CONDITIONS && label->host && !error; i++) {
        struct duet_conditioned *condition = &out->conditions[i];
        condition->samples = pick(fitted, i, values);
        if (condition->samples == 0)
            continue;
        error = duet_summarise(values, condition->samples, &summary, NULL);
        condition->mean_s = summary.mean;
        condition->median_s = summary.median;
        condition->deviation_s = summary.deviation;
    }
    if (!error && label->host)
        error = fill_state(fitted, values, out);
    if (!error)
        error = fill_noise(fitted, out->mean_s, values, out);
out:
    free(values);
    return error;
}
