/* SPDX-License-Identifier: Apache-2.0 */
/* From recorded runs to a calibration, and how good it is. */
#include "calibrate/model.h"

#include <math.h>
#include <string.h>

#include <glib.h>

#include "calibrate/fitted.h"
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
    bool compare;
    struct duet_point *points; /* by group */
    struct duet__quality *quality;
};

/* ------------------------------------------------------------------------------------------- */
/* What memory gives                                                                            */

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
    if (!duet__row_cold(row) || !(busy ? duet__row_busy(row) : duet__row_alone(row)))
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
    double median = count >= LEAST_ROWS ? duet_median(room, count) : 0;
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
static void find_bandwidth(struct fitting *fitting, const struct duet_sharing *sharing)
{
    const struct duet__samples *samples = &fitting->samples;
    double *room = g_new0(double, samples->count + 1), best_Bps = fitting->bandwidth_Bps;
    duet__samples_walk(samples, sharing, 0, fitting->misses);
    for (size_t i = 0; i < samples->group_count && fitting->bandwidth_Bps > 0; i++) {
        const struct duet__label *label = &samples->labels[samples->groups[i].label];
        struct duet__rows rows;
        if (!label->host)
            continue;
        duet__rows_make(samples, &samples->groups[i], fitting->misses, 0, &rows);
        best_Bps = fmax(best_Bps, attained(&rows, false, room));
        if (lonely(samples, label))
            best_Bps = fmax(best_Bps, attained(&rows, true, room));
        duet__rows_fini(&rows);
    }
    fitting->bandwidth_Bps = best_Bps;
    g_free(room);
}

/* ------------------------------------------------------------------------------------------- */
/* All of it                                                                                    */

/* The point of one group, and its quality. */
static void fit_group(struct fitting *fitting, size_t index)
{
    const struct duet__group *group = &fitting->samples.groups[index];
    bool host = fitting->samples.labels[group->label].host;
    bool *rejected = g_new0(bool, group->count + 1);
    struct duet__rows rows;
    struct duet__kernel_fit kernel;
    struct duet__fitted fitted = {&fitting->samples, group, &rows, &kernel, rejected};
    duet__rows_make(&fitting->samples, group, fitting->misses, 0, &rows);
    duet__kernel_fit(&rows, NULL, host ? fitting->bandwidth_Bps : 0, &kernel, rejected);
    duet__point_fill(&fitted, &fitting->points[index]);
    duet__quality_fill(&fitted, fitting->folds, fitting->compare, &fitting->quality[index]);
    fitting->quality[index].point = fitting->points[index];
    g_free(rejected);
    duet__rows_fini(&rows);
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
    duet__states_remove(&fitting->samples);
    fitting->misses = g_new0(struct duet__miss, samples->operand_count + 1);
    fitting->points = g_new0(struct duet_point, samples->group_count);
    fitting->quality = g_new0(struct duet__quality, samples->group_count);
    find_bandwidth(fitting, &given);
    given.bandwidth_Bps = fitting->bandwidth_Bps;
    out->sharing = duet__cache_sizes(samples, &given);
    /* and leaves the misses with the sizes that were found */
    find_bandwidth(fitting, &out->sharing);
    out->sharing.bandwidth_Bps = fitting->bandwidth_Bps;
    for (size_t i = 0; i < samples->group_count; i++)
        fit_group(fitting, i);
    return add_curves(fitting, &out->calibration, message);
}

int duet__model_fit(const struct duet__observation *runs, size_t run_count,
                    const struct duet__model_options *options, struct duet__model *out,
                    struct duet_message *message)
{
    struct fitting fitting = {.bandwidth_Bps = options->sharing.bandwidth_Bps,
                              .folds = options->folds ? options->folds : FOLDS,
                              .compare = options->compare};
    *out = (struct duet__model){0};
    if (fitting.folds < LEAST_FOLDS)
        return duet_fail(message, DUET_EINVAL, "cross-validation needs at least %d folds, not %u",
                         LEAST_FOLDS, fitting.folds);
    int error =
        duet__samples_gather(runs, run_count, options->task_overhead_s, &fitting.samples, message);
    if (!error)
        error = fit_all(&fitting, options, out, message);
    out->quality = fitting.quality;
    out->quality_count = fitting.quality ? fitting.samples.group_count : 0;
    g_free(fitting.points);
    g_free(fitting.misses);
    duet__samples_fini(&fitting.samples);
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
