/* SPDX-License-Identifier: Apache-2.0 */
/* Fits a calibration to recorded runs, and judges it. */
#include "calibrate/model.h"

#include <math.h>
#include <string.h>

enum {
    LEAST_ROWS = 10, /* least rows that tell a bandwidth */
};

/* State of the fit. */
struct fitting {
    struct duet__executions executions;
    double *missing;
    double bandwidth_Bps;
};

/* ------------------------------------------------------------------------------------------- */
/* Bandwidth of memory */

/* True if it is the only kernel of the host in its workload, so that all neighbours run it, too. */
static bool is_only_kernel(const struct duet__executions *executions,
                           const struct duet__group *group)
{
    for (guint i = 0; i < executions->groups->len; i++) {
        const struct duet__group *other = duet__group_at(executions, i);
        if (other->host && strcmp(other->context, group->context) == 0 &&
            (strcmp(other->kernel, group->kernel) != 0 || strcmp(other->arch, group->arch) != 0))
            return false;
    }
    return true;
}

/* Bytes a second that an execution got from memory, if most of its data came from there; else 0. */
static double memory_rate(const struct duet__row *row, bool busy)
{
    if (!duet__row_cold(row) || !(busy ? duet__row_busy(row) : duet__row_alone(row)))
        return 0;
    return (busy ? row->others + 1 : 1) * row->from_memory;
}

/*
 * Mean bytes a second that executions got from memory: alone, or busy, and then with their
 * neighbours, which do the same; duet__kernel_seconds compares that with the bandwidth. A mean, so
 * that times add up, without values far from the median.
 */
static double attained_Bps(const struct duet__rows *rows, bool busy)
{
    double *rates = g_new(double, rows->count + 1);
    double bytes = 0, seconds = 0, median = 0;
    size_t count = 0;
    for (size_t i = 0; i < rows->count; i++)
        if (memory_rate(&rows->list[i], busy) > 0)
            rates[count++] = memory_rate(&rows->list[i], busy) / rows->seconds[i];
    if (count >= LEAST_ROWS)
        median = duet__median(rates, count);
    for (size_t i = 0; i < rows->count && median > 0; i++) {
        double own = memory_rate(&rows->list[i], busy);
        if (!(own > 0) || fabs(log(own / rows->seconds[i] / median)) > log(2))
            continue;
        bytes += own;
        seconds += rows->seconds[i];
    }
    g_free(rates);
    return seconds > 0 ? bytes / seconds : 0;
}

/*
 * Finds the bandwidth: that measured, or more if a kernel got more, as a limit is not below what
 * was reached. The machine may have been slower when it was measured. Leaves the missing parts for
 * a cache of this size.
 */
static void find_bandwidth(struct fitting *fitting, const struct duet_sharing *sharing)
{
    const struct duet__executions *executions = &fitting->executions;
    double best_Bps = fitting->bandwidth_Bps;
    duet__missing_find(executions, sharing, 0, fitting->missing);
    for (guint i = 0; i < executions->groups->len && fitting->bandwidth_Bps > 0; i++) {
        const struct duet__group *group = duet__group_at(executions, i);
        struct duet__rows rows;
        if (!group->host)
            continue;
        duet__rows_make(executions, group, fitting->missing, 0, &rows);
        best_Bps = fmax(best_Bps, attained_Bps(&rows, false));
        if (is_only_kernel(executions, group))
            best_Bps = fmax(best_Bps, attained_Bps(&rows, true));
        duet__rows_fini(&rows);
    }
    fitting->bandwidth_Bps = best_Bps;
}

/* ------------------------------------------------------------------------------------------- */
/* All of it                                                                                    */

/* Makes curves of points: those that differ only in work are neighbours. */
static int add_curves(struct duet__model *out, struct duet_message *message)
{
    struct duet__point *points = g_new(struct duet__point, out->quality_count);
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
        struct duet__curve curve = {.count = next - i, .points = points};
        g_strlcpy(curve.kernel, first->kernel, sizeof(curve.kernel));
        g_strlcpy(curve.arch, first->arch, sizeof(curve.arch));
        g_strlcpy(curve.context, first->context, sizeof(curve.context));
        error = duet__calibration_add(&out->calibration, &curve, message);
    }
    g_free(points);
    return error;
}

int duet__model_fit(const struct duet__recorded_run *runs, size_t run_count,
                    const struct duet__model_options *options, struct duet__model *out,
                    struct duet_message *message)
{
    struct fitting fitting = {.bandwidth_Bps = options->sharing.bandwidth_Bps};
    struct duet__executions *executions = &fitting.executions;
    struct duet_sharing given = options->sharing;
    duet__kernel_fit_fn *fit = options->fit ? options->fit : duet__kernel_fit;
    int error;
    *out = (struct duet__model){0};
    error = duet__executions_read(runs, run_count, options->task_overhead_s, executions, message);
    if (error)
        return error;
    if (!options->keep_states)
        duet__states_remove(executions);
    fitting.missing = g_new0(double, executions->operand_count + 1);
    find_bandwidth(&fitting, &given);
    given.bandwidth_Bps = fitting.bandwidth_Bps;
    out->sharing = given;
    if (!options->keep_size)
        out->sharing.shared_bytes = duet__cache_size(executions, &given, fit);
    find_bandwidth(&fitting, &out->sharing);
    out->sharing.bandwidth_Bps = fitting.bandwidth_Bps;
    out->quality_count = executions->groups->len;
    out->quality = g_new0(struct duet__quality, out->quality_count);
    for (guint i = 0; i < executions->groups->len; i++)
        duet__point_fit(executions, duet__group_at(executions, i), fitting.missing,
                        fitting.bandwidth_Bps, options, &out->quality[i]);
    error = add_curves(out, message);
    g_free(fitting.missing);
    duet__executions_fini(executions);
    if (error)
        duet__model_fini(out);
    return error;
}

void duet__model_fini(struct duet__model *model)
{
    duet__calibration_fini(&model->calibration);
    g_free(model->quality);
    *model = (struct duet__model){0};
}
