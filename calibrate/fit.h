/* SPDX-License-Identifier: Apache-2.0 */
/* Times as a sum of a base and of parts that are in proportion to misses; outliers; quantiles. */
#ifndef DUET_CALIBRATE_FIT_H
#define DUET_CALIBRATE_FIT_H

#include <stdbool.h>
#include <stddef.h>

#include "platforms/model/curves.h"

enum {
    DUET__FIT_COLUMNS = 2 * DUET_OPERANDS,
    DUET__FIT_UNKNOWNS = DUET__FIT_COLUMNS + 1,
};

/*
 * Minimises c' G c / 2 - r' c over c >= 0, for n <= DUET__FIT_UNKNOWNS unknowns: the normal
 * equations of non-negative least squares, by block principal pivoting (Portugal, Judice, Vicente,
 * Mathematics of Computation 63, 1994). `gram` is symmetric, positive definite, row by row.
 */
void duet__nonnegative(unsigned n, const double *gram, const double *right, double *c);

/* What is fitted. Everything is borrowed. */
struct duet__fit_data {
    size_t count;
    unsigned columns;      /* at most DUET__FIT_COLUMNS */
    const double *shares;  /* count rows of columns, each 0 or more */
    const double *seconds; /* count, each > 0 */
    const bool *used;      /* count */
    /* by column: what its coefficient is taken to be where the data does not tell (seconds), and
       how far from that it may be (relative to the median time, > 0) */
    const double *prior_s, *spread;
};

struct duet__fit {
    double base_s; /* > 0 if any row was used */
    double column_s[DUET__FIT_COLUMNS];
};

/*
 * Robust, non-negative least squares on relative errors: seconds = base_s + shares * column_s. The
 * first fit divides each row by its measured time, which bounds what an outlier above can do; then
 * some by the expected time, with Huber's weights (Annals of Mathematical Statistics 35(1), 1964).
 * The columns' coefficients are drawn to prior_s as by a normal distribution around it, so that
 * those which the data cannot tell apart stay near to it. At last everything is scaled so that the
 * sum of all used times is that of the expected ones. Without used rows *out is 0.
 */
void duet__fit(const struct duet__fit_data *data, struct duet__fit *out);

/* The expected time of a row. */
double duet__fit_seconds(const struct duet__fit *fit, const double *shares, unsigned columns);

/* The median of `count` values, of at most about 2000 of them, evenly spread; 0 without any. */
double duet__rough_median(const double *values, size_t count);

/*
 * Marks outliers: rejected[i]. With r = measured / expected and its median m and MAD d (median
 * absolute deviation of log r), a candidate is what has
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

/*
 * Quantiles of `count` >= 1 ratios (sorted here) at duet__quantile_levels, scaled to mean 1 (linear
 * between them). The two ends are not the extremes: they are chosen so that what lies beyond the
 * 0.01 and the 0.99 quantile has the mean that was measured there, as a single extreme value of
 * many thousand would spoil the mean of all.
 */
void duet__quantiles(double *ratios, size_t count, double quantiles[DUET_QUANTILES]);

#endif
