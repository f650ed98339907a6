/* SPDX-License-Identifier: Apache-2.0 */
/* How good a calibration is, in a few figures. */
#include "cli/calibrate.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "validate/stats.h"

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

void duet__confidence(const struct duet__found *found, struct duet__confidence *out)
{
    const struct duet__model *model = &found->model;
    double *errors = g_new0(double, model->quality_count + 1), worst = -1;

    *out = (struct duet__confidence){.half = NAN,
                                     .most = NAN,
                                     .fewest_runs = UINT64_MAX,
                                     .fewest_samples = UINT64_MAX};
    for (size_t i = 0; i < model->quality_count; i++) {
        const struct duet__quality *quality = &model->quality[i];

        out->samples += quality->samples;
        out->rejected += quality->rejected;
        out->fewest_samples = MIN(out->fewest_samples, quality->samples);
        if (!isfinite(quality->sum_error))
            continue;
        errors[out->points++] = fabs(quality->sum_error);
        if (fabs(quality->sum_error) > worst) {
            worst = fabs(quality->sum_error);
            out->worst = quality;
        }
    }
    for (guint i = 0; i < found->items->len; i++) {
        uint64_t runs = g_array_index(found->items, struct duet__item, i).runs;

        if (runs)
            out->fewest_runs = MIN(out->fewest_runs, runs);
    }
    if (out->points) {
        qsort(errors, out->points, sizeof *errors, ascending);
        out->half = duet_quantile(errors, out->points, 0.5);
        out->most = duet_quantile(errors, out->points, 0.9);
    }
    g_free(errors);
}

const struct duet_point *duet__quality_point(const struct duet__model *model,
                                             const struct duet__quality *quality)
{
    for (size_t i = 0; i < model->calibration.count; i++) {
        const struct duet_curve *curve = &model->calibration.curves[i];

        if (strcmp(curve->kernel, quality->kernel) != 0 ||
            strcmp(curve->arch, quality->arch) != 0 ||
            strcmp(curve->context, quality->context) != 0)
            continue;
        for (size_t k = 0; k < curve->count; k++)
            if (curve->points[k].work == quality->work)
                return &curve->points[k];
    }
    return NULL;
}
