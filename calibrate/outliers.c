/* SPDX-License-Identifier: Apache-2.0 */
/* Which executions tell nothing of a kernel, and how the others are distributed. */
#include <math.h>
#include <string.h>

#include "calibrate/fit.h"
#include "validate/stats.h"

enum { ROUGH = 2000 };

static const double MADS = 8, AT_LEAST = 1.5, ALWAYS = 3; /* see fit.h */
static const double STALL_S = 200e-6, STALLS = 0.05;      /* longest one, share of all time */
static const double MOST = 0.25;                          /* share of outliers */

double duet__rough_median(const double *values, size_t count)
{
    double some[ROUGH];
    size_t step = count / ROUGH + 1, kept = 0;
    for (size_t i = 0; i < count && kept < ROUGH; i += step)
        some[kept++] = values[i];
    return duet__median(some, kept);
}

/* What was lost, if this is a stall rather than an outlier; else 0. */
static double stall(double measured, double expected, double usual)
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
            stalls += stall(measured[i], expected[i], usual);
    }
    bool ordinary = stalls <= STALLS * time;
    for (size_t i = 0; i < count; i++) {
        rejected[i] = rejected[i] && !(ordinary && stall(measured[i], expected[i], usual) > 0);
        marked += rejected[i];
    }
    if ((double)marked <= MOST * (double)count)
        return marked;
    memset(rejected, 0, count * sizeof *rejected);
    return 0;
}

/* The integral of the quantile function (type 7, as duet__quantile) from 0 to p. */
static double integral(const double *sorted, size_t count, double p)
{
    double place = p * (double)(count - 1), sum = 0;
    if (count == 1)
        return p * sorted[0];
    size_t whole = (size_t)place;
    for (size_t i = 0; i < whole; i++)
        sum += (sorted[i] + sorted[i + 1]) / 2;
    double rest = place - (double)whole;
    if (whole + 1 < count && rest > 0)
        sum += rest * (sorted[whole] + rest * (sorted[whole + 1] - sorted[whole]) / 2);
    return sum / (double)(count - 1);
}

void duet__quantiles(double *ratios, size_t count, double quantiles[DUET_QUANTILES])
{
    enum { LAST = DUET_QUANTILES - 1 };
    const double *levels = duet__quantile_levels;
    double mean = 0;
    duet__sort(ratios, count);
    for (unsigned i = 0; i <= LAST; i++)
        quantiles[i] = duet__quantile(ratios, count, levels[i]);
    /* a straight line from 0 to the 0.01 quantile, say, has the mean of its two ends */
    double below = integral(ratios, count, levels[1]) / levels[1];
    double beyond = (integral(ratios, count, 1) - integral(ratios, count, levels[LAST - 1])) /
                    (1 - levels[LAST - 1]);
    quantiles[0] = fmin(fmax(2 * below - quantiles[1], 0), quantiles[1]);
    quantiles[LAST] = fmax(2 * beyond - quantiles[LAST - 1], quantiles[LAST - 1]);
    for (unsigned i = 1; i <= LAST; i++)
        mean += (levels[i] - levels[i - 1]) * (quantiles[i] + quantiles[i - 1]) / 2;
    for (unsigned i = 0; i <= LAST; i++)
        quantiles[i] /= mean;
}
