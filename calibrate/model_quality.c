/* SPDX-License-Identifier: Apache-2.0 */
/* How well a point predicts executions that it was not made of. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "calibrate/model_point.h"
#include "validate/stats.h"

/* Which part of the executions each is left out with. */
struct folds {
    unsigned count;
    bool by_run;
    unsigned *of; /* by row */
};

static void divide(const struct duet__rows *rows, unsigned wanted, struct folds *folds)
{
    size_t runs = 0;
    for (size_t i = 0; i < rows->count; i++)
        runs += i == 0 || rows->list[i].run != rows->list[i - 1].run;
    folds->by_run = runs >= wanted;
    folds->count = rows->count < wanted ? (unsigned)rows->count : wanted;
    size_t run = 0;
    for (size_t i = 0; i < rows->count; i++) {
        run += i > 0 && rows->list[i].run != rows->list[i - 1].run;
        folds->of[i] =
            (unsigned)(folds->by_run ? run % folds->count : i * folds->count / rows->count);
    }
}

/* What was predicted of the executions that were left out, all folds together. */
struct predictions {
    size_t count;
    double predicted_s, measured_s; /* sums */
    double *errors, *mean_errors;   /* relative, of each */
    bool *used;
};

/* The mean of the executions that are used. */
static double mean_of(const struct duet__rows *rows, const bool *used)
{
    double sum = 0;
    size_t count = 0;
    for (size_t i = 0; i < rows->count; i++)
        if (used[i]) {
            sum += rows->seconds[i];
            count++;
        }
    return count ? sum / (double)count : 0;
}

/* Outliers are those of the whole group: nobody is asked to predict them. */
static int leave_out(const struct duet__fitted *fitted, const struct folds *folds, unsigned fold,
                     struct predictions *p)
{
    const struct duet__rows *rows = fitted->rows;
    struct duet__kernel_fit kernel;
    for (size_t i = 0; i < rows->count; i++)
        p->used[i] = !fitted->rejected[i] && folds->of[i] != fold;
    double mean = mean_of(rows, p->used);
    int error = duet__kernel_fit(rows, p->used, fitted->kernel->bandwidth_Bps, &kernel, NULL);
    for (size_t i = 0; i < rows->count && !error && mean > 0; i++) {
        if (fitted->rejected[i] || folds->of[i] != fold)
            continue;
        double predicted = duet__kernel_seconds(&kernel, rows, i);
        p->predicted_s += predicted;
        p->measured_s += rows->seconds[i];
        p->errors[p->count] = fabs(predicted / rows->seconds[i] - 1);
        p->mean_errors[p->count++] = fabs(mean / rows->seconds[i] - 1);
    }
    return error;
}

static int median_of(const double *values, size_t count, double *out)
{
    struct duet_summary summary;
    int error = duet_summarise(values, count, &summary, NULL);
    if (!error)
        *out = summary.median;
    return error;
}

static int cross_validate(const struct duet__fitted *fitted, unsigned folds_wanted,
                          struct duet__quality *out)
{
    size_t room = fitted->rows->count + 1;
    struct folds folds = {.of = calloc(room, sizeof *folds.of)};
    struct predictions p = {.errors = calloc(room, sizeof *p.errors),
                            .mean_errors = calloc(room, sizeof *p.mean_errors),
                            .used = calloc(room, sizeof *p.used)};
    int error = folds.of && p.errors && p.mean_errors && p.used ? DUET_OK : DUET_ENOMEM;
    if (!error)
        divide(fitted->rows, folds_wanted, &folds);
    for (unsigned fold = 0; fold < folds.count && !error; fold++)
        error = leave_out(fitted, &folds, fold, &p);
    if (!error && p.count) {
        out->sum_error = p.predicted_s / p.measured_s - 1;
        error = median_of(p.errors, p.count, &out->execution_error);
        if (!error)
            error = median_of(p.mean_errors, p.count, &out->mean_execution_error);
    }
    free(p.errors);
    free(p.mean_errors);
    free(p.used);
    free(folds.of);
    return error;
}

static void copy_name(char *to, const char *from)
{
    size_t length = strlen(from);
    length = length < DUET_NAME_MAX ? length : DUET_NAME_MAX - 1;
    memcpy(to, from, length);
    to[length] = '\0';
}

int duet__quality_fill(const struct duet__fitted *fitted, const struct duet_point *point,
                       unsigned folds, struct duet__quality *out)
{
    const struct duet__label *label = &fitted->samples->labels[fitted->group->label];
    *out = (struct duet__quality){
        .work = point->work,
        .size = point->size,
        .samples = point->samples,
        .rejected = point->rejected,
        .mean_s = point->mean_s,
        .median_s = point->median_s,
        .deviation_s = point->deviation_s,
    };
    copy_name(out->kernel, label->kernel);
    copy_name(out->arch, label->arch);
    copy_name(out->context, label->context);
    return cross_validate(fitted, folds, out);
}
