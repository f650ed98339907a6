/* SPDX-License-Identifier: Apache-2.0 */
/* Fits times as a base and a part for memory; finds outliers. */
#ifndef DUET_CALIBRATE_FIT_H
#define DUET_CALIBRATE_FIT_H

#include <stdbool.h>
#include <stddef.h>

#include "platforms/model/curves.h"

/* Data to fit. Everything is borrowed. */
struct duet__fit_data {
    size_t count;
    const double *missing; /* count, each from 0 to 1 */
    const double *seconds; /* count, each > 0 */
    const bool *used;      /* count */
    bool flat;             /* fits the base alone */
    /* prior of memory_s, for data that does not tell (seconds), and its deviation (relative to the
     * median time, > 0) */
    double prior_s, spread;
};

struct duet__fit {
    double base_s; /* > 0 if any row was used */
    double memory_s;
};

/*
 * Robust least squares on relative errors: seconds = base_s + memory_s * missing, neither negative.
 * The first fit divides each row by its measured time, which bounds the effect of outliers above;
 * later ones by the expected time, with Huber's weights (Annals of Mathematical Statistics 35(1),
 * 1964). memory_s has a normal prior around prior_s. At last both are scaled so that the sum of all
 * used times is that of the expected ones. Without used rows *out is 0.
 */
void duet__fit(const struct duet__fit_data *data, struct duet__fit *out);

/* Returns the expected time of a row. */
static inline double duet__fit_seconds(const struct duet__fit *fit, double missing)
{
    return fit->base_s + fit->memory_s * missing;
}

/* Returns the median of at most about 2000 of the values, evenly spread; 0 without any. */
double duet__rough_median(const double *values, size_t count);

/*
 * Marks outliers: rejected[i]. With r = measured / expected and its median m and MAD d (median
 * absolute deviation of log r), a candidate has
 *   |log(r / m)| > 8 d and is beyond a factor 1.5, or r / m > 3.
 * Kept nevertheless are
 * - stalls: those above that lost at most 200 us, as long as all of them together are at most 5 %
 * of the kernel's expected time: interrupts and the like are part of every run, and a short kernel
 *   shows them as large factors;
 * - everything if more than a quarter would be rejected: such a kernel has a wide distribution, and
 *   no outliers.
 * Returns how many were rejected.
 */
size_t duet__outliers(const double *measured, const double *expected, size_t count, bool *rejected);

#endif
