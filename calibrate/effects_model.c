/* SPDX-License-Identifier: Apache-2.0 */
/* What one kernel takes: misses from executions alone, neighbours from those that were not. */
#include <math.h>
#include <string.h>

#include <glib.h>

#include "calibrate/kernel_models.h"

enum {
    LEAST_ROWS = 10, /* for more than a mean: with few of them, the prior has more to say */
    LEAST_MEAN = 5,  /* for a ratio of two conditions */
    ROUNDS = 3,      /* of rejection: the second sees what the outliers of the first had hidden */
    STEPS = 30,      /* towards a busy ratio: a few are enough, and it ends in any case */
};

static const double BUSY_LOW = 0.8, BUSY_HIGH = 3;
/* relative to the median time: what misses cost that the data says nothing of. Data from the shared
   cache costs less than from memory, so when both only come together memory gets the larger part */
static const double SPREAD_NEAR = 0.05, SPREAD_FAR = 0.15;

/* ------------------------------------------------------------------------------------------- */
/* Forward                                                                                      */

/* Alone, and how much of that is waiting for memory. */
static double alone_s(const struct duet__kernel_fit *kernel, const struct duet__rows *rows,
                      size_t row, double *memory_s)
{
    const double *shares = rows->shares + row * rows->columns;
    double far = 0;
    for (unsigned i = kernel->columns / 2; i < kernel->columns; i++)
        far += kernel->fit.column_s[i] * shares[i];
    *memory_s = far;
    return duet__fit_seconds(&kernel->fit, shares, kernel->columns);
}

/*
 * Beside `others` executions like this one: as many times as long as the busy ratio says, but no
 * less than it takes all of them to get their bytes if they wait for memory at all. That is what
 * duet__rates comes to when all executions are alike.
 */
static double beside(const struct duet__kernel_fit *kernel, const struct duet__row *row,
                     double own_s, double memory_s, double others)
{
    double share = row->workers > 1 ? others / (row->workers - 1) : 0;
    double seconds = own_s * (1 + (kernel->busy_ratio - 1) * share);
    if (kernel->bandwidth_Bps > 0 && memory_s > 0)
        seconds = fmax(seconds, (others + 1) * row->from_memory / kernel->bandwidth_Bps);
    return seconds;
}

double duet__kernel_seconds(const struct duet__kernel_fit *kernel, const struct duet__rows *rows,
                            size_t row)
{
    double memory_s, own_s = alone_s(kernel, rows, row, &memory_s);
    const struct duet__row *r = &rows->list[row];
    double fewer = floor(r->others), rest = r->others - fewer;
    double seconds = beside(kernel, r, own_s, memory_s, fewer);
    /* a part of the time there was one more: what is done in a second is the mean */
    if (rest > 0)
        seconds = 1 / ((1 - rest) / seconds + rest / beside(kernel, r, own_s, memory_s, fewer + 1));
    return seconds;
}

/* ------------------------------------------------------------------------------------------- */
/* Backward                                                                                     */

/* What is at work in one fit. */
struct work {
    const struct duet__rows *rows;
    const bool *used; /* that may be used at all */
    bool *kept;       /* of these, no outliers */
    bool *fitted;     /* of these, what base and misses come from */
    double *seconds;  /* measured, without what the bandwidth of memory made of it */
    double *expected;
    bool all; /* fitted are those that were not alone, too */
};

static size_t count_true(const bool *marks, size_t count)
{
    size_t sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += marks[i];
    return sum;
}

/* Chooses the rows for base and misses. Returns how many. */
static size_t choose(struct work *work)
{
    const struct duet__rows *rows = work->rows;
    size_t kept = count_true(work->kept, rows->count), alone = 0;
    for (size_t i = 0; i < rows->count; i++) {
        work->fitted[i] = work->kept[i] && duet__row_alone(&rows->list[i]);
        alone += work->fitted[i];
    }
    work->all = alone == 0 || (alone < LEAST_MEAN && kept >= LEAST_ROWS);
    if (!work->all)
        return alone;
    memcpy(work->fitted, work->kept, rows->count * sizeof *work->kept);
    return kept;
}

/* How much the busy rows' expected times with that ratio are beyond the measured ones. */
static double beyond(const struct work *work, struct duet__kernel_fit *kernel, double ratio)
{
    const struct duet__rows *rows = work->rows;
    double sum = 0;
    kernel->busy_ratio = ratio;
    for (size_t i = 0; i < rows->count; i++)
        if (work->kept[i] && duet__row_busy(&rows->list[i]))
            sum += duet__kernel_seconds(kernel, rows, i) - rows->seconds[i];
    return sum;
}

/*
 * The ratio by which the busy rows' expected times add up to the measured ones: by false position,
 * halving what stays (the Illinois method; Dowell, Jarratt, BIT 11, 1971).
 */
static double busy_ratio(const struct work *work, struct duet__kernel_fit kernel)
{
    double low = BUSY_LOW, high = BUSY_HIGH;
    size_t busy = 0;
    for (size_t i = 0; i < work->rows->count; i++)
        busy += work->kept[i] && duet__row_busy(&work->rows->list[i]);
    if (work->all || busy < LEAST_MEAN)
        return 1;
    double below = beyond(work, &kernel, low), above = beyond(work, &kernel, high);
    /* that neighbours make a kernel so much faster is not what has happened: the model of caches or
       of the bandwidth is wrong here, and a ratio would carry that over to other circumstances */
    if (below >= 0)
        return 1;
    if (above <= 0)
        return high;
    double ratio = low, last = high;
    for (int step = 0, side = 0; step < STEPS && fabs(ratio - last) > 1e-9; step++) {
        last = ratio;
        ratio = high - above * (high - low) / (above - below);
        double value = beyond(work, &kernel, ratio);
        if (value > 0) {
            high = ratio;
            above = value;
            below /= side > 0 ? 2 : 1;
            side = 1;
        } else {
            low = ratio;
            below = value;
            above /= side < 0 ? 2 : 1;
            side = -1;
        }
    }
    return ratio;
}

static void fit_once(struct work *work, struct duet__kernel_fit *kernel)
{
    const struct duet__rows *rows = work->rows;
    double prior[DUET__FIT_COLUMNS] = {0}, spread[DUET__FIT_COLUMNS];
    unsigned half = rows->columns / 2;
    kernel->columns = choose(work) >= LEAST_ROWS ? rows->columns : 0;
    for (unsigned i = 0; i < half; i++) {
        spread[i] = SPREAD_NEAR;
        spread[half + i] = SPREAD_FAR;
        if (kernel->bandwidth_Bps > 0)
            prior[half + i] = rows->operand_bytes[i] / kernel->bandwidth_Bps;
    }
    duet__fit(&(struct duet__fit_data){.count = rows->count,
                                       .columns = kernel->columns,
                                       .shares = rows->shares,
                                       .seconds = work->seconds,
                                       .used = work->fitted,
                                       .prior_s = prior,
                                       .spread = spread},
              &kernel->fit);
    kernel->busy_ratio = 1;
    kernel->busy_ratio = busy_ratio(work, *kernel);
}

/* Expected times; and measured ones as they would be if each had memory for itself. */
static void expect(struct work *work, const struct duet__kernel_fit *kernel)
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

static struct work begin(const struct duet__rows *rows, const bool *used)
{
    size_t count = rows->count + 1;
    struct work work = {.rows = rows,
                        .used = used,
                        .kept = g_new0(bool, count),
                        .fitted = g_new0(bool, count),
                        .seconds = g_new0(double, count),
                        .expected = g_new0(double, count)};
    for (size_t i = 0; i < rows->count; i++) {
        work.kept[i] = !used || used[i];
        work.seconds[i] = rows->seconds[i];
    }
    return work;
}

static void reject(struct work *work, bool *rejected)
{
    const struct duet__rows *rows = work->rows;
    duet__outliers(rows->seconds, work->expected, work->used, rows->count, rejected);
    for (size_t i = 0; i < rows->count; i++)
        work->kept[i] = (!work->used || work->used[i]) && !rejected[i];
}

void duet__kernel_fit(const struct duet__rows *rows, const bool *used, double bandwidth_Bps,
                      struct duet__kernel_fit *out, bool *rejected)
{
    struct work work = begin(rows, used);
    /* without outliers only what the bandwidth makes of times changes with a round */
    int rounds = rejected ? ROUNDS : 1 + (bandwidth_Bps > 0);
    *out = (struct duet__kernel_fit){.busy_ratio = 1, .bandwidth_Bps = bandwidth_Bps};
    for (int round = 0; round < rounds; round++) {
        fit_once(&work, out);
        expect(&work, out);
        if (rejected)
            reject(&work, rejected);
    }
    if (rejected)
        fit_once(&work, out);
    g_free(work.kept);
    g_free(work.fitted);
    g_free(work.seconds);
    g_free(work.expected);
}

static void fit(const struct duet__rows *rows, const bool *used, double bandwidth_Bps,
                union duet__parameters *out)
{
    duet__kernel_fit(rows, used, bandwidth_Bps, &out->effects, NULL);
}

static double predict(const union duet__parameters *parameters, const struct duet__rows *rows,
                      size_t row)
{
    return duet__kernel_seconds(&parameters->effects, rows, row);
}

const struct duet__kernel_model duet__effects_model = {
    .name = "effects",
    .description = "what each operand costs that is in no cache, neighbours, bandwidth: the one "
                   "that is written",
    .fit = fit,
    .predict = predict,
};
