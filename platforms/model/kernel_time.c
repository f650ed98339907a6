/* SPDX-License-Identifier: Apache-2.0 */
/* What one execution needs, from a calibrated point and where its data is; draws around it. */
#include <math.h>

#include "platforms/model/effects.h"

static const double NOTHING_S = 1e-12; /* waiting for memory for less is none */

/* The operand's parameters: those beyond the last count as the last. */
static size_t place(size_t index)
{
    return index < DUET_OPERANDS ? index : DUET_OPERANDS - 1;
}

void duet__demand(const struct duet__point *point, const struct duet__operand *operands,
                  const struct duet__miss *miss, size_t count, unsigned effects,
                  struct duet__demand *out)
{
    *out = (struct duet__demand){
        .fixed_s = point->mean_s,
        .busy_ratio = point->busy_ratio > 0 ? point->busy_ratio : 1,
    };
    if (!(point->base_s > 0) || !miss)
        return;
    out->fixed_s = point->base_s;
    if (!(effects & DUET__EFFECT_CACHES))
        return;
    for (size_t i = 0; i < count; i++) {
        out->fixed_s += point->near_s[place(i)] * miss[i].near;
        out->memory_s += point->far_s[place(i)] * miss[i].far;
        out->bytes += (double)operands[i].bytes * miss[i].far;
    }
    if (out->memory_s < NOTHING_S)
        out->memory_s = 0;
}

/* The inverse of the distribution function that is linear between the quantiles. */
static double inverse(const double quantiles[DUET_QUANTILES], double u)
{
    unsigned i = 1;
    while (i < DUET_QUANTILES - 1 && duet__quantile_levels[i] <= u)
        i++;
    double low = duet__quantile_levels[i - 1], high = duet__quantile_levels[i];
    return quantiles[i - 1] + (quantiles[i] - quantiles[i - 1]) * (u - low) / (high - low);
}

/* Its mean. */
static double mean_of(const double quantiles[DUET_QUANTILES])
{
    double sum = 0;
    for (unsigned i = 1; i < DUET_QUANTILES; i++)
        sum += (duet__quantile_levels[i] - duet__quantile_levels[i - 1]) *
               (quantiles[i - 1] + quantiles[i]) / 2;
    return sum;
}

double duet__factor(const struct duet__point *point, double u, double v)
{
    if (point->quantiles[DUET_QUANTILES - 1] > 0)
        return inverse(point->quantiles, u) / mean_of(point->quantiles);
    if (!(point->deviation_s > 0) || !(point->mean_s > 0))
        return 1;
    const double pi = 3.14159265358979323846;
    double ratio = point->deviation_s / point->mean_s;
    double variance = log1p(ratio * ratio), sigma = sqrt(variance);
    double normal = sqrt(-2 * log1p(-u)) * cos(2 * pi * v);
    return exp(sigma * normal - variance / 2);
}
