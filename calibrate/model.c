/* SPDX-License-Identifier: Apache-2.0 */
/* From recorded runs to a calibration, and how good it is. */
#include "calibrate/model.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "calibrate/model_point.h"
#include "calibrate/states.h"
#include "validate/stats.h"

enum {
    FOLDS = 5,
    LEAST_FOLDS = 2,
    LEAST_ROWS = 10, /* that say what memory gives */
};

/* What is at work. */
struct fitting {
    struct duet__samples samples;
    struct duet__miss *misses;
    double bandwidth_Bps;
    unsigned folds;
    struct duet_point *points; /* by group */
    struct duet__quality *quality;
};

/* ------------------------------------------------------------------------------------------- */
/* What memory gives                                                                            */

static int ascending(const void *a, const void *b)
{
    const double *left = a, *right = b;
    return (*left > *right) - (*left < *right);
}

/* Is it the only kernel of the host in its workload, so that all neighbours do the same? */
static bool lonely(const struct duet__samples *samples, const struct duet__label *label)
{
    for (size_t i = 0; i < samples->label_count; i++) {
        const struct duet__label *other = &samples->labels[i];
        if (other != label && other->host && strcmp(other->context, label->context) == 0)
            return false;
    }
    return true;
}

/* Bytes that an execution got from memory, where it was most of them; else 0. */
static double got(const struct duet__row *row, bool busy)
{
    if (row->from_memory <= row->bytes / 2 || !(busy ? duet__row_busy(row) : duet__row_alone(row)))
        return 0;
    return (busy ? row->others + 1 : 1) * row->from_memory;
}

/*
 * Bytes a second that executions got from memory: alone, or busy, and then with their neighbours,
 * which do the same. That is what duet__kernel_seconds holds against the bandwidth. The mean, so
 * that times add up; without those that are far from the median.
 */
static double attained(const struct duet__rows *rows, bool busy, double *room)
{
    size_t count = 0;
    double bytes = 0, seconds = 0;
    for (size_t i = 0; i < rows->count; i++)
        if (got(&rows->list[i], busy) > 0)
            room[count++] = got(&rows->list[i], busy) / rows->seconds[i];
    qsort(room, count, sizeof *room, ascending);
    double median = count >= LEAST_ROWS ? duet_quantile(room, count, 0.5) : 0;
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
 * was reached. Both are of other seconds, and the machine may have been slower in those.
 */
static int find_bandwidth(struct fitting *fitting, const struct duet_sharing *sharing)
{
    const struct duet__samples *samples = &fitting->samples;
    double *room = calloc(samples->count + 1, sizeof *room), best_Bps = fitting->bandwidth_Bps;
    int error = room ? duet__samples_walk(samples, sharing, 0, fitting->misses) : DUET_ENOMEM;
    for (size_t i = 0; i < samples->group_count && !error && fitting->bandwidth_Bps > 0; i++) {
        const struct duet__label *label = &samples->labels[samples->groups[i].label];
        struct duet__rows rows;
        if (!label->host)
            continue;
        error = duet__rows_make(samples, &samples->groups[i], fitting->misses, 0, &rows);
        if (!error)
            best_Bps = fmax(best_Bps, attained(&rows, false, room));
        if (!error && lonely(samples, label))
            best_Bps = fmax(best_Bps, attained(&rows, true, room));
        duet__rows_fini(&rows);
    }
    fitting->bandwidth_Bps = best_Bps;
    free(room);
    return error;
}

/* ------------------------------------------------------------------------------------------- */
/* All of it                                                                                    */

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
    struct duet_sharing given = options->sharing;
    int error = duet__states_remove(&fitting->samples);
    fitting->misses = calloc(samples->operand_count + 1, sizeof *fitting->misses);
    fitting->points = calloc(samples->group_count, sizeof *fitting->points);
    fitting->quality = calloc(samples->group_count, sizeof *fitting->quality);
    if (!error && (!fitting->misses || !fitting->points || !fitting->quality))
        error = DUET_ENOMEM;
    if (!error)
        error = find_bandwidth(fitting, &given);
    given.bandwidth_Bps = fitting->bandwidth_Bps;
    if (!error)
        error = duet__sharing_search(samples, &given, &out->sharing);
    /* and leaves the misses with the sizes that were found */
    if (!error)
        error = find_bandwidth(fitting, &out->sharing);
    out->sharing.bandwidth_Bps = fitting->bandwidth_Bps;
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
