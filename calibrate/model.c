/* SPDX-License-Identifier: Apache-2.0 */
/* From recorded runs to a calibration, and how good it is. */
#include "calibrate/model.h"

#include <stdlib.h>

#include "calibrate/model_point.h"

enum { FOLDS = 5, LEAST_FOLDS = 2 };

/* What is at work. */
struct fitting {
    struct duet__samples samples;
    struct duet__miss *misses;
    double bandwidth_Bps;
    unsigned folds;
    struct duet_point *points; /* by group */
    struct duet__quality *quality;
};

/* The point of one group, and its quality. */
static int fit_group(struct fitting *fitting, size_t index)
{
    const struct duet__group *group = &fitting->samples.groups[index];
    bool host = fitting->samples.labels[group->label].host;
    struct duet__rows rows;
    struct duet__kernel_fit kernel;
    int error = duet__rows_make(&fitting->samples, group, fitting->misses, 0, &rows);
    bool *rejected = calloc(group->count + 1, sizeof *rejected);
    if (!error && !rejected)
        error = DUET_ENOMEM;
    if (!error)
        error = duet__kernel_fit(&rows, NULL, host ? fitting->bandwidth_Bps : 0, &kernel, rejected);
    struct duet__fitted fitted = {&fitting->samples, group, &rows, &kernel, rejected};
    if (!error)
        error = duet__point_fill(&fitted, &fitting->points[index]);
    if (!error)
        error = duet__quality_fill(&fitted, &fitting->points[index], fitting->folds,
                                   &fitting->quality[index]);
    free(rejected);
    duet__rows_fini(&rows);
    return error;
}

/* Curves of the points: those of one label are beside each other. */
static int add_curves(const struct fitting *fitting, struct duet_calibration *out,
                      struct duet_message *message)
{
    const struct duet__samples *samples = &fitting->samples;
    int error = DUET_OK;
    for (size_t i = 0, next; i < samples->group_count && !error; i = next) {
        const struct duet__label *label = &samples->labels[samples->groups[i].label];
        for (next = i + 1; next < samples->group_count; next++)
            if (samples->groups[next].label != samples->groups[i].label)
                break;
        error = duet_calibration_add_context(out, label->kernel, label->arch, label->context,
                                             &fitting->points[i], next - i, message);
    }
    return error;
}

static int fit_all(struct fitting *fitting, const struct duet__model_options *options,
                   struct duet__model *out, struct duet_message *message)
{
    const struct duet__samples *samples = &fitting->samples;
    int error = duet__sharing_search(samples, &options->sharing, &out->sharing);
    fitting->misses = calloc(samples->operand_count + 1, sizeof *fitting->misses);
    fitting->points = calloc(samples->group_count, sizeof *fitting->points);
    fitting->quality = calloc(samples->group_count, sizeof *fitting->quality);
    if (!error && (!fitting->misses || !fitting->points || !fitting->quality))
        error = DUET_ENOMEM;
    if (!error)
        error = duet__samples_walk(samples, &out->sharing, 0, fitting->misses);
    for (size_t i = 0; i < samples->group_count && !error; i++)
        error = fit_group(fitting, i);
    if (error)
        return duet_fail(message, error, "out of memory for the model of %zu executions",
                         samples->count);
    return add_curves(fitting, &out->calibration, message);
}

int duet__model_fit(const struct duet__observation *runs, size_t run_count,
                    const struct duet__model_options *options, struct duet__model *out,
                    struct duet_message *message)
{
    struct fitting fitting = {.bandwidth_Bps = options->sharing.bandwidth_Bps,
                              .folds = options->folds ? options->folds : FOLDS};
    *out = (struct duet__model){0};
    if (fitting.folds < LEAST_FOLDS)
        return duet_fail(message, DUET_EINVAL, "cross-validation needs at least %d folds, not %u",
                         LEAST_FOLDS, fitting.folds);
    int error =
        duet__samples_gather(runs, run_count, options->task_overhead_s, &fitting.samples, message);
    if (!error)
        error = fit_all(&fitting, options, out, message);
    if (!error) {
        out->quality = fitting.quality;
        out->quality_count = fitting.samples.group_count;
        fitting.quality = NULL;
    }
    free(fitting.points);
    free(fitting.quality);
    free(fitting.misses);
    duet__samples_fini(&fitting.samples);
    if (error)
        duet__model_fini(out);
    return error;
}

void duet__model_fini(struct duet__model *model)
{
    duet_calibration_fini(&model->calibration);
    free(model->quality);
    *model = (struct duet__model){0};
}
