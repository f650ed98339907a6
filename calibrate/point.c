/* SPDX-License-Identifier: Apache-2.0 */
/* Computes a point's figures, and how well it predicts executions that it was not fitted to. */
#include <math.h>

#include "calibrate/model.h"

enum {
    FOLDS = 5,
    NOISE_MOST = 10 /* most that a calibration has, as from stalls in the shortest kernels */
};

/* A fitted group: rows, figures, and marks of outliers. */
struct fitted {
    const struct duet__executions *executions;
    const struct duet__group *group;
    struct duet__rows rows;
    struct duet__kernel_fit kernel;
    duet__kernel_fit_fn *fit;
    bool *rejected;
};

/* ------------------------------------------------------------------------------------------- */
/* Figures                                                                                      */

/* Edge of an execution's tiles; 0 if they are not square, or it cannot be told. */
static double edge_of(const struct duet__executions *executions, const struct duet__group *group)
{
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
    /* work other than the bytes is flops: such kernels are on tiles, perhaps with vectors */
    if (element == 0 || largest == 0 || !(equal || group->work != (double)sum))
        return 0;
    edge = round(sqrt((double)largest / element));
    return edge * edge * element == (double)largest ? edge : 0;
}

/* Fills the figures that only kernels of the host have. */
static void fill_host(const struct fitted *fitted, struct duet__point *out)
{
    const struct duet__kernel_fit *kernel = &fitted->kernel;
    out->base_s = kernel->fit.base_s;
    out->memory_s = kernel->fit.memory_s;
    out->busy_ratio = kernel->busy_ratio;
}

/* Fills all figures of a point. */
static void fill_point(const struct fitted *fitted, struct duet__point *out)
{
    const struct duet__rows *rows = &fitted->rows;
    bool host = fitted->group->host;
    struct duet__summary summary;
    double *values = g_new0(double, rows->count + 1);
    size_t count = 0;
    for (size_t i = 0; i < rows->count; i++)
        if (!fitted->rejected[i])
            values[count++] = rows->seconds[i];
    summary = duet__summarise(values, count);
    out->work = fitted->group->work;
    out->size = edge_of(fitted->executions, fitted->group);
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
    summary = duet__summarise(values, count);
    out->noise = summary.mean > 0 ? fmin(summary.deviation / summary.mean, NOISE_MOST) : 0;
    g_free(values);
}

/* Adds up the time of a point's executions and of its outliers, which are in no other figure. */
static void fill_rejected(const struct fitted *fitted, struct duet__quality *out)
{
    for (size_t i = 0; i < fitted->rows.count; i++) {
        const size_t member = g_array_index(fitted->group->members, size_t, i);
        const double s = fitted->rows.seconds[i];
        out->all_s += s;
        out->rejected_s += fitted->rejected[i] ? s : 0;
        out->fresh_s += fitted->rejected[i] && fitted->executions->list[member].fresh ? s : 0;
    }
}

/* ------------------------------------------------------------------------------------------- */
/* Quality                                                                                      */

/* The fold with which each execution is left out. */
struct folds {
    unsigned count;
    unsigned *of; /* by row */
};

/* Divides into folds by runs, in turn; or by blocks of executions, if there are too few runs. */
static void divide_runs(const struct duet__rows *rows, unsigned wanted, struct folds *folds)
{
    size_t runs = 0, run = 0;
    for (size_t i = 0; i < rows->count; i++)
        runs += i == 0 || rows->list[i].run != rows->list[i - 1].run;
    folds->count = rows->count < wanted ? (unsigned)rows->count : wanted;
    for (size_t i = 0; i < rows->count; i++) {
        run += i > 0 && rows->list[i].run != rows->list[i - 1].run;
        folds->of[i] =
            (unsigned)(runs >= wanted ? run % folds->count : i * folds->count / rows->count);
    }
}

/* Predictions of the executions that were left out, over all folds. */
struct predictions {
    size_t count;
    double predicted_s, measured_s; /* sums of seconds */
    double *errors;                 /* relative errors, by execution */
};

/* Predicts the executions of one fold from the others. Outliers of the whole group are not
 * predicted. */
static void predict_fold(const struct fitted *fitted, const struct folds *folds, unsigned fold,
                         struct predictions *p)
{
    const struct duet__rows *rows = &fitted->rows;
    bool *used = g_new(bool, rows->count + 1), any = false;
    struct duet__kernel_fit kernel;
    for (size_t i = 0; i < rows->count; i++) {
        used[i] = !fitted->rejected[i] && folds->of[i] != fold;
        any = any || used[i];
    }
    if (any)
        fitted->fit(rows, used, fitted->kernel.bandwidth_Bps, &kernel, NULL);
    for (size_t i = 0; i < rows->count && any; i++) {
        if (fitted->rejected[i] || folds->of[i] != fold)
            continue;
        double seconds = duet__kernel_seconds(&kernel, rows, i);
        p->predicted_s += seconds;
        p->measured_s += rows->seconds[i];
        p->errors[p->count++] = fabs(seconds / rows->seconds[i] - 1);
    }
    g_free(used);
}

/* Cross-validates; NaN if nothing could be left out. */
static struct duet__model_error cross_validate(const struct fitted *fitted, unsigned wanted)
{
    struct folds folds = {.of = g_new0(unsigned, fitted->rows.count + 1)};
    struct predictions p = {.errors = g_new(double, fitted->rows.count + 1)};
    struct duet__model_error error = {NAN, NAN};
    if (wanted > 1)
        divide_runs(&fitted->rows, wanted, &folds);
    for (unsigned fold = 0; fold < folds.count; fold++)
        predict_fold(fitted, &folds, fold, &p);
    if (p.count)
        error = (struct duet__model_error){.sum = p.predicted_s / p.measured_s - 1,
                                           .execution = duet__median(p.errors, p.count)};
    g_free(folds.of);
    g_free(p.errors);
    return error;
}

/* Executions by condition, without outliers. */
static void fill_conditions(const struct fitted *fitted, struct duet__quality *out)
{
    const struct duet__rows *rows = &fitted->rows;
    g_autofree double *times = g_new0(double, rows->count + 1);
    for (int i = 0; i < DUET__CONDITIONS; i++) {
        size_t count = 0;
        for (size_t r = 0; r < rows->count; r++) {
            const struct duet__row *row = &rows->list[r];
            int own = (duet__row_cold(row) ? DUET__CONDITION_COLD : 0) |
                      (duet__row_busy(row) ? DUET__CONDITION_BUSY : 0);
            if (!fitted->rejected[r] && own == i)
                times[count++] = rows->seconds[r];
        }
        out->conditions[i] = duet__summarise(times, count);
    }
}

void duet__point_fit(const struct duet__executions *executions, const struct duet__group *group,
                     const double *missing, double bandwidth_Bps,
                     const struct duet__model_options *options, struct duet__quality *out)
{
    g_autofree bool *rejected = g_new0(bool, group->members->len);
    struct fitted fitted = {.executions = executions,
                            .group = group,
                            .fit = options->fit ? options->fit : duet__kernel_fit,
                            .rejected = rejected};
    (void)g_strlcpy(out->kernel, group->kernel, DUET_NAME_MAX);
    (void)g_strlcpy(out->arch, group->arch, DUET_NAME_MAX);
    (void)g_strlcpy(out->context, group->context, DUET_NAME_MAX);
    duet__rows_make(executions, group, missing, 0, &fitted.rows);
    fitted.fit(&fitted.rows, NULL, group->host ? bandwidth_Bps : 0, &fitted.kernel, rejected);
    fill_point(&fitted, &out->point);
    fill_rejected(&fitted, out);
    if (group->host)
        fill_conditions(&fitted, out);
    out->error = cross_validate(&fitted, options->folds ? options->folds : FOLDS);
    duet__rows_fini(&fitted.rows);
}
