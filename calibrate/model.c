/* SPDX-License-Identifier: Apache-2.0 */
/* From recorded runs to a calibration, and how good it is. */
#include "calibrate/model.h"

#include <math.h>
#include <string.h>

enum {
    FOLDS = 5,
    LEAST_FOLDS = 2,
    LEAST_ROWS = 10, /* that say what memory gives */
};

/* What is at work. */
struct fitting {
    struct duet__executions executions;
    struct duet__miss *misses;
    double bandwidth_Bps;
};

/* ------------------------------------------------------------------------------------------- */
/* What memory gives                                                                            */

/* Is it the only kernel of the host in its workload, so that all neighbours do the same? */
static bool lonely(const struct duet__executions *executions, const struct duet__group *group)
{
    for (guint i = 0; i < executions->groups->len; i++) {
        const struct duet__group *other = duet__group_at(executions, i);
        if (other->host && strcmp(other->context, group->context) == 0 &&
            (strcmp(other->kernel, group->kernel) != 0 || strcmp(other->arch, group->arch) != 0))
            return false;
    }
    return true;
}

/* Bytes that an execution got from memory, where it was most of them; else 0. */
static double got(const struct duet__row *row, bool busy)
{
    if (!duet__row_cold(row) || !(busy ? duet__row_busy(row) : duet__row_alone(row)))
        return 0;
    return (busy ? row->others + 1 : 1) * row->from_memory;
}

/*
 * Bytes a second that executions got from memory: alone, or busy, and then with their neighbours,
 * which do the same. That is what duet__kernel_seconds holds against the bandwidth. The mean, so
 * that times add up; without those that are far from the median.
 */
static double attained(const struct duet__rows *rows, bool busy)
{
    g_autofree double *rates = g_new(double, rows->count + 1);
    double bytes = 0, seconds = 0, median = 0;
    size_t count = 0;
    for (size_t i = 0; i < rows->count; i++)
        if (got(&rows->list[i], busy) > 0)
            rates[count++] = got(&rows->list[i], busy) / rows->seconds[i];
    if (count >= LEAST_ROWS)
        median = duet_median(rates, count);
    for (size_t i = 0; i < rows->count && median > 0; i++) {
        double own = got(&rows->list[i], busy);
        if (!(own > 0) || fabs(log(own / rows->seconds[i] / median)) > log(2))
            continue;
        bytes += own;
        seconds += rows->seconds[i];
    }
    return seconds > 0 ? bytes / seconds : 0;
}

/*
 * The bandwidth that was measured, or what a kernel got if that is more: a limit is not below what
 * was reached. Both are of other seconds, and the machine may have been slower in those. Leaves the
 * misses of caches of these sizes.
 */
static void find_bandwidth(struct fitting *fitting, const struct duet_sharing *sharing)
{
    const struct duet__executions *executions = &fitting->executions;
    double best_Bps = fitting->bandwidth_Bps;
    duet__misses_find(executions, sharing, 0, fitting->misses);
    for (guint i = 0; i < executions->groups->len && fitting->bandwidth_Bps > 0; i++) {
        const struct duet__group *group = duet__group_at(executions, i);
        struct duet__rows rows;
        if (!group->host)
            continue;
        duet__rows_make(executions, group, fitting->misses, 0, &rows);
        best_Bps = fmax(best_Bps, attained(&rows, false));
        if (lonely(executions, group))
            best_Bps = fmax(best_Bps, attained(&rows, true));
        duet__rows_fini(&rows);
    }
    fitting->bandwidth_Bps = best_Bps;
}

/* ------------------------------------------------------------------------------------------- */
/* One point                                                                                    */

/* The edge of the tiles of an execution; 0 where they are not square, or it cannot be told. */
static double edge_of(const struct fitting *fitting, const struct duet__group *group)
{
    const struct duet__executions *executions = &fitting->executions;
    const struct duet__execution *first =
        &executions->list[g_array_index(group->members, size_t, 0)];
    const struct duet__operand *operands = executions->operands + first->first;
    double element = group->kernel[0] == 's' ? 4 : group->kernel[0] == 'd' ? 8 : 0, edge;
    uint64_t largest = 0, sum = 0;
    bool equal = true;
    for (size_t i = 0; i < first->operands; i++) {
        equal = equal && operands[i].bytes == operands[0].bytes;
        sum += operands[i].bytes;
        largest = MAX(largest, operands[i].bytes);
    }
    /* work that is not the bytes is flops: such kernels work on tiles, beside vectors maybe */
    if (element == 0 || largest == 0 || !(equal || group->work != (double)sum))
        return 0;
    edge = round(sqrt((double)largest / element));
    return edge * edge * element == (double)largest ? edge : 0;
}

/* What only kernels of the host have. */
static void fill_host(const struct duet__fitted *fitted, struct duet_point *out)
{
    const struct duet__kernel_fit *kernel = &fitted->kernel;
    unsigned half = kernel->columns / 2;
    out->base_s = kernel->fit.base_s;
    for (unsigned i = 0; i < half; i++) {
        out->near_s[i] = kernel->fit.column_s[i];
        out->far_s[i] = kernel->fit.column_s[half + i];
    }
    out->busy_ratio = kernel->busy_ratio;
    out->run_deviation = duet__states_deviation(fitted->executions, fitted->group);
}

/* Everything that a point says, but for its edge. */
static void fill_point(const struct duet__fitted *fitted, struct duet_point *out)
{
    const struct duet__rows *rows = &fitted->rows;
    bool host = fitted->group->host;
    struct duet_summary summary = {0};
    g_autofree double *values = g_new0(double, rows->count + 1);
    size_t count = 0;
    for (size_t i = 0; i < rows->count; i++)
        if (!fitted->rejected[i])
            values[count++] = rows->seconds[i];
    if (duet_summarise(values, count, &summary, NULL))
        g_error("out of memory for %zu executions", count);
    out->work = fitted->group->work;
    out->mean_s = summary.mean;
    out->median_s = summary.median;
    out->deviation_s = summary.deviation;
    out->samples = count;
    out->rejected = rows->count - count;
    if (host)
        fill_host(fitted, out);
    count = 0;
    for (size_t i = 0; i < rows->count; i++)
        if (!fitted->rejected[i])
            values[count++] = rows->seconds[i] /
                              (host ? duet__kernel_seconds(&fitted->kernel, rows, i) : out->mean_s);
    duet__quantiles(values, count, out->quantiles);
}

/* The point of a group, and how good it is, into what is zeroed. */
static void fit_group(const struct fitting *fitting, const struct duet__group *group,
                      const struct duet__model_options *options, struct duet__quality *out)
{
    g_autofree bool *rejected = g_new0(bool, group->members->len + 1);
    struct duet__fitted fitted = {.executions = &fitting->executions,
                                  .group = group,
                                  .rejected = rejected};
    (void)g_strlcpy(out->kernel, group->kernel, DUET_NAME_MAX);
    (void)g_strlcpy(out->arch, group->arch, DUET_NAME_MAX);
    (void)g_strlcpy(out->context, group->context, DUET_NAME_MAX);
    duet__rows_make(&fitting->executions, group, fitting->misses, 0, &fitted.rows);
    duet__kernel_fit(&fitted.rows, NULL, group->host ? fitting->bandwidth_Bps : 0, &fitted.kernel,
                     rejected);
    fill_point(&fitted, &out->point);
    out->point.size = edge_of(fitting, group);
    duet__quality_fill(&fitted, options->folds ? options->folds : FOLDS, options->compare, out);
    duet__rows_fini(&fitted.rows);
}

/* ------------------------------------------------------------------------------------------- */
/* All of it                                                                                    */

/* Curves of the points: those that differ only in work are beside each other. */
static int add_curves(struct duet__model *out, struct duet_message *message)
{
    g_autofree struct duet_point *points = g_new(struct duet_point, out->quality_count);
    int error = DUET_OK;
    for (size_t i = 0, next; i < out->quality_count && !error; i = next) {
        const struct duet__quality *first = &out->quality[i];
        for (next = i; next < out->quality_count; next++) {
            const struct duet__quality *own = &out->quality[next];
            if (strcmp(own->kernel, first->kernel) != 0 || strcmp(own->arch, first->arch) != 0 ||
                strcmp(own->context, first->context) != 0)
                break;
            points[next - i] = own->point;
        }
        struct duet_curve curve = {.count = next - i, .points = points};
        g_strlcpy(curve.kernel, first->kernel, sizeof(curve.kernel));
        g_strlcpy(curve.arch, first->arch, sizeof(curve.arch));
        g_strlcpy(curve.context, first->context, sizeof(curve.context));
        error = duet_calibration_add(&out->calibration, &curve, message);
    }
    return error;
}

int duet__model_fit(const struct duet__observation *runs, size_t run_count,
                    const struct duet__model_options *options, struct duet__model *out,
                    struct duet_message *message)
{
    struct fitting fitting = {.bandwidth_Bps = options->sharing.bandwidth_Bps};
    struct duet__executions *executions = &fitting.executions;
    struct duet_sharing given = options->sharing;
    int error;
    *out = (struct duet__model){0};
    if (options->folds && options->folds < LEAST_FOLDS)
        return duet_fail(message, DUET_EINVAL, "cross-validation needs at least %d folds, not %u",
                         LEAST_FOLDS, options->folds);
    error = duet__executions_read(runs, run_count, options->task_overhead_s, executions, message);
    if (error)
        return error;
    duet__states_remove(executions);
    fitting.misses = g_new0(struct duet__miss, executions->operand_count + 1);
    find_bandwidth(&fitting, &given);
    given.bandwidth_Bps = fitting.bandwidth_Bps;
    out->sharing = duet__cache_sizes(executions, &given);
    find_bandwidth(&fitting, &out->sharing);
    out->sharing.bandwidth_Bps = fitting.bandwidth_Bps;
    out->quality_count = executions->groups->len;
    out->quality = g_new0(struct duet__quality, out->quality_count);
    for (guint i = 0; i < executions->groups->len; i++)
        fit_group(&fitting, duet__group_at(executions, i), options, &out->quality[i]);
    error = add_curves(out, message);
    g_free(fitting.misses);
    duet__executions_fini(executions);
    if (error)
        duet__model_fini(out);
    return error;
}

void duet__model_fini(struct duet__model *model)
{
    duet_calibration_fini(&model->calibration);
    g_free(model->quality);
    *model = (struct duet__model){0};
}
