/* SPDX-License-Identifier: Apache-2.0 */
/* Finds executions that tell nothing of a kernel. */
#include <math.h>
#include <string.h>

#include "calibrate/fit.h"
#include "base/stats.h"

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
