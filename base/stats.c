/* SPDX-License-Identifier: Apache-2.0 */
/* Statistics of repeated measurements. */
#include "base/stats.h"

#include <float.h>
#include <stdlib.h>

#include <glib.h>

static const double confidence = 0.95;

/* ------------------------------------------------------------------------------------------- */
/* Distributions                                                                                */

/* Away from zero: the modified Lentz algorithm divides by what this returns. */
static double not_zero(double x)
{
    return fabs(x) < DBL_MIN ? DBL_MIN : x;
}

/* The continued fraction of I_x(a, b), evaluated by the modified Lentz algorithm; x small. */
static double beta_fraction(double a, double b, double x)
{
    /* Converges in O(sqrt(max(a, b))) steps for x < (a + 1) / (a + b + 2). */
    const int steps = 10000;
    double c = 1, d = 1 / not_zero(1 - (a + b) * x / (a + 1)), h = d;
    for (int m = 1; m <= steps; m++) {
        double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
        double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
        d = 1 / not_zero(1 + even * d);
        c = not_zero(1 + even / c);
        h *= d * c;
        d = 1 / not_zero(1 + odd * d);
        c = not_zero(1 + odd / c);
        h *= d * c;
        if (fabs(d * c - 1) < DBL_EPSILON)
            break;
    }
    return h;
}

/*
 * The regularised incomplete beta function I_x(a, b), a, b > 0, 0 <= x <= 1, by its continued
 * fraction (NIST Digital Library of Mathematical Functions, 8.17.22, with 8.17.4), from x and
 * y = 1 - x, each given because the other cannot hold its small digits.
 */
static double incomplete_beta(double a, double b, double x, double y)
{
    if (x <= 0 || y <= 0)
        return x <= 0 ? 0 : 1;
    int sign; /* lgamma's is a variable that all threads share */
    double front = exp(lgamma_r(a + b, &sign) - lgamma_r(a, &sign) - lgamma_r(b, &sign) +
                       a * log(x) + b * log(y));
    if (x < (a + 1) / (a + b + 2))
        return front * beta_fraction(a, b, x) / a;
    return 1 - front * beta_fraction(b, a, y) / b;
}

/* P(T > t) for t >= 0: half of I_x(f / 2, 1 / 2) at x = f / (f + t^2). */
static double student_tail(double t, double freedom)
{
    double square = t * t;
    return incomplete_beta(freedom / 2, 0.5, freedom / (freedom + square),
                           square / (freedom + square)) /
           2;
}

double duet__student_quantile(double p, double freedom)
{
    if (!(p > 0 && p < 1) || !(freedom > 0) || !isfinite(freedom))
        return NAN;
    double tail = p < 0.5 ? p : 1 - p, low = 0, high = 1;
    if (tail >= 0.5)
        return 0;
    while (student_tail(high, freedom) > tail && high < DBL_MAX / 2)
        high *= 2;
    for (;;) {
        double middle = low + (high - low) / 2;
        if (middle <= low || middle >= high)
            break;
        if (student_tail(middle, freedom) > tail)
            low = middle;
        else
            high = middle;
    }
    return p < 0.5 ? -high : high;
}

double duet__f_tail(double f, double above, double below)
{
    const double whole = below + above * f;
    return incomplete_beta(below / 2, above / 2, below / whole, above * f / whole);
}

/* P(B <= k), B binomial with n trials of probability 1/2, 0 <= k < n. */
static double coin_flips(size_t n, size_t k)
{
    return incomplete_beta((double)(n - k), (double)k + 1, 0.5, 0.5);
}

/* ------------------------------------------------------------------------------------------- */
/* Samples                                                                                      */

static int compare_values(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

void duet__sort(double *values, size_t count)
{
    if (count)
        qsort(values, count, sizeof *values, compare_values);
}

/* A sum with Neumaier's compensation. */
struct sum {
    double value, rest;
};

static void add(struct sum *sum, double x)
{
    double next = sum->value + x;
    sum->rest += fabs(sum->value) >= fabs(x) ? (sum->value - next) + x : (x - next) + sum->value;
    sum->value = next;
}

double duet__quantile(const double *ascending, size_t count, double p)
{
    double position = (double)(count - 1) * p;
    size_t below = (size_t)position;
    if (below + 1 >= count)
        return ascending[count - 1];
    double fraction = position - (double)below;
    return ascending[below] + fraction * (ascending[below + 1] - ascending[below]);
}

void duet__predictive(const double *ascending, size_t count, double *low, double *high)
{
    const double at = fmax(0.05 * (double)(count + 1) - 1, 0);
    *low = duet__quantile(ascending, count, count > 1 ? at / (double)(count - 1) : 0);
    *high = duet__quantile(ascending, count, count > 1 ? 1 - at / (double)(count - 1) : 0);
}

double duet__median(double *values, size_t count)
{
    duet__sort(values, count);
    return count ? duet__quantile(values, count, 0.5) : 0;
}

/* Mean, deviation and the mean's interval. */
static void summarise_mean(const double *values, size_t count, struct duet__summary *out)
{
    struct sum sum = {0, 0}, squares = {0, 0};
    for (size_t i = 0; i < count; i++)
        add(&sum, values[i]);
    out->mean = (sum.value + sum.rest) / (double)count;
    out->mean_low = out->mean_high = out->mean;
    if (count < 2)
        return;
    for (size_t i = 0; i < count; i++)
        add(&squares, (values[i] - out->mean) * (values[i] - out->mean));
    out->deviation = sqrt((squares.value + squares.rest) / (double)(count - 1));
    double half = duet__student_quantile((1 + confidence) / 2, (double)(count - 1)) *
                  out->deviation / sqrt((double)count);
    out->mean_low = out->mean - half;
    out->mean_high = out->mean + half;
}

/* The median's interval: the greatest rank whose two tails together stay below 5 %. */
static void summarise_median(const double *ascending, size_t count, struct duet__summary *out)
{
    /* coin_flips(rank - 1) is the probability that fewer than `rank` values lie below. */
    size_t low = 1, high = (count + 1) / 2; /* ranks, from 1: `low` will do, or nothing does */
    while (low < high) {
        size_t middle = low + (high - low + 1) / 2;
        if (2 * coin_flips(count, middle - 1) <= 1 - confidence)
            low = middle;
        else
            high = middle - 1;
    }
    out->median_low = ascending[low - 1];
    out->median_high = ascending[count - low];
}

/* ------------------------------------------------------------------------------------------- */
/* Clusters                                                                                     */

/* A value that counts as so many. */
struct weighted {
    double value, weight;
};

static int compare_weighted(const void *left, const void *right)
{
    return compare_values(&((const struct weighted *)left)->value,
                          &((const struct weighted *)right)->value);
}

/* Returns the number of values that a cluster of `size` counts as, if it may be `most` at most. */
static double weight_of(size_t size, double most)
{
    return fmin(1, most / (double)size);
}

/* Returns the most values that a cluster may count as: the lower median of the clusters' sizes. */
static double most_of(const size_t *sizes, size_t cluster_count)
{
    double *sorted = g_new(double, cluster_count + 1), most;
    for (size_t i = 0; i < cluster_count; i++)
        sorted[i] = (double)sizes[i];
    sorted[cluster_count] = 1; /* unused; none is larger */
    duet__sort(sorted, cluster_count);
    most = sorted[cluster_count ? (cluster_count - 1) / 2 : 0];
    g_free(sorted);
    return most;
}

/* The values with their weights, ascending. Owned by the caller. */
static struct weighted *weigh(const double *values, size_t count, const size_t *sizes,
                              size_t cluster_count, double most)
{
    struct weighted *all = g_new(struct weighted, count);
    size_t at = 0;
    for (size_t i = 0; i < cluster_count; i++)
        for (size_t end = at + sizes[i]; at < end; at++)
            all[at] = (struct weighted){values[at], weight_of(sizes[i], most)};
    for (; at < count; at++)
        all[at] = (struct weighted){values[at], 1};
    qsort(all, count, sizeof *all, compare_weighted);
    return all;
}

/* Returns a quantile as duet__quantile does: linear between the middles of the weights. */
static double weighted_quantile(const struct weighted *ascending, size_t count, double p)
{
    double middle = 0, total = 0;
    for (size_t i = 1; i < count; i++)
        total += (ascending[i - 1].weight + ascending[i].weight) / 2;
    for (size_t i = 1; i < count; i++) {
        double step = (ascending[i - 1].weight + ascending[i].weight) / 2,
               left = total * p - middle;
        if (left < step)
            return ascending[i - 1].value +
                   left / step * (ascending[i].value - ascending[i - 1].value);
        middle += step;
    }
    return ascending[count - 1].value;
}

/* Standard error of the part of all weights that lies below the median. */
static double cluster_error(const double *values, const size_t *sizes, size_t cluster_count,
                            double most, double median)
{
    double below = 0, equal = 0, all = 0, squares = 0;
    for (size_t i = 0, at = 0; i < cluster_count; i++) {
        double weight = weight_of(sizes[i], most);
        all += weight * (double)sizes[i];
        for (size_t end = at + sizes[i]; at < end; at++) {
            below += values[at] < median ? weight : 0;
            equal += values[at] == median ? weight : 0;
        }
    }
    double share = equal > 0 ? (all / 2 - below) / equal : 0;
    for (size_t i = 0, at = 0; i < cluster_count; i++) {
        double excess = -(double)sizes[i] / 2;
        for (size_t end = at + sizes[i]; at < end; at++)
            excess += values[at] < median ? 1 : values[at] == median ? share : 0;
        excess *= weight_of(sizes[i], most);
        squares += excess * excess;
    }
    return sqrt(squares * (double)cluster_count / (double)(cluster_count - 1)) / all;
}

/* Makes the median's interval as wide as differences between clusters make it. */
static void widen_median(const struct weighted *ascending, double error, size_t cluster_count,
                         struct duet__summary *out)
{
    double t = duet__student_quantile((1 + confidence) / 2, (double)(cluster_count - 1));
    double half = fmin(t * error, 0.5);
    out->median_low = fmin(out->median_low, weighted_quantile(ascending, out->count, 0.5 - half));
    out->median_high = fmax(out->median_high, weighted_quantile(ascending, out->count, 0.5 + half));
}

struct duet__summary duet__summarise(const double *values, size_t count)
{
    return duet__summarise_clusters(values, count, NULL, 0);
}

struct duet__summary duet__summarise_clusters(const double *values, size_t count,
                                              const size_t *sizes, size_t cluster_count)
{
    g_autofree double *ascending = g_memdup2(values, count * sizeof *values);
    struct duet__summary out = {.count = count};
    for (size_t i = 0; i < count; i++)
        if (!isfinite(values[i]))
            out.count = 0;
    if (!out.count)
        return out;
    double most = most_of(sizes, cluster_count);
    g_autofree struct weighted *weighted = weigh(values, count, sizes, cluster_count, most);
    duet__sort(ascending, count);
    out.holds = (cluster_count ? cluster_count : count) >= DUET_INTERVAL_HOLDS;
    out.median = weighted_quantile(weighted, count, 0.5);
    out.minimum = ascending[0];
    out.quartile1 = weighted_quantile(weighted, count, 0.25);
    out.quartile3 = weighted_quantile(weighted, count, 0.75);
    summarise_mean(ascending, count, &out);
    summarise_median(ascending, count, &out);
    if (cluster_count > 1)
        widen_median(weighted, cluster_error(values, sizes, cluster_count, most, out.median),
                     cluster_count, &out);
    return out;
}

/* ------------------------------------------------------------------------------------------- */
/* Pairs                                                                                        */

static int compare_sizes(const void *left, const void *right)
{
    const double a = fabs(*(const double *)left), b = fabs(*(const double *)right);
    return (a > b) - (a < b);
}

/* Returns the part of all choices among `count` ranks whose sum is at most `most`. */
static double sums_below(const size_t *ranks, size_t count, size_t whole, size_t most)
{
    double *parts = g_new0(double, whole + 1); /* of choices with each sum */
    double below = 0;
    parts[0] = 1;
    for (size_t i = 0; i < count; i++)
        for (size_t sum = whole + 1; sum-- > 0;)
            parts[sum] = (parts[sum] + (sum >= ranks[i] ? parts[sum - ranks[i]] : 0)) / 2;
    for (size_t sum = 0; sum <= most; sum++)
        below += parts[sum];
    g_free(parts);
    return below;
}

double duet__wilcoxon(const double *differences, size_t count)
{
    static const double rounding = 1e-12;
    enum { EXACT = 50 };
    double *sorted = g_new(double, count + 1);
    size_t *ranks = g_new(size_t, count + 1); /* twice as large: shared ones are halves */
    size_t known = 0, above = 0, whole;
    double squares = 0, p;
    for (size_t i = 0; i < count; i++)
        if (fabs(differences[i]) > rounding)
            sorted[known++] = differences[i];
    qsort(sorted, known, sizeof *sorted, compare_sizes);
    for (size_t i = 0, next; i < known; i = next) {
        for (next = i + 1; next < known && fabs(sorted[next]) - fabs(sorted[next - 1]) <= rounding;)
            next++;
        for (size_t k = i; k < next; k++) {
            ranks[k] = i + 1 + next;
            above += sorted[k] > 0 ? ranks[k] : 0;
            squares += (double)(ranks[k] * ranks[k]);
        }
    }
    whole = known * (known + 1);
    above = MIN(above, whole - above);
    p = known <= EXACT
            ? 2 * sums_below(ranks, known, whole, above)
            : erfc(fmax(0, (double)whole / 2 - (double)above - 1) / sqrt(squares / 4) / sqrt(2));
    g_free(sorted);
    g_free(ranks);
    return fmin(1, p);
}

void duet__holm(double *p, size_t count)
{
    double *raw = g_memdup2(p, count * sizeof *p), *steps = g_new0(double, count + 1);
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < count; k++)
            steps[i] += raw[k] >= raw[i] ? raw[i] : 0;
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < count; k++) /* the largest of all steps up to its own */
            p[i] = raw[k] <= raw[i] ? fmax(p[i], fmin(1, steps[k])) : p[i];
    g_free(raw);
    g_free(steps);
}

/* ------------------------------------------------------------------------------------------- */
/* Two samples                                                                                  */

void duet__ratio_interval(const struct duet__summary *first, const struct duet__summary *second,
                          double *low, double *high)
{
    *low = *high = NAN;
    if (!(first->median_low > 0) || !(second->median_low > 0))
        return;
    double ratio = first->median / second->median;
    double below =
        hypot(log(first->median / first->median_low), log(second->median_high / second->median));
    double above =
        hypot(log(first->median_high / first->median), log(second->median / second->median_low));
    *low = ratio * exp(-below);
    *high = ratio * exp(above);
}
