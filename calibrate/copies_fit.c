/* SPDX-License-Identifier: Apache-2.0 */
/* Latency and bandwidth out of measured copies. */
#include "calibrate/copies.h"

#include <math.h>
#include <stdlib.h>

#include <glib.h>

#include "validate/stats.h"

enum { ROUNDS = 50 };

static const double TINY = 1e-6; /* relative errors below count alike, so that weights are finite */

struct line {
    double latency_s, byte_s;
};

/*
 * A copy, and the median of those of its size. Errors are relative to that: by their own times the
 * shortest of times that scatter would have the most weight.
 */
struct timed {
    double bytes, seconds, usual_s;
};

static double relative(const struct line *line, const struct timed *sample)
{
    return fabs(line->latency_s + line->byte_s * sample->bytes - sample->seconds) / sample->usual_s;
}

/* Weighted least squares; `line` is what the weights come from, NULL: of relative errors alone. */
static struct line solve(const struct timed *samples, size_t count, const struct line *line)
{
    double w = 0, wx = 0, wy = 0, wxx = 0, wxy = 0;
    for (size_t i = 0; i < count; i++) {
        double x = samples[i].bytes, y = samples[i].seconds;
        double weight = 1 / (samples[i].usual_s * samples[i].usual_s);
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

static int by_bytes(const void *a, const void *b)
{
    const struct timed *x = a, *y = b;
    if (x->bytes != y->bytes)
        return (x->bytes > y->bytes) - (x->bytes < y->bytes);
    return (x->seconds > y->seconds) - (x->seconds < y->seconds);
}

/* Takes what has a time, in order of size, with the median of each size. Returns how many. */
static size_t take(const struct duet__copy_sample *samples, size_t count, struct timed *timed)
{
    size_t kept = 0;
    for (size_t i = 0; i < count; i++)
        if (samples[i].seconds > 0 && samples[i].bytes > 0)
            timed[kept++] = (struct timed){samples[i].bytes, samples[i].seconds, 0};
    if (kept)
        qsort(timed, kept, sizeof *timed, by_bytes);
    for (size_t first = 0, end; first < kept; first = end) {
        for (end = first; end < kept && timed[end].bytes == timed[first].bytes;)
            end++;
        double low_s = timed[first + (end - first - 1) / 2].seconds;
        double high_s = timed[first + (end - first) / 2].seconds;
        for (size_t i = first; i < end; i++)
            timed[i].usual_s = (low_s + high_s) / 2;
    }
    return kept;
}

static double median_error(const struct timed *samples, size_t count, const struct line *line,
                           double *errors)
{
    for (size_t i = 0; i < count; i++)
        errors[i] = relative(line, &samples[i]);
    return duet_median(errors, count);
}

void duet__copies_fit(const struct duet__copy_sample *samples, size_t count, struct duet__pair *out)
{
    struct timed *timed = g_new(struct timed, count + 1);
    double *errors = g_new(double, count + 1);
    size_t kept = take(samples, count, timed);
    out->samples = kept;
    out->latency_s = out->bandwidth_Bps = out->error = 0;
    if (kept) {
        struct line line = solve(timed, kept, NULL);
        for (unsigned i = 0; i < ROUNDS; i++)
            line = solve(timed, kept, &line);
        out->latency_s = line.latency_s;
        out->bandwidth_Bps = 1 / line.byte_s;
        out->error = median_error(timed, kept, &line, errors);
    }
    g_free(timed);
    g_free(errors);
}
