/* SPDX-License-Identifier: Apache-2.0 */
/* Fits the times of one kernel: memory from executions alone, neighbours from the others. */
#include <math.h>
#include <string.h>

#include <glib.h>

#include "base/stats.h"
#include "calibrate/model.h"

/* ------------------------------------------------------------------------------------------- */
/* Fits times that grow with the missing part of data, robustly; finds what tells nothing. */

enum {
    FIT_ROUNDS = 4,   /* with Huber's weights: each changes the result a tenth as much as before */
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
static void fit_weighted(const struct duet__fit_data *data, size_t used, double unit_s,
                         double spread, const struct duet__fit *last, struct duet__fit *out)
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
    fit_weighted(data, used, unit_s, 0.1, NULL, out);
    for (unsigned round = 0; round < FIT_ROUNDS; round++) {
        const struct duet__fit last = *out;
        double spread = fmax(TO_DEVIATION * median_row(data, &last, unit_s), LEAST_SPREAD);
        fit_weighted(data, used, unit_s, spread, &last, out);
    }
    keep_sum(data, used, measured, out);
}

/* ------------------------------------------------------------------------------------------- */
/* Outliers                                                                                     */

enum { ROUGH = 2000 };

static const double MADS = 8, ALWAYS = 3; /* of duet__outliers: see model.h */
static const double STALLS = 0.05;        /* largest share of all time */
static const double MOST = 0.25;          /* largest share of outliers */

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
    return lost > 0 && lost <= DUET__STALL_S ? lost : 0;
}

size_t duet__outliers(const double *measured, const double *expected, size_t count, bool *rejected)
{
    double logs[ROUGH] = {0}, stalls = 0, time = 0;
    size_t step = count / ROUGH + 1, some = 0, marked = 0;
    for (size_t i = 0; i < count && some < ROUGH; i += step)
        logs[some++] = log(measured[i] / expected[i]);
    double median = duet__median(logs, some), usual = exp(median);
    size_t below = 0;
    for (size_t i = 0; i < some; i++)
        if (logs[i] < median)
            logs[below++] = median - logs[i];
    double limit = fmax(MADS * duet__median(logs, below), log(DUET__OUTLIER));
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

/* ------------------------------------------------------------------------------------------- */
/* Times of one kernel                                                                          */

enum {
    LEAST_ROWS = 10, /* for more than a mean; the prior weighs more with few rows */
    LEAST_MEAN = 5,  /* least rows for a ratio of two conditions */
    ROUNDS = 3,      /* of rejection: each finds outliers that others had hidden before */
    STEPS = 30,      /* most steps towards a busy ratio; a few are enough */
};

static const double BUSY_LOW = 0.8, BUSY_HIGH = 3;
/* deviation of memory's time from that by its bandwidth, relative to the median time */
static const double SPREAD = 0.15;

/* ------------------------------------------------------------------------------------------- */
/* Rows                                                                                         */

static void row_add(const struct duet__executions *executions, const struct duet__execution *e,
                    const double *missing, struct duet__rows *out)
{
    struct duet__row *row = &out->list[out->count];
    *row = (struct duet__row){.run = e->run, .others = e->others, .workers = e->workers};
    for (size_t i = e->first; i < e->first + e->operands; i++) {
        double bytes = (double)executions->operands[i].bytes;
        row->bytes += bytes;
        row->from_memory += bytes * missing[i];
    }
    out->missing[out->count] = row->bytes > 0 ? row->from_memory / row->bytes : 0;
    out->seconds[out->count++] = e->seconds;
    out->bytes += row->bytes;
}

void duet__rows_make(const struct duet__executions *executions, const struct duet__group *group,
                     const double *missing, size_t limit, struct duet__rows *out)
{
    size_t most = group->members->len;
    *out = (struct duet__rows){.seconds = g_new0(double, most + 1),
                               .missing = g_new0(double, most + 1),
                               .list = g_new0(struct duet__row, most + 1)};
    for (size_t i = 0; i < most; i++) {
        size_t index = g_array_index(group->members, size_t, i);
        const struct duet__execution *e = &executions->list[index];
        if (!limit || index - executions->runs[e->run].first < limit)
            row_add(executions, e, missing, out);
    }
    out->bytes /= (double)MAX(out->count, 1);
}

void duet__rows_fini(struct duet__rows *rows)
{
    g_free(rows->seconds);
    g_free(rows->missing);
    g_free(rows->list);
    *rows = (struct duet__rows){0};
}

/* ------------------------------------------------------------------------------------------- */
/* Forward                                                                                      */

/*
 * Time of a row beside `others` executions like it: the busy ratio times as long, but, if it waits
 * for memory at all, at least the time in which all get their bytes. duet__rates gives this if all
 * executions are alike.
 */
static double seconds_beside(const struct duet__kernel_fit *kernel, const struct duet__row *row,
                             double alone_s, bool waits, double others)
{
    double share = row->workers > 1 ? others / (row->workers - 1) : 0;
    double seconds = alone_s * (1 + (kernel->busy_ratio - 1) * share);
    if (kernel->bandwidth_Bps > 0 && waits)
        seconds = fmax(seconds, (others + 1) * row->from_memory / kernel->bandwidth_Bps);
    return seconds;
}

double duet__kernel_seconds(const struct duet__kernel_fit *kernel, const struct duet__rows *rows,
                            size_t row)
{
    const struct duet__row *r = &rows->list[row];
    double alone_s = duet__fit_seconds(&kernel->fit, rows->missing[row]), seconds;
    double fewer = floor(r->others), rest = r->others - fewer;
    bool waits = kernel->fit.memory_s * rows->missing[row] > 0;
    seconds = seconds_beside(kernel, r, alone_s, waits, fewer);
    /* one more computed for a part of the time: the rates are averaged */
    if (rest > 0)
        seconds = 1 / ((1 - rest) / seconds +
                       rest / seconds_beside(kernel, r, alone_s, waits, fewer + 1));
    return seconds;
}

/* ------------------------------------------------------------------------------------------- */
/* Backward                                                                                     */

/* State of one fit, by row. */
struct work {
    const struct duet__rows *rows;
    bool *kept;      /* used, and no outlier */
    bool *fitted;    /* rows of base and memory */
    double *seconds; /* measured, without the effect of shared bandwidth */
    double *expected;
    bool all;  /* rows beside others are fitted, too */
    bool wild; /* kept rows still have outliers */
};

/* Chooses the rows for base and memory. Returns their number. */
static size_t choose_rows(struct work *work)
{
    const struct duet__rows *rows = work->rows;
    size_t kept = 0, alone = 0;
    for (size_t i = 0; i < rows->count; i++) {
        work->fitted[i] = work->kept[i] && duet__row_alone(&rows->list[i]);
        alone += work->fitted[i];
        kept += work->kept[i];
    }
    work->all = alone == 0 || (alone < LEAST_MEAN && kept >= LEAST_ROWS);
    if (!work->all)
        return alone;
    memcpy(work->fitted, work->kept, rows->count * sizeof *work->kept);
    return kept;
}

/* Measured time of a row, while there are outliers at most that of the largest ratio: a stalled row
 * would otherwise make up for all others, which then would seem too short. */
static double capped_seconds(const struct work *work, const struct duet__kernel_fit *kernel,
                             size_t row)
{
    struct duet__kernel_fit most = *kernel;
    most.busy_ratio = BUSY_HIGH;
    return work->wild ? fmin(work->rows->seconds[row], duet__kernel_seconds(&most, work->rows, row))
                      : work->rows->seconds[row];
}

/* Excess of the busy rows' expected times, with that ratio, over the measured ones. */
static double busy_excess(const struct work *work, struct duet__kernel_fit *kernel, double ratio)
{
    const struct duet__rows *rows = work->rows;
    double sum = 0;
    kernel->busy_ratio = ratio;
    for (size_t i = 0; i < rows->count; i++)
        if (work->kept[i] && duet__row_busy(&rows->list[i]))
            sum += duet__kernel_seconds(kernel, rows, i) - capped_seconds(work, kernel, i);
    return sum;
}

/*
 * Sets the ratio with which the busy rows' expected times, which grow with it, add up to the
 * measured ones: by false position, halving the end that stays (the Illinois method; Dowell,
 * Jarratt, BIT 11, 1971).
 */
static void find_busy_ratio(const struct work *work, struct duet__kernel_fit *kernel)
{
    double low = BUSY_LOW, high = BUSY_HIGH, below, above, ratio = low, last = high;
    size_t busy = 0;
    kernel->busy_ratio = 1;
    for (size_t i = 0; i < work->rows->count; i++)
        busy += work->kept[i] && duet__row_busy(&work->rows->list[i]);
    if (work->all || busy < LEAST_MEAN)
        return;
    below = busy_excess(work, kernel, low);
    above = busy_excess(work, kernel, high);
    /* Neighbours cannot make a kernel so much faster: the model of caches or bandwidth is wrong
     * here, and a ratio would carry that over to other circumstances. */
    if (below >= 0 || above <= 0)
        ratio = last = below >= 0 ? 1 : high;
    for (int step = 0, side = 0; step < STEPS && fabs(ratio - last) > 1e-9; step++) {
        last = ratio;
        ratio = high - above * (high - low) / (above - below);
        double value = busy_excess(work, kernel, ratio);
        if (value > 0) {
            high = ratio;
            above = value;
            below /= side > 0 ? 2 : 1;
        } else {
            low = ratio;
            below = value;
            above /= side < 0 ? 2 : 1;
        }
        side = value > 0 ? 1 : -1;
    }
    kernel->busy_ratio = ratio;
}

static void fit_once(struct work *work, struct duet__kernel_fit *kernel)
{
    const struct duet__rows *rows = work->rows;
    struct duet__fit_data data = {.count = rows->count,
                                  .missing = rows->missing,
                                  .seconds = work->seconds,
                                  .used = work->fitted,
                                  .spread = SPREAD};
    data.flat = choose_rows(work) < LEAST_ROWS || !(rows->bytes > 0);
    if (kernel->bandwidth_Bps > 0)
        data.prior_s = rows->bytes / kernel->bandwidth_Bps;
    duet__fit(&data, &kernel->fit);
    find_busy_ratio(work, kernel);
}

/* Computes expected times, and measured ones as if each had memory for itself. */
static void compute_expected(struct work *work, const struct duet__kernel_fit *kernel)
{
    const struct duet__rows *rows = work->rows;
    struct duet__kernel_fit without = *kernel;
    without.bandwidth_Bps = 0;
    for (size_t i = 0; i < rows->count; i++) {
        work->expected[i] = duet__kernel_seconds(kernel, rows, i);
        work->seconds[i] = rows->seconds[i];
        if (kernel->bandwidth_Bps > 0)
            work->seconds[i] *= duet__kernel_seconds(&without, rows, i) / work->expected[i];
    }
}

void duet__kernel_fit(const struct duet__rows *rows, const bool *used, double bandwidth_Bps,
                      struct duet__kernel_fit *out, bool *rejected)
{
    bool *kept = g_new(bool, rows->count + 1), *fitted = g_new(bool, rows->count + 1);
    double *expected = g_new(double, rows->count + 1);
    double *seconds = g_memdup2(rows->seconds, (rows->count + 1) * sizeof *seconds);
    struct work work = {rows, kept, fitted, seconds, expected, false, false};
    /* without outliers only the bandwidth's effect on times changes with a round */
    int rounds = rejected ? ROUNDS : 1 + (bandwidth_Bps > 0);
    *out = (struct duet__kernel_fit){.busy_ratio = 1, .bandwidth_Bps = bandwidth_Bps};
    for (size_t i = 0; i < rows->count; i++)
        kept[i] = !used || used[i];
    for (int round = 0; round < rounds; round++) {
        work.wild = rejected && round == 0;
        fit_once(&work, out);
        compute_expected(&work, out);
        if (rejected)
            duet__outliers(rows->seconds, expected, rows->count, rejected);
        for (size_t i = 0; i < rows->count && rejected; i++)
            kept[i] = !rejected[i];
    }
    if (rejected)
        fit_once(&work, out);
    g_free(kept);
    g_free(fitted);
    g_free(expected);
    g_free(seconds);
}
