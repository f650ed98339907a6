/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of the fit's parts: non-negative least squares, priors, outliers, quantiles. */
#include <math.h>
#include <string.h>

#include <glib.h>

#include "calibrate/fit.h"
#include "platforms/model/effects.h"

enum { ROWS = 400 };

/*
 * Solutions of random problems are recognised by the conditions of Karush, Kuhn and Tucker: nothing
 * is negative, the slope is 0 where something is positive, and not downhill where it is 0.
 */
static void test_nonnegative(void)
{
    GRand *random = g_rand_new_with_seed(1);
    unsigned held = 0;
    for (int turn = 0; turn < 300; turn++) {
        unsigned n = (unsigned)g_rand_int_range(random, 1, DUET__FIT_UNKNOWNS + 1);
        double a[24][DUET__FIT_UNKNOWNS], b[24], c[DUET__FIT_UNKNOWNS];
        double gram[DUET__FIT_UNKNOWNS * DUET__FIT_UNKNOWNS] = {0}, right[DUET__FIT_UNKNOWNS] = {0};
        for (int i = 0; i < 24; i++) {
            b[i] = g_rand_double_range(random, -1, 1);
            for (unsigned j = 0; j < n; j++)
                a[i][j] = g_rand_double_range(random, -1, 1);
        }
        for (int i = 0; i < 24; i++)
            for (unsigned j = 0; j < n; j++) {
                right[j] += a[i][j] * b[i];
                for (unsigned k = 0; k < n; k++)
                    gram[j * n + k] += a[i][j] * a[i][k];
            }
        duet__nonnegative(n, gram, right, c);
        for (unsigned j = 0; j < n; j++) {
            double slope = -right[j];
            for (unsigned k = 0; k < n; k++)
                slope += gram[j * n + k] * c[k];
            g_assert_cmpfloat(c[j], >=, 0);
            g_assert_cmpfloat(slope, >=, -1e-9); /* rounding of sums of some ten terms of size 1 */
            if (c[j] > 0)
                g_assert_cmpfloat(slope, <=, 1e-9);
            held += c[j] == 0;
        }
    }
    g_assert_cmpuint(held, >, 100);
    g_rand_free(random);
}

/* Rows of two columns. */
struct table {
    double shares[2 * ROWS], seconds[ROWS];
    bool used[ROWS];
};

static struct duet__fit fit(const struct table *table, size_t count, const double prior_s[2])
{
    static const double spread[2] = {0.1, 0.1};
    struct duet__fit fit;
    duet__fit(&(struct duet__fit_data){.count = count,
                                       .columns = 2,
                                       .shares = table->shares,
                                       .seconds = table->seconds,
                                       .used = table->used,
                                       .prior_s = prior_s,
                                       .spread = spread},
              &fit);
    return fit;
}

static double sum_of(const struct table *table, const struct duet__fit *fit)
{
    double sum = 0;
    for (size_t i = 0; i < ROWS; i++)
        if (table->used[i])
            sum += fit ? duet__fit_seconds(fit, table->shares + 2 * i, 2) : table->seconds[i];
    return sum;
}

/* A few wild rows do not bend the fit; the sum is kept; rows that are not used do nothing. */
static void test_robust(void)
{
    static const double prior_s[2] = {0, 0};
    struct table table;
    GRand *random = g_rand_new_with_seed(2);
    for (size_t i = 0; i < ROWS; i++) {
        double *shares = table.shares + 2 * i;
        shares[0] = g_rand_double(random);
        shares[1] = g_rand_double(random);
        table.used[i] = i % 4 != 0;
        table.seconds[i] = table.used[i] ? 1e-3 + 5e-4 * shares[0] + 2e-4 * shares[1] : 1;
        if (i % 50 == 1)
            table.seconds[i] *= 3;
    }
    struct duet__fit found = fit(&table, ROWS, prior_s);
    g_assert_cmpfloat(fabs(sum_of(&table, &found) / sum_of(&table, NULL) - 1), <, 1e-12);
    /* 8 of 300 rows are three times as long: all grows by 5 %, in proportion */
    g_assert_cmpfloat(fabs(found.column_s[0] / found.base_s - 0.5), <, 0.02);
    g_assert_cmpfloat(fabs(found.column_s[1] / found.base_s - 0.2), <, 0.02);
    memset(table.used, 0, sizeof table.used);
    found = fit(&table, ROWS, prior_s);
    g_assert_cmpfloat(found.base_s, ==, 0);
    g_rand_free(random);
}

/* A column that never changes keeps its prior, and the base takes the rest. */
static void test_constant(void)
{
    static const double prior_s[2] = {1e-4, 7e-4};
    struct table table;
    for (size_t i = 0; i < ROWS; i++) {
        table.shares[2 * i] = 0;
        table.shares[2 * i + 1] = 1;
        table.seconds[i] = i % 2 ? 1.01e-3 : 0.99e-3;
        table.used[i] = true;
    }
    struct duet__fit found = fit(&table, ROWS, prior_s);
    g_assert_cmpfloat(fabs(found.column_s[1] - 7e-4), <, 1e-6);
    g_assert_cmpfloat(fabs(found.base_s - 3e-4), <, 1e-6);
    g_assert_cmpfloat(fabs(found.column_s[0] - 1e-4), <, 1e-6);
    /* one that would take more than there is leaves a base */
    found = fit(&table, ROWS, (const double[2]){0, 5e-3});
    g_assert_cmpfloat(found.base_s, >, 0);
    g_assert_cmpfloat(fabs(found.base_s + found.column_s[1] - 1e-3), <, 1e-9);
    /* two rows of equal times are enough for a fit that is finite */
    found = fit(&table, 1, prior_s);
    g_assert_cmpfloat(fabs(duet__fit_seconds(&found, table.shares, 2) - 0.99e-3), <, 1e-9);
}

/* Each sentence of the rule. */
static void test_outliers(void)
{
    double measured[ROWS], expected[ROWS];
    bool rejected[ROWS];
    for (size_t i = 0; i < ROWS; i++) {
        expected[i] = i % 3 ? 1e-3 : 4e-3;
        measured[i] = expected[i] * (i % 2 ? 1.02 : 0.98);
    }
    g_assert_cmpuint(duet__outliers(measured, expected, ROWS, rejected), ==, 0);
    measured[5] = 1.45 * expected[5]; /* far from all others, but not beyond 1.5 */
    g_assert_cmpuint(duet__outliers(measured, expected, ROWS, rejected), ==, 0);
    measured[6] = 1.6 * expected[6];
    measured[7] = expected[7] / 1.6;
    g_assert_cmpuint(duet__outliers(measured, expected, ROWS, rejected), ==, 2);
    g_assert_true(rejected[6] && rejected[7] && !rejected[9]);
    measured[9] = 50 * expected[9];
    g_assert_cmpuint(duet__outliers(measured, expected, ROWS, rejected), ==, 3);
    g_assert_true(rejected[9]);
    for (size_t i = 0; i < ROWS; i += 3)
        measured[i] = 20 * expected[i]; /* a third: no outliers, it is like that */
    g_assert_cmpuint(duet__outliers(measured, expected, ROWS, rejected), ==, 0);
    for (size_t i = 0; i < ROWS; i++)
        g_assert_false(rejected[i]);
}

/* A short kernel that now and then is interrupted keeps that; one that is slow on purpose not. */
static void test_stalls(void)
{
    enum { MANY = 20000 };
    double *measured = g_new(double, MANY), *expected = g_new(double, MANY);
    bool *rejected = g_new(bool, MANY);
    for (size_t i = 0; i < MANY; i++) {
        expected[i] = 2e-6;
        measured[i] = i % 4000 == 7 ? 60e-6 : i % 2 ? 2.1e-6 : 1.9e-6;
    }
    g_assert_cmpuint(duet__outliers(measured, expected, MANY, rejected), ==, 0);
    measured[8] = 300e-6; /* longer than a stall */
    g_assert_cmpuint(duet__outliers(measured, expected, MANY, rejected), ==, 1);
    g_assert_true(rejected[8]);
    for (size_t i = 0; i < MANY; i += 200) /* 100 x 58 us of 40 ms: 14 % */
        measured[i] = 60e-6;
    g_assert_cmpuint(duet__outliers(measured, expected, MANY, rejected), ==, 106);
    g_free(measured);
    g_free(expected);
    g_free(rejected);
}

/* Quantiles have mean 1, their order, and the tails' means; duet__factor draws from them. */
static void test_quantiles(void)
{
    enum { MANY = 10001, LAST = DUET_QUANTILES - 1 };
    double *ratios = g_new(double, MANY), q[DUET_QUANTILES], mean = 0;
    for (size_t i = 0; i < MANY; i++)
        ratios[i] = 0.95 + 0.1 * (double)(i * 7919 % MANY) / (MANY - 1);
    ratios[4711] = 50;
    duet__quantiles(ratios, MANY, q);
    for (unsigned i = 1; i < DUET_QUANTILES; i++) {
        g_assert_cmpfloat(q[i], >=, q[i - 1]);
        mean += (duet__quantile_levels[i] - duet__quantile_levels[i - 1]) * (q[i] + q[i - 1]) / 2;
    }
    g_assert_cmpfloat(fabs(mean - 1), <, 1e-12);
    /* the mean of the ratios is 1.0049: one of 50 in ten thousand. The median is 1 / 1.0049, give
       or take what the last value counts in a straight line, a half, not a whole */
    g_assert_cmpfloat(fabs(q[5] - 1 / 1.0049), <, 0.003);
    g_assert_cmpfloat(q[LAST], >, 1.2); /* what is beyond 0.99 has a mean of more than 1.29 */
    g_assert_cmpfloat(q[LAST], <, 2);
    struct duet__point point = {.mean_s = 1};
    memcpy(point.quantiles, q, sizeof q);
    mean = 0;
    for (int i = 0; i < 1000; i++)
        mean += duet__factor(&point, (i + 0.5) / 1000, 0) / 1000;
    g_assert_cmpfloat(fabs(mean - 1), <, 1e-9);
    duet__quantiles((double[]){3}, 1, q);
    for (unsigned i = 0; i < DUET_QUANTILES; i++)
        g_assert_cmpfloat(fabs(q[i] - 1), <, 1e-12);
    g_free(ratios);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/calibrate/fit/nonnegative", test_nonnegative);
    g_test_add_func("/calibrate/fit/robust", test_robust);
    g_test_add_func("/calibrate/fit/constant", test_constant);
    g_test_add_func("/calibrate/fit/outliers", test_outliers);
    g_test_add_func("/calibrate/fit/stalls", test_stalls);
    g_test_add_func("/calibrate/fit/quantiles", test_quantiles);
    return g_test_run();
}
