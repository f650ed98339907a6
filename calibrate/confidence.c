/* SPDX-License-Identifier: Apache-2.0 */
/* Summarises the quality of a calibration in a few figures. */
#include "calibrate/calibrate.h"

#include <math.h>

#include "base/stats.h"

void duet__confidence(const struct duet__calibrating *c, struct duet__confidence *out)
{
    const struct duet__model *model = &c->model;
    g_autofree double *errors = g_new0(double, model->quality_count + 1);
    *out = (struct duet__confidence){.half = NAN,
                                     .most = NAN,
                                     .worst_error = NAN,
                                     .fewest_runs = UINT64_MAX,
                                     .fewest_samples = UINT64_MAX};
    for (size_t i = 0; i < model->quality_count; i++) {
        const struct duet__quality *quality = &model->quality[i];
        out->samples += quality->point.samples;
        out->rejected += quality->point.rejected;
        out->all_s += quality->all_s;
        out->rejected_s += quality->rejected_s;
        out->fresh_s += quality->fresh_s;
        out->fewest_samples = MIN(out->fewest_samples, quality->point.samples);
        double error = quality->error.sum;
        if (!isfinite(error))
            continue;
        errors[out->points++] = fabs(error);
        if (!out->worst || fabs(error) > fabs(out->worst_error)) {
            out->worst_error = error;
            out->worst = quality;
        }
    }
    for (guint i = 0; i < c->setups->len; i++) {
        uint64_t runs = duet__setup_at(c, i)->runs;
        if (runs)
            out->fewest_runs = MIN(out->fewest_runs, runs);
    }
    if (out->points) {
        out->half = duet__median(errors, out->points);
        out->most = duet__quantile(errors, out->points, 0.9);
    }
}
