/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/corpus/corpus.h"

#include <math.h>
#include <string.h>

#include <glib.h>

/* ------------------------------------------------------------------------------------------- */
/* Four means                                                                                   */

enum { LEAST_ROWS = 5 /* of a condition */ };

struct cell {
    double seconds, missing; /* sums, then means */
    size_t count;
};

static double missing_part(const struct duet__row *row)
{
    return row->bytes > 0 ? row->from_memory / row->bytes : 0;
}

/* Means of the rows that are warm or cold, alone or (any) not. */
static struct cell mean_of(const struct duet__rows *rows, const bool *rejected, bool any, bool cold)
{
    struct cell cell = {0};
    for (size_t i = 0; i < rows->count; i++) {
        const struct duet__row *row = &rows->list[i];
        if (rejected[i] || (!any && !duet__row_alone(row)) || duet__row_cold(row) != cold)
            continue;
        cell.seconds += rows->seconds[i];
        cell.missing += missing_part(row);
        cell.count++;
    }
    if (cell.count < LEAST_ROWS)
        return (struct cell){0};
    cell.seconds /= (double)cell.count;
    cell.missing /= (double)cell.count;
    return cell;
}

/* Fits the line through the means of warm and of cold rows, and a busy ratio by which the busy ones
 * add up. Outliers are the product's. */
static void fit_table(const struct duet__rows *rows, const bool *used, double bandwidth_Bps,
                      struct duet__kernel_fit *out, bool *rejected)
{
    bool *left_out = g_new0(bool, rows->count + 1), any = false;
    struct cell warm, cold;
    double slope = 0, measured = 0, expected = 0, more = 0;
    duet__kernel_fit(rows, used, bandwidth_Bps, out, rejected);
    for (size_t i = 0; i < rows->count; i++)
        left_out[i] = (rejected && rejected[i]) || (used && !used[i]);
    warm = mean_of(rows, left_out, false, false);
    cold = mean_of(rows, left_out, false, true);
    if (!warm.count && !cold.count) {
        any = true;
        warm = mean_of(rows, left_out, true, false);
        cold = mean_of(rows, left_out, true, true);
    }
    if (!warm.count && !cold.count)
        goto end;
    if (warm.count && cold.count && cold.missing > warm.missing)
        slope = fmax((cold.seconds - warm.seconds) / (cold.missing - warm.missing), 0);
    *out = (struct duet__kernel_fit){.busy_ratio = 1, .bandwidth_Bps = bandwidth_Bps};
    out->fit.base_s = warm.count ? warm.seconds - slope * warm.missing : cold.seconds;
    out->fit.memory_s = slope;
    if (!(out->fit.base_s > 0)) {
        out->fit.base_s = warm.seconds / 2;
        out->fit.memory_s = (cold.seconds - out->fit.base_s) / cold.missing;
    }
    for (size_t i = 0; i < rows->count; i++) {
        double seconds;
        if (left_out[i] || !duet__row_busy(&rows->list[i]))
            continue;
        seconds = duet__kernel_seconds(out, rows, i);
        measured += rows->seconds[i];
        expected += seconds;
        more += seconds * duet__row_busy_part(&rows->list[i]);
    }
    if (!any && more > 0)
        out->busy_ratio = fmin(fmax(1 + (measured - expected) / more, 0.8), 3);
end:
    g_free(left_out);
}

/* ------------------------------------------------------------------------------------------- */

/* Fits as the product, as if all executions were alone. */
static void fit_no_busy(const struct duet__rows *rows, const bool *used, double bandwidth_Bps,
                        struct duet__kernel_fit *out, bool *rejected)
{
    struct duet__rows alone = *rows;
    alone.list = g_memdup2(rows->list, (rows->count + 1) * sizeof *rows->list);
    for (size_t i = 0; i < rows->count; i++)
        alone.list[i].others = 0;
    duet__kernel_fit(&alone, used, bandwidth_Bps, out, rejected);
    g_free(alone.list);
}

/* Fits base and ratio of neighbours, as if no cache were known. */
static void fit_no_cache(const struct duet__rows *rows, const bool *used, double bandwidth_Bps,
                         struct duet__kernel_fit *out, bool *rejected)
{
    struct duet__rows warm = *rows;
    warm.missing = g_new0(double, rows->count + 1);
    warm.bytes = 0;
    duet__kernel_fit(&warm, used, 0, out, rejected);
    g_free(warm.missing);
}

static void mean(struct duet__point *point)
{
    point->base_s = point->memory_s = point->busy_ratio = point->noise = 0;
}

const struct candidate candidates[] = {
    {.name = "model"},
    {.name = "no-cache", .fit = fit_no_cache},
    {.name = "no-size", .keep_size = true},
    {.name = "no-bandwidth", .no_bandwidth = true},
    {.name = "no-busy", .fit = fit_no_busy},
    {.name = "no-states", .keep_states = true},
    {.name = "table", .fit = fit_table},
    {.name = "mean", .adjust = mean},
    {.name = "no-submit", .costs = "submit=0s"},
    {.name = "no-push-pop", .costs = "push=0s,pop=0s"},
    {.name = "no-steal", .costs = "steal=0s"},
    {.name = "no-wake", .costs = "wake=0s"},
    {.name = "no-start", .without = "start"},
    {.name = "no-costs", .costs = "submit=0s,push=0s,pop=0s,steal=0s,wake=0s", .without = "start"},
    {.name = NULL},
};
