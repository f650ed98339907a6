/* SPDX-License-Identifier: Apache-2.0 */
/* Robust fit of times that grow with misses. */
#include "calibrate/fit.h"

#include <float.h>
#include <math.h>

#include <glib.h>

enum {
    ROUNDS = 4, /* with Huber's weights: what they change falls by a factor of about ten in each */
    FIT_ROWS = 10000, /* coefficients come from at most: with 5 % of noise that leaves 0.05 %, and
                           the sum of times is of all rows */
};

static const double HUBER = 2; /* deviations from which on a row counts less */
static const double LEAST_SPREAD =
    1e-3;                              /* relative, of times: below that clocks and rounding are */
static const double LEAST_BASE = 0.01; /* of the mean: something is always left without any miss */
static const double TO_DEVIATION = 1.4826; /* of a normal distribution, by its MAD */

/* ------------------------------------------------------------------------------------------- */
/* Non-negative least squares                                                                   */

/* Solves the equations of the unknowns that are free by Cholesky's decomposition; others are 0. */
static void solve_free(unsigned n, const double *gram, const double *right, const bool *is_free,
                       double *c)
{
    double l[DUET__FIT_UNKNOWNS][DUET__FIT_UNKNOWNS], y[DUET__FIT_UNKNOWNS];
    unsigned list[DUET__FIT_UNKNOWNS], count = 0;
    for (unsigned i = 0; i < n; i++) {
        c[i] = 0;
        if (is_free[i])
            list[count++] = i;
    }
    for (unsigned i = 0; i < count; i++) {
        y[i] = right[list[i]];
        for (unsigned j = 0; j <= i; j++) {
            double sum = gram[list[i] * n + list[j]];
            for (unsigned k = 0; k < j; k++)
                sum -= l[i][k] * l[j][k];
            l[i][j] = i == j ? sqrt(fmax(sum, DBL_MIN)) : sum / l[j][j];
            if (j < i)
                y[i] -= l[i][j] * y[j];
        }
        y[i] /= l[i][i];
    }
    for (unsigned i = count; i-- > 0;) {
        for (unsigned k = i + 1; k < count; k++)
            y[i] -= l[k][i] * y[k];
        y[i] /= l[i][i];
        c[list[i]] = y[i];
    }
}

/* Is this unknown negative, or held at 0 though the sum of squares would fall with it? */
static bool is_wrong(unsigned n, const double *gram, const double *right, bool is_free,
                     const double *c, unsigned i)
{
    double slope = right[i], size = fabs(right[i]);
    if (is_free)
        return c[i] < 0;
    for (unsigned j = 0; j < n; j++) {
        slope -= gram[i * n + j] * c[j];
        size += fabs(gram[i * n + j] * c[j]);
    }
    return slope > size * 1e-12; /* what is rounding is 0 */
}

void duet__nonnegative(unsigned n, const double *gram, const double *right, double *c)
{
    enum { PATIENCE = 3, TURNS = 500 };
    bool is_free[DUET__FIT_UNKNOWNS] = {false};
    unsigned least = n + 1, patience = PATIENCE;
    /* it ends by itself, but rounding could make it turn in a circle */
    for (unsigned turn = 0; turn < TURNS; turn++) {
        bool wrong[DUET__FIT_UNKNOWNS];
        unsigned count = 0, last = 0;
        solve_free(n, gram, right, is_free, c);
        for (unsigned i = 0; i < n; i++) {
            wrong[i] = is_wrong(n, gram, right, is_free[i], c, i);
            count += wrong[i];
            last = wrong[i] ? i : last;
        }
        if (!count)
            return;
        /* all of them at once, as long as they become fewer; else the last one, as Murty does */
        patience = count < least ? PATIENCE : patience ? patience - 1 : 0;
        least = MIN(count, least);
        for (unsigned i = 0; i < n; i++)
            if (wrong[i] && (patience || i == last))
                is_free[i] = !is_free[i];
    }
    for (unsigned i = 0; i < n; i++)
        c[i] = fmax(c[i], 0);
}

/* ------------------------------------------------------------------------------------------- */
/* Rows                                                                                         */

double duet__fit_seconds(const struct duet__fit *fit, const double *shares, unsigned columns)
{
    double sum = fit->base_s;
    for (unsigned i = 0; i < columns; i++)
        sum += fit->column_s[i] * shares[i];
    return sum;
}

/* Expected time to divide by: never so small that a row counts more than all others. */
static double scale_of(const struct duet__fit_data *data, const struct duet__fit *fit, size_t row,
                       double unit_s)
{
    return fmax(duet__fit_seconds(fit, data->shares + row * data->columns, data->columns),
                0.01 * unit_s);
}

/* The median over the used rows of their relative errors, or without a fit of their times. */
static double median_row(const struct duet__fit_data *data, const struct duet__fit *fit,
                         double unit_s)
{
    g_autofree double *values = g_new(double, data->count + 1);
    size_t count = 0;
    for (size_t i = 0; i < data->count; i++)
        if (data->used[i])
            values[count++] = fit ? fabs(data->seconds[i] / scale_of(data, fit, i, unit_s) - 1)
                                  : data->seconds[i];
    return duet__rough_median(values, count);
}

/*
 * One fit of `used` rows, in units of `unit_s`: divided by what `last` expects of them, which errs
 * by `spread`; NULL: by their own times. The unknowns are the base, then the columns.
 */
static void fit_once(const struct duet__fit_data *data, size_t used, double unit_s, double spread,
                     const struct duet__fit *last, struct duet__fit *out)
{
    unsigned n = data->columns + 1;
    size_t step = used / FIT_ROWS + 1, met = 0;
    double gram[DUET__FIT_UNKNOWNS * DUET__FIT_UNKNOWNS] = {0}, right[DUET__FIT_UNKNOWNS] = {0};
    double row[DUET__FIT_UNKNOWNS] = {0}, c[DUET__FIT_UNKNOWNS] = {0};
    for (size_t i = 0; i < data->count; i++) {
        double seconds = data->seconds[i], scale = seconds, weight = 1;
        if (!data->used[i] || met++ % step)
            continue;
        if (last) {
            scale = scale_of(data, last, i, unit_s);
            weight = fmin(HUBER * spread / fabs(seconds / scale - 1), 1);
        }
        for (unsigned k = 0; k < n; k++) {
            row[k] = unit_s / scale * (k ? data->shares[i * data->columns + k - 1] : 1);
            for (unsigned j = 0; j <= k && row[k] != 0; j++)
                gram[k * n + j] += weight * row[k] * row[j];
            right[k] += weight * row[k] * seconds / scale;
        }
    }
    /* nothing is known of the base before: only as much as makes the equations definite */
    gram[0] += 1e-12;
    for (unsigned k = 1; k < n; k++) {
        double prior = spread * spread / data->spread[k - 1] / data->spread[k - 1];
        gram[k * n + k] += prior;
        right[k] += prior * data->prior_s[k - 1] / unit_s;
        for (unsigned j = 0; j < k; j++)
            gram[j * n + k] = gram[k * n + j];
    }
    duet__nonnegative(n, gram, right, c);
    out->base_s = c[0] * unit_s;
    for (unsigned k = 1; k < n; k++)
        out->column_s[k - 1] = c[k] > 1e-12 ? c[k] * unit_s : 0; /* the rest is rounding */
}

/* Expected times add up to the measured ones, which are these. */
static void keep_sum(const struct duet__fit_data *data, size_t used, double measured,
                     struct duet__fit *fit)
{
    double expected = 0;
    fit->base_s = fmax(fit->base_s, LEAST_BASE * measured / (double)used);
    for (size_t i = 0; i < data->count; i++)
        if (data->used[i])
            expected += duet__fit_seconds(fit, data->shares + i * data->columns, data->columns);
    /* stalls and the like come in proportion to time, so all parts of it grow by the same factor */
    fit->base_s *= measured / expected;
    for (unsigned i = 0; i < data->columns; i++)
        fit->column_s[i] *= measured / expected;
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
