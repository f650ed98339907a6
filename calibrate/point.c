/* SPDX-License-Identifier: Apache-2.0 */
/* One point: its figures, and how well models predict executions that they were not made of. */
#include <math.h>

#include "calibrate/model.h"

enum { FOLDS = 5 };

/* A fitted group: its rows, what they gave, which of them are outliers. */
struct fitted {
    const struct duet__executions *executions;
    const struct duet__group *group;
    struct duet__rows rows;
    struct duet__kernel_fit kernel;
    bool *rejected;
};

/* ------------------------------------------------------------------------------------------- */
/* Figures                                                                                      */

/* The edge of the tiles of an execution; 0 where they are not square, or it cannot be told. */
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
    /* work that is not the bytes is flops: such kernels work on tiles, beside vectors maybe */
    if (element == 0 || largest == 0 || !(equal || group->work != (double)sum))
        return 0;
    edge = round(sqrt((double)largest / element));
    return edge * edge * element == (double)largest ? edge : 0;
}

/* What only kernels of the host have. */
static void fill_host(const struct fitted *fitted, struct duet__point *out)
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

/* Everything that a point says. */
static void fill_point(const struct fitted *fitted, struct duet__point *out)
{
    const struct duet__rows *rows = &fitted->rows;
    bool host = fitted->group->host;
    struct duet__summary summary;
    g_autofree double *values = g_new0(double, rows->count + 1);
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
    duet__quantiles(values, count, out->quantiles);
}

/* ------------------------------------------------------------------------------------------- */
/* Quality                                                                                      */

/* Which part of the executions each is left out with. */
struct folds {
    unsigned count;
    unsigned *of; /* by row */
};

/* Runs, in turn; or blocks of executions, where there are not enough runs. */
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

/* One part a problem; none where there is only one. */
static void divide_problems(const struct fitted *fitted, struct folds *folds)
{
    const struct duet__rows *rows = &fitted->rows;
    g_autoptr(GArray) problems = g_array_new(FALSE, FALSE, sizeof(uint64_t));
    for (size_t i = 0; i < rows->count; i++) {
        uint64_t problem = fitted->executions->runs[rows->list[i].run].of->problem;
        guint place = 0;
        while (place < problems->len && g_array_index(problems, uint64_t, place) != problem)
            place++;
        if (place == problems->len)
            g_array_append_val(problems, problem);
        folds->of[i] = place;
    }
    folds->count = problems->len > 1 ? problems->len : 0;
}

/* What was predicted of the executions that were left out, all parts together. */
struct predictions {
    size_t count;
    double predicted_s, measured_s; /* sums */
    double apart_s;                 /* sum over the parts of how far these two are apart */
    double *errors;                 /* relative, of each */
};

/* Outliers are those of the whole group: nobody is asked to predict them. */
static void leave_out(const struct fitted *fitted, const struct duet__kernel_model *model,
                      const struct folds *folds, unsigned fold, struct predictions *p)
{
    const struct duet__rows *rows = &fitted->rows;
    g_autofree bool *used = g_new(bool, rows->count);
    union duet__parameters parameters;
    double predicted_s = 0, measured_s = 0;
    bool any = false;
    for (size_t i = 0; i < rows->count; i++) {
        used[i] = !fitted->rejected[i] && folds->of[i] != fold;
        any = any || used[i];
    }
    if (!any)
        return;
    model->fit(rows, used, fitted->kernel.bandwidth_Bps, &parameters);
    for (size_t i = 0; i < rows->count; i++) {
        if (fitted->rejected[i] || folds->of[i] != fold)
            continue;
        double seconds = model->predict(&parameters, rows, i);
        predicted_s += seconds;
        measured_s += rows->seconds[i];
        p->errors[p->count++] = fabs(seconds / rows->seconds[i] - 1);
    }
    p->predicted_s += predicted_s;
    p->measured_s += measured_s;
    p->apart_s += fabs(predicted_s - measured_s);
}

/* Where nothing could be left out, nothing is known: NaN. */
static void cross_validate(const struct fitted *fitted, const struct folds *folds,
                           struct duet__model_error errors[DUET__KERNEL_MODELS])
{
    double *room = g_new(double, fitted->rows.count);
    for (int m = 0; m < DUET__KERNEL_MODELS; m++) {
        struct predictions p = {.errors = room};
        errors[m] = (struct duet__model_error){NAN, NAN, NAN};
        for (unsigned fold = 0; fold < folds->count; fold++)
            leave_out(fitted, duet__kernel_models[m], folds, fold, &p);
        if (p.count)
            errors[m] = (struct duet__model_error){.sum = p.predicted_s / p.measured_s - 1,
                                                   .execution = duet__median(room, p.count),
                                                   .part = p.apart_s / p.measured_s};
    }
    g_free(room);
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
                     const struct duet__miss *misses, double bandwidth_Bps,
                     const struct duet__model_options *options, struct duet__quality *out)
{
    bool *rejected = g_new0(bool, group->members->len);
    unsigned *of = g_new0(unsigned, group->members->len);
    struct fitted fitted = {.executions = executions, .group = group, .rejected = rejected};
    struct folds folds = {.of = of};
    (void)g_strlcpy(out->kernel, group->kernel, DUET_NAME_MAX);
    (void)g_strlcpy(out->arch, group->arch, DUET_NAME_MAX);
    (void)g_strlcpy(out->context, group->context, DUET_NAME_MAX);
    duet__rows_make(executions, group, misses, 0, &fitted.rows);
    duet__kernel_fit(&fitted.rows, NULL, group->host ? bandwidth_Bps : 0, &fitted.kernel, rejected);
    fill_point(&fitted, &out->point);
    if (group->host)
        fill_conditions(&fitted, out);
    divide_runs(&fitted.rows, options->folds ? options->folds : FOLDS, &folds);
    cross_validate(&fitted, &folds, out->errors[DUET__LEFT_OUT_RUNS]);
    divide_problems(&fitted, &folds);
    if (!options->compare)
        folds.count = 0;
    cross_validate(&fitted, &folds, out->errors[DUET__LEFT_OUT_PROBLEMS]);
    duet__rows_fini(&fitted.rows);
    g_free(rejected);
    g_free(of);
}

struct duet__model_error duet__model_error_all(const struct duet__model *model,
                                               enum duet__left_out left_out, int kernel_model)
{
    struct duet__model_error mean = {0};
    double time_s = 0;
    for (size_t i = 0; i < model->quality_count; i++) {
        const struct duet__quality *quality = &model->quality[i];
        const struct duet__model_error *error = &quality->errors[left_out][kernel_model];
        double own_s = quality->point.mean_s * (double)quality->point.samples;
        if (!isfinite(error->sum))
            continue;
        mean.sum += own_s * error->sum;
        mean.execution += own_s * error->execution;
        mean.part += own_s * error->part;
        time_s += own_s;
    }
    /* NaN where nothing says so */
    return (struct duet__model_error){mean.sum / time_s, mean.execution / time_s,
                                      mean.part / time_s};
}
