/* SPDX-License-Identifier: Apache-2.0 */
/* Judging factorisations by a random vector: right ones pass, a wrong element is found. */
#include <math.h>

#include <glib.h>
#include "workloads/kernels.h"
#include "workloads/tiles.h"

static struct duet__storage matrix(uint64_t n, uint32_t tile, size_t element_bytes, bool symmetric)
{
    struct duet__storage a = {
        .rows = n,
        .cols = n,
        .tile_rows = tile,
        .tile_cols = tile,
        .element_bytes = element_bytes,
        .lower = symmetric,
        .contents = symmetric ? DUET__SYMMETRIC : DUET__DOMINANT,
        .key = duet__data_key(7, 0),
    };
    g_assert_cmpint(duet__storage_allocate(&a, NULL), ==, 0);
    duet__storage_fill(&a, NULL, NULL);
    return a;
}

static double get(const struct duet__storage *a, uint64_t i, uint64_t j)
{
    return duet__storage_value(a, i, j);
}

static void set(const struct duet__storage *a, uint64_t i, uint64_t j, double value)
{
    duet__store_values(duet__storage_at(a, i, j), &value, 1, a->element_bytes);
}

/* Factorises by definition, column by column. */
static void cholesky(const struct duet__storage *a)
{
    for (uint64_t j = 0; j < a->rows; j++) {
        for (uint64_t i = j; i < a->rows; i++) {
            double sum = get(a, i, j);
            for (uint64_t k = 0; k < j; k++)
                sum -= get(a, i, k) * get(a, j, k);
            set(a, i, j, i == j ? sqrt(sum) : sum / get(a, j, j));
        }
    }
}

static void swap_rows(const struct duet__storage *a, uint64_t i, uint64_t other)
{
    for (uint64_t j = 0; j < a->cols; j++) {
        double value = get(a, i, j);
        set(a, i, j, get(a, other, j));
        set(a, other, j, value);
    }
}

/* Factorises; row i is exchanged with row i + step, within panels as they are stored. */
static void lu(const struct duet__storage *a, const struct duet__storage *pivots, uint64_t step)
{
    for (uint64_t k = 0; k < a->rows; k++) {
        uint64_t other = k + step < a->rows ? k + step : k;
        if (pivots) {
            *(int32_t *)duet__storage_at(pivots, k, 0) =
                (int32_t)(other - (k - k % pivots->tile_rows)) + 1;
            swap_rows(a, k, other);
        }
        for (uint64_t i = k + 1; i < a->rows; i++) {
            double factor = get(a, i, k) / get(a, k, k);
            set(a, i, k, factor);
            for (uint64_t j = k + 1; j < a->cols; j++)
                set(a, i, j, get(a, i, j) - factor * get(a, k, j));
        }
    }
}

/* Returns the residual by a random vector. */
static double judged(const struct duet__storage *a, const struct duet__storage *pivots)
{
    struct duet__tiled_data data = {.matrices = {*a}};
    struct duet__verdict verdict;
    if (pivots)
        data.matrices[1] = *pivots;
    WORKS(duet__judge_factors(&data, NULL, &verdict, hear()));
    return verdict.residual;
}

/* Passes as it is, and not with any single element wrong by a thousandth of its row. */
static void check(const struct duet__storage *a, const struct duet__storage *pivots)
{
    double residual = judged(a, pivots);
    g_assert_cmpfloat(residual, <, 2);
    g_assert_cmpfloat(residual, >, 0);
    for (uint64_t at = 0; at < a->rows * a->rows; at += 13) {
        uint64_t i = at / a->rows, j = at % a->rows;
        if (a->lower && i < j)
            continue;
        double right = get(a, i, j);
        set(a, i, j, right + 0.1);
        g_assert_cmpfloat(judged(a, pivots), >, 100);
        set(a, i, j, right);
    }
    set(a, a->rows - 1, 0, NAN);
    g_assert_true(isnan(judged(a, pivots)));
}

static void test_cholesky(void)
{
    for (size_t bytes = 4; bytes <= 8; bytes += 4) {
        OWNED(duet__storage_free) struct duet__storage a = matrix(61, 17, bytes, true);
        cholesky(&a);
        check(&a, NULL);
    }
}

static void test_lu(void)
{
    for (size_t bytes = 4; bytes <= 8; bytes += 4) {
        OWNED(duet__storage_free) struct duet__storage a = matrix(50, 16, bytes, false);
        lu(&a, NULL, 0);
        check(&a, NULL);
    }
}

/* The matrix is dominant after its rows are exchanged the other way, so any interchanges are
 * allowed. */
static void test_lu_pivot(void)
{
    OWNED(duet__storage_free) struct duet__storage a = matrix(50, 16, 8, false);
    OWNED(duet__storage_free)
    struct duet__storage pivots = {.rows = 50,
                                   .cols = 1,
                                   .tile_rows = 16,
                                   .tile_cols = 1,
                                   .element_bytes = 4,
                                   .contents = DUET__ZEROS};
    g_assert_cmpint(duet__storage_allocate(&pivots, NULL), ==, 0);
    lu(&a, &pivots, 3);
    g_assert_cmpfloat(judged(&a, &pivots), <, 16);
    *(int32_t *)duet__storage_at(&pivots, 5, 0) = 7;
    g_assert_cmpfloat(judged(&a, &pivots), >, 100);
    *(int32_t *)duet__storage_at(&pivots, 5, 0) = 0;
    g_assert_true(isnan(judged(&a, &pivots)));
}

static bool stop_at_once(void *context)
{
    ++*(_Atomic(unsigned) *)context;
    return true;
}

/* A random vector judges unless the exact residual is requested; both can be given up. */
static void test_verdict(void)
{
    _Atomic(unsigned) asked = 0;
    struct duet__judging how = {.exact = false};
    struct duet__verdict verdict = {0};
    for (unsigned exact = 0; exact < 2; exact++) {
        OWNED(duet__storage_free) struct duet__storage a = matrix(40, 16, 8, false);
        how = (struct duet__judging){.exact = exact};
        lu(&a, NULL, 0);
        struct duet__tiled_data made = {.matrices = {a}};
        int error = duet__judge_factors(&made, exact ? &how : NULL, &verdict, hear());
        if (error == DUET_EABSENT) {
            g_test_skip(heard());
        } else {
            g_assert_cmpint(error, ==, 0);
            g_assert_true(g_str_has_prefix(verdict.formula, exact ? "||A - L U||" : "max |L U x"));
            g_assert_cmpfloat(verdict.residual, <, verdict.threshold);
            how.stop = stop_at_once;
            how.context = &asked;
            WORKS(duet__judge_factors(&made, &how, &verdict, hear()));
            g_assert_cmpuint(asked, >, exact);
        }
    }
}

TEST_MAIN(test_cholesky, test_lu, test_lu_pivot, test_verdict)
