/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of the fit's parts: least squares, priors, outliers. */
#include <math.h>
#include <string.h>

#include <glib.h>

#include "calibrate/model.h"

enum { ROWS = 400 };

struct table {
    double missing[ROWS], seconds[ROWS];
    bool used[ROWS];
};

static struct duet__fit fit(const struct table *table, size_t count, double prior_s, bool flat)
{
    struct duet__fit fit;
    duet__fit(&(struct duet__fit_data){.count = count,
                                       .missing = table->missing,
                                       .seconds = table->seconds,
                                       .used = table->used,
                                       .flat = flat,
                                       .prior_s = prior_s,
                                       .spread = 0.1},
              &fit);
    return fit;
}

static double sum_of(const struct table *table, const struct duet__fit *fit)
{
    double sum = 0;
    for (size_t i = 0; i < ROWS; i++)
        if (table->used[i])
            sum += fit ? duet__fit_seconds(fit, table->missing[i]) : table->seconds[i];
    return sum;
}

/* A few wild rows do not bend the fit; the sum is kept; rows that are not used do nothing. */
static void test_robust(void)
{
    struct table table;
    g_autoptr(GRand) random = g_rand_new_with_seed(2);
    for (size_t i = 0; i < ROWS; i++) {
        table.missing[i] = g_rand_double(random);
        table.used[i] = i % 4 != 0;
        table.seconds[i] = table.used[i] ? 1e-3 + 5e-4 * table.missing[i] : 1;
        if (i % 50 == 1)
            table.seconds[i] *= 3;
    }
    struct duet__fit found = fit(&table, ROWS, 0, false);
    g_assert_cmpfloat(fabs(sum_of(&table, &found) / sum_of(&table, NULL) - 1), <, 1e-12);
    /* 8 of 300 rows are three times as long: both parts grow by 5 % */
    g_assert_cmpfloat(fabs(found.memory_s / found.base_s - 0.5), <, 0.02);
    found = fit(&table, ROWS, 0, true);
    g_assert_cmpfloat(fabs(sum_of(&table, &found) / sum_of(&table, NULL) - 1), <, 1e-12);
    g_assert_cmpfloat(found.memory_s, ==, 0);
    memset(table.used, 0, sizeof table.used);
    found = fit(&table, ROWS, 0, false);
    g_assert_cmpfloat(found.base_s, ==, 0);
}

/* Neither part is negative: one that would be is 0, and the other takes all. */
static void test_nonnegative(void)
{
    struct table table;
    for (size_t i = 0; i < ROWS; i++) {
        table.missing[i] = (double)i / ROWS;
        table.used[i] = true;
        table.seconds[i] = 2e-3 - 1e-3 * table.missing[i]; /* from memory it is faster */
    }
    struct duet__fit found = fit(&table, ROWS, 0, false);
    g_assert_cmpfloat(found.memory_s, ==, 0);
    g_assert_cmpfloat(fabs(sum_of(&table, &found) / sum_of(&table, NULL) - 1), <, 1e-12);
    for (size_t i = 0; i < ROWS; i++) {
        table.missing[i] = 0.5 + table.missing[i] / 2;
        table.seconds[i] = 4e-3 * table.missing[i] - 1.9e-3; /* without memory it would take less
                                                                than nothing */
    }
    found = fit(&table, ROWS, 4e-3, false);
    g_assert_cmpfloat(found.base_s, >, 0);
    g_assert_cmpfloat(found.base_s, <, 0.1 * found.memory_s);
}

/* If all data is always missing, memory gets its prior, and the base the rest. */
static void test_constant(void)
{
    struct table table;
    for (size_t i = 0; i < ROWS; i++) {
        table.missing[i] = 1;
        table.seconds[i] = i % 2 ? 1.01e-3 : 0.99e-3;
        table.used[i] = true;
    }
    struct duet__fit found = fit(&table, ROWS, 7e-4, false);
    g_assert_cmpfloat(fabs(found.memory_s - 7e-4), <, 1e-6);
    g_assert_cmpfloat(fabs(found.base_s - 3e-4), <, 1e-6);
    /* a prior beyond the whole time leaves some base */
    found = fit(&table, ROWS, 5e-3, false);
    g_assert_cmpfloat(found.base_s, >, 0);
    g_assert_cmpfloat(fabs(found.base_s + found.memory_s - 1e-3), <, 1e-9);
    /* one row is enough for a fit that is finite */
    found = fit(&table, 1, 7e-4, false);
    g_assert_cmpfloat(fabs(duet__fit_seconds(&found, 1) - 0.99e-3), <, 1e-9);
}

/* Each sentence of the rule for outliers. */
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
    for (size_t i = 0; i < ROWS / 5; i++)
        measured[i] = (1.6 + 0.4 * (double)(i % 5)) * expected[i]; /* a fifth hide nothing */
    g_assert_cmpuint(duet__outliers(measured, expected, ROWS, rejected), >=, ROWS / 5);
    g_assert_true(rejected[0]);
    for (size_t i = 0; i < ROWS; i += 3)
        measured[i] = 20 * expected[i]; /* a third: a wide distribution without outliers */
    g_assert_cmpuint(duet__outliers(measured, expected, ROWS, rejected), ==, 0);
    for (size_t i = 0; i < ROWS; i++)
        g_assert_false(rejected[i]);
}

/* Stalls of a short kernel, which is interrupted now and then, are kept; one that is slow by itself
 * is not. */
static void test_stalls(void)
{
    enum { MANY = 20000 };
    double *measured = g_new(double, MANY), *expected = g_new(double, MANY);
    g_autofree bool *rejected = g_new(bool, MANY);
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
}

TEST_MAIN(test_nonnegative, test_robust, test_constant, test_outliers, test_stalls)
