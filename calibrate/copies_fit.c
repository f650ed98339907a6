/* SPDX-License-Identifier: Apache-2.0 */
/* Fits latency and bandwidth to measured copies. */
#include "calibrate/copies.h"

#include <math.h>
#include <string.h>

#include <glib.h>

enum { ROUNDS = 50 };

static const double TINY = 1e-6; /* relative errors below count alike, so that weights are finite */

struct line {
    double latency_s, byte_s;
};

/* A copy, and the median time of its size. Errors are relative to the median: relative to their own
 * times, the shortest of scattered times would have the most weight. */
struct timed {
    struct duet__copy_sample copy;
    double usual_s;
};

static double relative(const struct line *line, const struct timed *t)
{
    return fabs(line->latency_s + line->byte_s * t->copy.bytes - t->copy.seconds) / t->usual_s;
}

/* Weighted least squares; weights come from `line`, or if that is NULL, from relative errors. */
static struct line solve(const struct timed *timed, size_t count, const struct line *line)
{
    double w = 0, wx = 0, wy = 0, wxx = 0, wxy = 0, determinant;
    struct line out;
    for (size_t i = 0; i < count; i++) {
        double x = timed[i].copy.bytes, y = timed[i].copy.seconds;
        double weight = 1 / (timed[i].usual_s * timed[i].usual_s);
        if (line)
            weight /= fmax(TINY, relative(line, &timed[i]));
        w += weight;
        wx += weight * x;
        wy += weight * y;
        wxx += weight * x * x;
        wxy += weight * x * y;
    }
    determinant = w * wxx - wx * wx;
    out = (struct line){(wy * wxx - wx * wxy) / determinant, (w * wxy - wx * wy) / determinant};
    /* one size, or times that do not grow: all of it is bandwidth */
    if (!(determinant > 1e-12 * w * wxx) || !(out.latency_s > 0) || !(out.byte_s > 0))
        out = (struct line){0, wxy / wxx};
    return out;
}

void duet__copies_fit(const struct duet__copy_sample *samples, size_t count,
                      struct duet__copy_pair *out)
{
    struct timed *timed = g_new0(struct timed, count + 1);
    double *room = g_new(double, count + 1);
    size_t kept = 0;
    for (size_t i = 0; i < count; i++)
        if (samples[i].seconds > 0 && samples[i].bytes > 0)
            timed[kept++].copy = samples[i];
    for (size_t i = 0; i < kept; i++) {
        size_t same = 0;
        for (size_t k = 0; k < kept; k++)
            if (timed[k].copy.bytes == timed[i].copy.bytes)
                room[same++] = timed[k].copy.seconds;
        timed[i].usual_s = duet__median(room, same);
    }
    out->samples = kept;
    out->latency_s = out->bandwidth_Bps = out->error = 0;
    if (kept) {
        struct line line = solve(timed, kept, NULL);
        for (unsigned i = 0; i < ROUNDS; i++)
            line = solve(timed, kept, &line);
        for (size_t i = 0; i < kept; i++)
            room[i] = relative(&line, &timed[i]);
        out->latency_s = line.latency_s;
        out->bandwidth_Bps = 1 / line.byte_s;
        out->error = duet__median(room, kept);
    }
    g_free(timed);
    g_free(room);
}
