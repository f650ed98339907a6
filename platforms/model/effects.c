/* SPDX-License-Identifier: Apache-2.0 */
/* Effects on the time of an execution: their names; the time itself, from a calibrated point and
   the missing data. */
#include <math.h>
#include <string.h>

#include "platforms/model/effects.h"

/* Names by bit of enum duet__effect. */
static const char *const names[] = {"caches", "bandwidth", "neighbours",
                                    "cores",  "wake-ups",  "start"};

int duet__effects_parse(const char *what, const char *list, unsigned *bits,
                        struct duet_message *message)
{
    unsigned found = 0;
    for (const char *at = list; at && *at;) {
        size_t length = strcspn(at, ",");
        unsigned bit = 0;
        for (unsigned i = 0; i < sizeof names / sizeof names[0]; i++)
            if (strlen(names[i]) == length && !strncmp(names[i], at, length))
                bit = 1U << i;
        if (!bit)
            return duet_fail(message, DUET_EINVAL,
                             "%s: unknown cause '%.*s': known are caches, bandwidth, neighbours, "
                             "cores, wake-ups, start",
                             what, (int)(length < 64 ? length : 64), at);
        found |= bit;
        at += length + (at[length] == ',');
    }
    *bits = found;
    return DUET_OK;
}

static const double NOTHING_S = 1e-12; /* shorter waits for memory count as none */

void duet__demand(const struct duet__point *point, const struct duet__operand *operands,
                  const double *missing, size_t count, unsigned effects, struct duet__demand *out)
{
    double bytes = 0;
    *out = (struct duet__demand){
        .fixed_s = point->mean_s,
        .busy_ratio = point->busy_ratio > 0 ? point->busy_ratio : 1,
    };
    if (!(point->base_s > 0) || !missing)
        return;
    out->fixed_s = point->base_s;
    if (!(effects & DUET__EFFECT_CACHES))
        return;
    for (size_t i = 0; i < count; i++) {
        bytes += (double)operands[i].bytes;
        out->bytes += (double)operands[i].bytes * missing[i];
    }
    if (point->memory_s * out->bytes >= NOTHING_S * bytes && bytes > 0)
        out->memory_s = point->memory_s * out->bytes / bytes;
}

double duet__normal(double u, double v)
{
    const double pi = 3.14159265358979323846;
    return sqrt(-2 * log1p(-u)) * cos(2 * pi * v);
}

double duet__factor(const struct duet__point *point, double u, double v)
{
    double ratio = point->noise;
    if (!(ratio > 0) && point->mean_s > 0)
        ratio = point->deviation_s / point->mean_s;
    double variance = log1p(ratio * ratio), sigma = sqrt(variance);
    return ratio > 0 ? exp(sigma * duet__normal(u, v) - variance / 2) : 1;
}
