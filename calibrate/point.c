/* SPDX-License-Identifier: Apache-2.0 */
/* The figures of one point. */
#include <math.h>

#include <glib.h>

#include "calibrate/fitted.h"
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

/* Of measured by expected time. `ratios` has room for all rows. */
static void fill_noise(const struct duet__fitted *fitted, double *ratios, struct duet_point *out)
{
    const struct duet__rows *rows = fitted->rows;
    bool host = fitted->samples->labels[fitted->group->label].host;
    size_t count = 0;
    for (size_t i = 0; i < rows->count; i++)
        if (!fitted->rejected[i])
            ratios[count++] = rows->seconds[i] /
                              (host ? duet__kernel_seconds(fitted->kernel, rows, i) : out->mean_s);
    duet__quantiles(ratios, count, out->quantiles);
}

/* What only kernels of the host have. `room` for all rows. */
static void fill_host(const struct duet__fitted *fitted, double *room, struct duet_point *out)
{
    const struct duet__kernel_fit *kernel = fitted->kernel;
    const struct duet__rows *rows = fitted->rows;
    unsigned half = kernel->columns / 2;
    size_t *runs = g_new0(size_t, rows->count + 1);
    out->base_s = kernel->fit.base_s;
    for (unsigned i = 0; i < half; i++) {
        out->near_s[i] = kernel->fit.column_s[i];
        out->far_s[i] = kernel->fit.column_s[half + i];
    }
    out->busy_ratio = kernel->busy_ratio;
    for (size_t i = 0; i < rows->count; i++)
        runs[i] = rows->list[i].run;
    out->run_deviation = duet__states_deviation(fitted->samples, runs, rows->count, room);
    g_free(runs);
}

void duet__point_fill(const struct duet__fitted *fitted, struct duet_point *out)
{
    const struct duet__samples *samples = fitted->samples;
    const struct duet__group *group = fitted->group;
    const struct duet__rows *rows = fitted->rows;
    const struct duet__sample *first = &samples->list[samples->order[group->first]];
    const struct duet__label *label = &samples->labels[group->label];
    struct duet_summary summary = {0};
    double *values = g_new0(double, rows->count + 1);
    size_t count = 0;
    for (size_t i = 0; i < rows->count; i++)
        if (!fitted->rejected[i])
            values[count++] = rows->seconds[i];
    if (duet_summarise(values, count, &summary, NULL))
        g_error("out of memory for %zu executions", count);
    *out = (struct duet_point){
        .work = group->work,
        .size =
            edge_of(label->kernel, samples->operands + first->first, first->operands, group->work),
        .mean_s = summary.mean,
        .median_s = summary.median,
        .deviation_s = summary.deviation,
        .samples = count,
        .rejected = rows->count - count,
    };
    if (label->host)
        fill_host(fitted, values, out);
    fill_noise(fitted, values, out);
    g_free(values);
}
