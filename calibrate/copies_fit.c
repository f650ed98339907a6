/* SPDX-License-Identifier: Apache-2.0 */
/* Latency and bandwidth out of measured copies. */
#include "calibrate/copies_fit.h"

#include <math.h>
#include <stdlib.h>

enum { ROUNDS = 50 };

static const double TINY = 1e-6; /* relative errors below count alike, so that weights are finite */

struct line {
    double latency_s, byte_s;
};

static double relative(const struct line *line, const struct duet__copy_sample *sample)
{
    return fabs(line->latency_s + line->byte_s * sample->bytes - sample->seconds) / sample->seconds;
}

/* Weighted least squares; `line` is what the weights come from, NULL: of relative errors alone. */
static struct line solve(const struct duet__copy_sample *samples, size_t count,
                         const struct line *line)
{
    double w = 0, wx = 0, wy = 0, wxx = 0, wxy = 0;
    for (size_t i = 0; i < count; i++) {
        double x = samples[i].bytes, y = samples[i].seconds, weight = 1 / (y * y);
        if (line)
            weight /= fmax(TINY, relative(line, &samples[i]));
        w += weight;
        wx += weight * x;
        wy += weight * y;
        wxx += weight * x * x;
        wxy += weight * x * y;
    }
    double determinant = w * wxx - wx * wx;
    struct line out = {0, wxy / wxx};
    /* one size, or times that do not grow: all of it is bandwidth */
    if (!(determinant > 1e-12 * w * wxx))
        return out;
    double latency_s = (wy * wxx - wx * wxy) / determinant;
    double byte_s = (w * wxy - wx * wy) / determinant;
    return latency_s > 0 && byte_s > 0 ? (struct line){latency_s, byte_s} : out;
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median_error(const struct duet__copy_sample *samples, size_t count,
                           const struct line *line, double *errors)
{
    for (size_t i = 0; i < count; i++)
        errors[i] = relative(line, &samples[i]);
    qsort(errors, count, sizeof *errors, ascending);
    return (errors[(count - 1) / 2] + errors[count / 2]) / 2;
}

int duet__copies_fit(const struct duet__copy_sample *samples, size_t count, struct duet__pair *out)
{
    struct duet__copy_sample *timed = malloc((count + 1) * sizeof *timed);
    double *errors = malloc((count + 1) * sizeof *errors);
    size_t kept = 0;
    for (size_t i = 0; timed && i < count; i++)
        if (samples[i].seconds > 0 && samples[i].bytes > 0)
            timed[kept++] = samples[i];
    out->samples = kept;
    out->latency_s = out->bandwidth_Bps = out->error = 0;
    if (timed && errors && kept) {
        struct line line = solve(timed, kept, NULL);
        for (unsigned i = 0; i < ROUNDS; i++)
            line = solve(timed, kept, &line);
        out->latency_s = line.latency_s;
        out->bandwidth_Bps = 1 / line.byte_s;
        out->error = median_error(timed, kept, &line, errors);
    }
    int error = timed && errors ? DUET_OK : DUET_ENOMEM;
    free(timed);
    free(errors);
    return error;
}
