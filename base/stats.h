/* SPDX-License-Identifier: Apache-2.0 */
/* Statistics of repeated measurements: location, spread, quantiles and confidence intervals. */
#ifndef DUET_BASE_STATS_H
#define DUET_BASE_STATS_H

#include <math.h>
#include <stdbool.h>
#include <stddef.h>

/*
 * Figures of a sample, in its own unit. Intervals assume independent values (but see
 * duet__summarise_clusters); that of the mean also that the mean is about normally distributed. A
 * sample of one: deviation 0, and every figure, the ends of the intervals included, is its value
 * (nothing is known of its spread; look at count before believing them).
 */
struct duet__summary {
    size_t count;
    double mean;
    double median;
    double deviation; /* standard deviation, divisor count - 1 */
    double minimum;
    double quartile1, quartile3;
    double mean_low, mean_high; /* 95 % confidence interval of the mean (Student's t) */
    /* 95 % confidence interval of the median; below 6 values the whole range, which has less */
    double median_low, median_high;
    bool holds; /* there are enough values, or clusters, for the median's interval to have 95 % */
};

/*
 * Summarises `count` values, in any order, left as they are; count 0 where there are none, or not
 * all are finite: nothing is known of them then. Sums are compensated, so that many close values
 * lose nothing.
 *
 * The median's interval is the pair (l-th smallest, l-th largest) with the greatest l for which the
 * binomial distribution gives at least 95 % (Hahn, Meeker, Statistical Intervals, section 5.2).
 */
struct duet__summary duet__summarise(const double *values, size_t count);

/*
 * Summarises values that come in clusters: `sizes[i]` >= 1 of them from each of `cluster_count`,
 * those of a cluster one after another, `count` in all. Values of one cluster may have something in
 * common, as runs of one round have the state of the machine. With two clusters or more, the
 * median's interval is the one of Woodruff (Journal of the American Statistical Association
 * 47(260), 1952), or that of independent values where it reaches further. So that no cluster
 * outweighs the others, one that is larger than the lower median m of their sizes counts as m
 * values: each of its values then has the weight m / n_i, in all quantiles. With w_i <= m the
 * weight of cluster i, W that of all, and p_i the part of its n_i values that lies below the
 * median,
 *
 *     s^2 = k / (k - 1) * sum_i (w_i / W)^2 (p_i - 1/2)^2,    k clusters,
 *
 * and the interval reaches from the quantile at 1/2 - t s to that at 1/2 + t s, t the
 * 0.975-quantile of Student's distribution with k - 1 degrees of freedom; it is the whole range if
 * these are not between 0 and 1. Of values that equal the median, the part that makes 1/2 of W
 * counts as below. The mean's interval stays that of independent values. With one cluster, or none
 * where nothing is known of them (cluster_count 0), as duet__summarise. Whatever clusters differ
 * by, six of them hold the median in 95 % of all cases; where their values are alike, two do in 50
 * %, three in 75 %, four in 87 % and five in 94 %, since it may well lie beyond all of them:
 * `holds` says so.
 */
struct duet__summary duet__summarise_clusters(const double *values, size_t count,
                                              const size_t *sizes, size_t cluster_count);

/*
 * The p-quantile of `count` >= 1 ascending values, 0 <= p <= 1: type 7 of Hyndman and Fan (The
 * American Statistician 50(4), 1996), linear between the values at (count - 1) p, as R and NumPy
 * do by default.
 */
double duet__quantile(const double *ascending, size_t count, double p);

/* Values from which on duet__predictive has 90 %; simulations that an interval has if nobody says
   how many. */
enum { DUET_PREDICTIVE_LEAST = 19, DUET_PREDICTIVE_USUAL = 39 };

/*
 * Sets the ends of the interval in which another value lies in 90 of 100 cases, if it and the
 * `count` >= 1 ascending ones come from one distribution, whichever that is: they lie at
 * 0.05 (count + 1) from either end, as in type 6 of Hyndman and Fan (Hahn, Meeker, Statistical
 * Intervals, section 5.4). Of fewer than 19 values it is the whole range, in fewer cases.
 */
void duet__predictive(const double *ascending, size_t count, double *low, double *high);

/* Values, or clusters of them, from which on the interval of their median has about 95 %. */
enum { DUET_INTERVAL_HOLDS = 6 };

/* Runs from which on reports give an interval: of fewer, nothing is known of their spread. */
enum { DUET_INTERVAL_RUNS = 3 };

/* True if a sample has intervals: it is of several runs, which differ by more than rounding. */
static inline bool duet__spreads(const struct duet__summary *summary)
{
    return summary->count >= DUET_INTERVAL_RUNS && summary->deviation > 1e-9 * fabs(summary->mean);
}

/* Sorts values, ascending. */
void duet__sort(double *values, size_t count);

/* The median of values, which it sorts; 0 without any. */
double duet__median(double *values, size_t count);

/*
 * 95 % interval of the ratio of two medians (first / second) of samples that have nothing to do
 * with each other, from the intervals of both (G. Y. Zou, A. Donner, Statistics in Medicine 27(10),
 * 2008), on the logarithmic scale: the distances of their ends from the medians add up as the
 * sides of a right angle. NAN if not all of it is positive.
 */
void duet__ratio_interval(const struct duet__summary *first, const struct duet__summary *second,
                          double *low, double *high);

/*
 * The p-quantile of Student's t distribution with `freedom` > 0 degrees of freedom, 0 < p < 1:
 * bisection of its distribution function down to neighbouring numbers. Relative error below 10^-9
 * for up to 10^6 degrees of freedom and p within [10^-6, 1 - 10^-6]; NAN for values that make no
 * sense. To be called from one thread at a time (lgamma).
 */
double duet__student_quantile(double p, double freedom);

/*
 * Wilcoxon's signed-rank test that differences of `count` pairs are around 0 (Biometrics Bulletin
 * 1(6), 1945): returns the probability of ranks as one-sided as theirs by chance, counted on both
 * sides. Differences below 1e-12, which logarithms have by rounding, count as 0 and are left out;
 * those that differ by less share their ranks. Of up to 50 differences the distribution is exact,
 * that of all signs of these ranks; of more it is the normal one, with ties and continuity
 * corrected. Without any difference it is 1.
 */
double duet__wilcoxon(const double *differences, size_t count);

/*
 * Adjusts the probabilities of `count` tests that are made together, in place, by Holm's step-down
 * method (Scandinavian Journal of Statistics 6(2), 1979): one below 5 % is then significant at 5 %
 * for all of them together.
 */
void duet__holm(double *p, size_t count);

/* P(F > f) of Fisher's F distribution with `above` and `below` > 0 degrees of freedom, f >= 0. */
double duet__f_tail(double f, double above, double below);

#endif
