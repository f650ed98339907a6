/* SPDX-License-Identifier: Apache-2.0 */
/* Fits times that grow with the missing part of data, robustly; finds what tells nothing. */
#include "calibrate/fit.h"

#include <math.h>
#include <string.h>

#include <glib.h>

#include "base/stats.h"

enum {
    ROUNDS = 4,       /* with Huber's weights: each changes the result ten times less */
    FIT_ROWS = 10000, /* most rows for the coefficients: 5 % of noise then leaves 0.05 %; the sum of
                         times is of all rows */
};

static const double HUBER = 2;           /* deviations beyond which a row counts less */
static const double LEAST_SPREAD = 1e-3; /* relative, of times: smaller ones are of clocks and
                                            rounding */
static const double LEAST_BASE = 0.01;   /* part of the mean: some time is left without any miss */
static const double TO_DEVIATION = 1.4826; /* deviation of a normal distribution by its MAD */

/* Expected time to divide by, not so small that a row outweighs all others. */
static double scale_of(const struct duet__fit_data *data, const struct duet__fit *fit, size_t row,
                       double unit_s)
{
    return fmax(duet__fit_seconds(fit, data->missing[row]), 0.01 * unit_s);
}

/* Median over the used rows of their relative errors, or, without a fit, of their times. */
static double median_row(const struct duet__fit_data *data, const struct duet__fit *fit,
                         double unit_s)
{
    double *values = g_new(double, data->count + 1), median;
    size_t count = 0;

    for (size_t i = 0; i < data->count; i++)
        if (data->used[i])
            values[count++] = fit ? fabs(data->seconds[i] / scale_of(data, fit, i, unit_s) - 1)
                                  : data->seconds[i];
    median = duet__rough_median(values, count);
    g_free(values);
    return median;
}

/* Minimises c' G c / 2 - r' c over c >= 0, with G = {{g[0], g[1]}, {g[1], g[2]}} positive definite:
 * an unknown that would be negative is 0. */
static void solve(const double g[3], const double r[2], double c[2])
{
    double determinant = g[0] * g[2] - g[1] * g[1];
    c[0] = (g[2] * r[0] - g[1] * r[1]) / determinant;
    c[1] = (g[0] * r[1] - g[1] * r[0]) / determinant;
    if (c[1] < 0) {
        c[0] = r[0] / g[0];
        c[1] = 0;
    } else if (c[0] < 0) {
        c[0] = 0;
        c[1] = r[1] / g[2];
    }
}

/* One fit of `used` rows, in units of `unit_s`: each divided by the time that `last` expects, which
 * errs by `spread`; last NULL: by its own time. */
static void fit_once(const struct duet__fit_data *data, size_t used, double unit_s, double spread,
                     const struct duet__fit *last, struct duet__fit *out)
{
    size_t step = used / FIT_ROWS + 1, met = 0;
    /* the base has no prior: just enough to make the equations definite */
    double prior = spread * spread / data->spread / data->spread;
    double g[3] = {1e-12, 0, prior}, r[2] = {0, prior * data->prior_s / unit_s}, c[2];
    for (size_t i = 0; i < data->count; i++) {
        double seconds = data->seconds[i], scale = seconds, weight = 1;
        if (!data->used[i] || met++ % step)
            continue;
        if (last) {
            scale = scale_of(data, last, i, unit_s);
            weight = fmin(HUBER * spread / fabs(seconds / scale - 1), 1);
        }
        double base = unit_s / scale, memory = data->flat ? 0 : base * data->missing[i];
        g[0] += weight * base * base;
        g[1] += weight * base * memory;
        g[2] += weight * memory * memory;
        r[0] += weight * base * seconds / scale;
        r[1] += weight * memory * seconds / scale;
    }
    solve(g, r, c);
    out->base_s = c[0] * unit_s;
    out->memory_s = data->flat || c[1] < 1e-12 ? 0 : c[1] * unit_s; /* the rest is rounding */
}

/* Scales the fit, so that expected times add up to `measured`. */
static void keep_sum(const struct duet__fit_data *data, size_t used, double measured,
                     struct duet__fit *fit)
{
    double expected = 0;
    fit->base_s = fmax(fit->base_s, LEAST_BASE * measured / (double)used);
    for (size_t i = 0; i < data->count; i++)
        if (data->used[i])
            expected += duet__fit_seconds(fit, data->missing[i]);
    /* stalls are in proportion to time, so all parts of it grow by one factor */
    fit->base_s *= measured / expected;
    fit->memory_s *= measured / expected;
}

void duet__fit(const struct duet__fit_data *data, struct duet__fit *out)
{
    double measured = 0, unit_s;
    size_t used = 0;
    *out = (struct duet__fit){0};
    for (size_t i = 0; i < data->count; i++) {
        used += data->used[i];
        measured += data->used[i] ? data->seconds[i] : 0;
    }
    if (used == 0)
        return;
    unit_s = median_row(data, NULL, 0);
    fit_once(data, used, unit_s, 0.1, NULL, out);
    for (unsigned round = 0; round < ROUNDS; round++) {
        const struct duet__fit last = *out;
        double spread = fmax(TO_DEVIATION * median_row(data, &last, unit_s), LEAST_SPREAD);
        fit_once(data, used, unit_s, spread, &last, out);
    }
    keep_sum(data, used, measured, out);
}

/* ------------------------------------------------------------------------------------------- */
/* Outliers                                                                                     */

enum { ROUGH = 2000 };

static const double MADS = 8, AT_LEAST = 1.5, ALWAYS = 3; /* see fit.h */
static const double STALL_S = 200e-6, STALLS = 0.05;      /* longest stall, share of all time */
static const double MOST = 0.25;                          /* largest share of outliers */

double duet__rough_median(const double *values, size_t count)
{
    double some[ROUGH];
    size_t step = count / ROUGH + 1, kept = 0;
    for (size_t i = 0; i < count && kept < ROUGH; i += step)
        some[kept++] = values[i];
    return duet__median(some, kept);
}

/* Seconds lost if this is a stall rather than an outlier; else 0. */
static double stall_seconds(double measured, double expected, double usual)
{
    double lost = measured - usual * expected;
    return lost > 0 && lost <= STALL_S ? lost : 0;
}

size_t duet__outliers(const double *measured, const double *expected, size_t count, bool *rejected)
{
    double logs[ROUGH] = {0}, stalls = 0, time = 0;
    size_t step = count / ROUGH + 1, some = 0, marked = 0;
    for (size_t i = 0; i < count && some < ROUGH; i += step)
        logs[some++] = log(measured[i] / expected[i]);
    double median = duet__median(logs, some), usual = exp(median);
    for (size_t i = 0; i < some; i++)
        logs[i] = fabs(logs[i] - median);
    double limit = fmax(MADS * duet__median(logs, some), log(AT_LEAST));
    double above = fmin(limit, log(ALWAYS));
    for (size_t i = 0; i < count; i++) {
        double distance = log(measured[i] / expected[i]) - median;
        rejected[i] = distance > above || distance < -limit;
        time += expected[i];
        if (rejected[i])
            stalls += stall_seconds(measured[i], expected[i], usual);
    }
    bool ordinary = stalls <= STALLS * time;
    for (size_t i = 0; i < count; i++) {
        rejected[i] =
            rejected[i] && !(ordinary && stall_seconds(measured[i], expected[i], usual) > 0);
        marked += rejected[i];
    }
    if ((double)marked <= MOST * (double)count)
        return marked;
    memset(rejected, 0, count * sizeof *rejected);
    return 0;
}
