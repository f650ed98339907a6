/* SPDX-License-Identifier: Apache-2.0 */
/* How good a calibration is, in a few figures. */
#include "calibrate/calibrate.h"

#include <math.h>

#include "validate/stats.h"

void duet__confidence(const struct duet__calibrate_result *result, struct duet__confidence *out)
{
    const struct duet__model *model = &result->model;
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
        double error = fabs(quality->errors[DUET__LEFT_OUT_RUNS][DUET__EFFECTS_MODEL].sum);

        if (!isfinite(error))
            continue;
        errors[out->points++] = error;
        if (error > worst) {
            worst = error;
            out->worst = quality;
        }
    }
    for (guint i = 0; i < result->setups->len; i++) {
        uint64_t runs = g_array_index(result->setups, struct duet__setup, i).runs;

        if (runs)
            out->fewest_runs = MIN(out->fewest_runs, runs);
    }
    if (out->points) {
        out->half = duet_median(errors, out->points);
        out->most = duet_quantile(errors, out->points, 0.9);
    }
    g_free(errors);
}
