/* SPDX-License-Identifier: Apache-2.0 */
/* Statistics of repeated measurements: location, spread, quantiles and confidence intervals. */
#ifndef DUET_STATS_H
#define DUET_STATS_H

#include <stddef.h>
#include <stdint.h>

#include <duet/error.h>

/*
 * What is known of a sample. In the sample's own unit, but count and median_coverage. Intervals
 * assume independent values; that of the mean also that the mean is about normally distributed.
 * A sample of one: deviation 0, and every figure, the ends of the intervals included, is its value
 * (nothing is known of its spread; look at count before believing them).
 */
struct duet_summary {
    size_t count;
    double mean;
    double median;
    double deviation; /* standard deviation, divisor count - 1 */
    double minimum, maximum;
    double quartile1, quartile3;
    double mean_low, mean_high;     /* 95 % confidence interval of the mean (Student's t) */
    double median_low, median_high; /* the same of the median: two of the values, see below */
    double median_coverage; /* probability that it holds the median: at least 0.95, less below 6
                               values, where it is the whole range */
};

/*
 * Summarises `count` values, in any order, left as they are. Sums are compensated, so that many
 * close values lose nothing. Errors: DUET_EINVAL (no value, or one not finite: the message says
 * which), DUET_ENOMEM; *out is then unchanged.
 *
 * The median's interval is the pair (l-th smallest, l-th largest) with the greatest l for which the
 * binomial distribution gives at least 95 % (Hahn, Meeker, Statistical Intervals, section 5.2).
 */
DUET_MUST_CHECK int duet_summarise(const double *values, size_t count, struct duet_summary *out,
                                   struct duet_message *message);

/*
 * The p-quantile of `count` >= 1 ascending values, 0 <= p <= 1: type 7 of Hyndman and Fan (The
 * American Statistician 50(4), 1996), linear between the values at (count - 1) p, as R and NumPy
 * do by default.
 */
double duet_quantile(const double *ascending, size_t count, double p);

/*
 * 95 % interval of the ratio of two medians (first / second): percentile bootstrap with `resamples`
 * resamples of both samples (Efron, Tibshirani, An Introduction to the Bootstrap, chapter 13). The
 * same values and the same seed give the same interval. A sample of one value is taken for exact;
 * two of them give an interval without width. Errors: DUET_EINVAL (no value, one that is not
 * finite or, of the second, not positive; no resample), DUET_ENOMEM; outputs are then unchanged.
 */
DUET_MUST_CHECK int duet_ratio_interval(const double *first, size_t first_count,
                                        const double *second, size_t second_count, size_t resamples,
                                        uint64_t seed, double *low, double *high,
                                        struct duet_message *message);

/*
 * Pairs of `count` things that `second` puts in order, and those of them that `first` puts in the
 * same order: the figures behind Kendall's tau, which is 2 right / pairs - 1. Two things whose
 * second values differ by no more than the sum of their `widths` (>= 0; NULL: none) are no pair;
 * a pair that first cannot tell apart is not right.
 */
void duet_rank_pairs(const double *first, const double *second, const double *widths, size_t count,
                     size_t *pairs, size_t *right);

/*
 * The p-quantile of Student's t distribution with `freedom` > 0 degrees of freedom, 0 < p < 1:
 * bisection of its distribution function down to neighbouring numbers. Relative error below 10^-9
 * for up to 10^6 degrees of freedom and p within [10^-6, 1 - 10^-6]; NAN for values that make no
 * sense. To be called from one thread at a time (lgamma).
 */
double duet_student_quantile(double p, double freedom);

/*
 * The regularised incomplete beta function I_x(a, b), a, b > 0, 0 <= x <= 1, by its continued
 * fraction (NIST Digital Library of Mathematical Functions, 8.17.22, with 8.17.4). NAN for values
 * that make no sense.
 */
double duet_incomplete_beta(double a, double b, double x);

#endif
