/* SPDX-License-Identifier: Apache-2.0 */
/* Every kernel against a naive one, in both precisions, on matrices whose columns have gaps between
 * them (which must stay), of sizes from 1 on, odd ones too. */
#include "workloads/kernels.h"

#include <math.h>
#include <string.h>

#include "workloads/test_matrices.h"

static int run_saying(const char *base, const struct duet_buffer *buffers, size_t count,
                      const void *args, struct duet_message *message)
{
    const struct duet_call call = {.args = args,
                                   .buffers = buffers,
                                   .buffer_count = count,
                                   .message = message};
    return duet__kernel(base)(&call);
}

static int run(const char *base, const struct duet_buffer *buffers, size_t count, const void *args)
{
    return run_saying(base, buffers, count, args, NULL);
}

/* Fails unless the kernel fails and says why. */
static void fails(const char *base, const struct duet_buffer *buffers, size_t count,
                  const char *why)
{
    g_assert_cmpint(run_saying(base, buffers, count, NULL, hear()), ==, DUET_ETASK);
    g_test_message("%s: %s", base, heard());
    SAYS(why);
}

/* ------------------------------------------------------------------------------------------- */
/* Products                                                                                     */

static void gemm_of_form(size_t m, size_t n, size_t element_bytes, uint32_t form)
{
    size_t k = (m + n) / 2 + 1;
    bool transposed = form & DUET__TRANSPOSED;
    struct duet_buffer b[3];
    (void)make_operands("gemm", m, n, element_bytes, form, b);
    double *a_before = values(&b[0]), *b_before = values(&b[1]), *expected = values(&b[2]);
    for (size_t j = 0; j < n; j++) {
        for (size_t i = 0; i < m; i++) {
            for (size_t l = 0; l < k; l++)
                expected[i + j * m] += (form & DUET__MINUS ? -1 : 1) * get(&b[0], i, l) *
                                       (transposed ? get(&b[1], j, l) : get(&b[1], l, j));
        }
    }
    const struct duet__tile_args args = {.form = form};
    g_assert_cmpint(run("gemm", b, 3, &args), ==, 0);
    same(&b[0], a_before, 0);
    same(&b[1], b_before, 0);
    same(&b[2], expected, (double)k);
    for (size_t i = 0; i < 3; i++)
        g_free(b[i].data);
    g_free(a_before);
    g_free(b_before);
    g_free(expected);
}

static void gemm(size_t m, size_t n, size_t element_bytes)
{
    for (uint32_t form = 0; form < 4; form++)
        gemm_of_form(m, n, element_bytes, form);
}

/* Only the lower triangle changes. */
static void syrk(size_t n, size_t k, size_t element_bytes)
{
    struct duet_buffer b[] = {make(0, n, k, element_bytes, 0), make(1, n, n, element_bytes, 0)};
    g_autofree double *expected = values(&b[1]);
    for (size_t j = 0; j < n; j++) {
        for (size_t i = j; i < n; i++) {
            for (size_t l = 0; l < k; l++)
                expected[i + j * n] -= get(&b[0], i, l) * get(&b[0], j, l);
        }
    }
    g_assert_cmpint(run("syrk", b, 2, NULL), ==, 0);
    same(&b[1], expected, (double)k);
    g_free(b[0].data);
    g_free(b[1].data);
}

static void axpy(size_t n, size_t unused, size_t element_bytes)
{
    const struct duet__axpy_args args = {n, -1.25};
    struct duet_buffer b[] = {make(0, n, 1, element_bytes, 0), make(1, n, 1, element_bytes, 0)};
    g_autofree double *expected = values(&b[1]);
    for (size_t i = 0; i < n; i++)
        expected[i] += -1.25 * get(&b[0], i, 0);
    g_assert_cmpint(run("axpy", b, 2, &args), ==, 0);
    same(&b[1], expected, 1);
    g_free(b[0].data);
    g_free(b[1].data);
}

/* ------------------------------------------------------------------------------------------- */
/* Triangular solves: B is the product of a solution and the triangle. The other triangle of T (and,
 * for trsm_l, its diagonal) must not matter. */

static bool in_lower(size_t i, size_t j)
{
    return i >= j;
}

static bool in_upper(size_t i, size_t j)
{
    return i <= j;
}

/* B (m x n) := X T' from the right with T lower, or X T with T upper. */
static void solve_right(const char *base, size_t m, size_t n, size_t element_bytes, bool lower)
{
    struct duet_buffer b[] = {make(0, n, n, element_bytes, (double)n),
                              make(1, m, n, element_bytes, 0)};
    g_autofree double *x = values(&b[1]);
    for (size_t i = 0; i < m; i++) {
        for (size_t j = 0; j < n; j++) {
            double sum = 0;
            for (size_t l = 0; l < n; l++) {
                if (lower && in_lower(j, l))
                    sum += x[i + l * m] * get(&b[0], j, l);
                else if (!lower && in_upper(l, j))
                    sum += x[i + l * m] * get(&b[0], l, j);
            }
            set(&b[1], i, j, sum);
        }
    }
    g_assert_cmpint(run(base, b, 2, NULL), ==, 0);
    same(&b[1], x, 10);
    g_free(b[0].data);
    g_free(b[1].data);
}

static void trsm(size_t m, size_t n, size_t element_bytes)
{
    solve_right("trsm", m, n, element_bytes, true);
}

static void trsm_r(size_t m, size_t n, size_t element_bytes)
{
    solve_right("trsm_r", m, n, element_bytes, false);
}

/* B := T X with T lower, its diagonal taken as 1 and its other elements small. */
static void trsm_l(size_t m, size_t n, size_t element_bytes)
{
    struct duet_buffer b[2];
    (void)make_operands("trsm_l", m, n, element_bytes, 0, b);
    g_autofree double *x = values(&b[1]);
    for (size_t j = 0; j < n; j++) {
        for (size_t i = 0; i < m; i++) {
            double sum = x[i + j * m];
            for (size_t l = 0; l < i; l++)
                sum += get(&b[0], i, l) * x[l + j * m];
            set(&b[1], i, j, sum);
        }
    }
    g_assert_cmpint(run("trsm_l", b, 2, NULL), ==, 0);
    same(&b[1], x, 10);
    g_free(b[0].data);
    g_free(b[1].data);
}

/* ------------------------------------------------------------------------------------------- */
/* Factorisations                                                                               */

/* The strictly upper triangle is not touched. */
static void potrf(size_t n, size_t unused, size_t element_bytes)
{
    struct duet_buffer a = make(0, n, n, element_bytes, (double)n);
    g_autofree double *l = values(&a);
    for (size_t j = 0; j < n; j++) {
        for (size_t k = 0; k < j; k++) {
            for (size_t i = j; i < n; i++)
                l[i + j * n] -= l[i + k * n] * l[j + k * n];
        }
        double root = sqrt(l[j + j * n]);
        for (size_t i = j; i < n; i++)
            l[i + j * n] /= root;
    }
    g_assert_cmpint(run("potrf", &a, 1, NULL), ==, 0);
    same(&a, l, 10 * sqrt((double)n));
    g_free(a.data);
}

static void getrf_nopiv(size_t n, size_t unused, size_t element_bytes)
{
    struct duet_buffer a = make(0, n, n, element_bytes, (double)n);
    double *lu = values(&a);
    for (size_t k = 0; k < n; k++) {
        for (size_t i = k + 1; i < n; i++)
            lu[i + k * n] /= lu[k + k * n];
        for (size_t j = k + 1; j < n; j++) {
            for (size_t i = k + 1; i < n; i++)
                lu[i + j * n] -= lu[i + k * n] * lu[k + j * n];
        }
    }
    g_assert_cmpint(run("getrf_nopiv", &a, 1, NULL), ==, 0);
    same(&a, lu, 10 * (double)n);
    g_free(a.data);
    g_free(lu);
}

/* Tasks fail on matrices that cannot be factorised, also far from the leaves of the recursion. */
static void test_failures(void)
{
    double zero_pivot[] = {1, 2, 3, 4, 8, 5, 6, 7, 1}, not_finite[] = {NAN};
    double indefinite[] = {1, 2, 2, 1}, zeros[4] = {0};
    int32_t pivots[3];
    struct duet_buffer b[] =
        {{.data = zero_pivot, .rows = 3, .cols = 3, .ld = 3, .element_bytes = 8},
         {.data = not_finite, .rows = 1, .cols = 1, .ld = 1, .element_bytes = 8},
         {.data = indefinite, .rows = 2, .cols = 2, .ld = 2, .element_bytes = 8}};
    struct duet_buffer panel[] =
        {{.data = pivots, .rows = 2, .cols = 1, .ld = 2, .element_bytes = 4},
         {.data = zeros, .rows = 2, .cols = 2, .ld = 2, .element_bytes = 8}};
    if (no_blas())
        return;
    struct duet_buffer large = make(0, 100, 100, 8, 100);
    for (size_t j = 0; j < 100; j++)
        set(&large, 77, j, 0);
    fails("getrf_nopiv", &large, 1, "pivot 78 of a tile of order 100 is 0");
    g_free(large.data);
    fails("getrf_nopiv", &b[0], 1, "pivot 2 of a tile of order 3 is 0");
    fails("getrf_nopiv", &b[1], 1, "pivot 1 of a tile of order 1 is nan");
    fails("potrf", &b[2], 1, "leading minor of order 2 of a tile of order 2");
    fails("getrf", panel, 2, "column 1 of a panel of 2 x 2");
}

/* ------------------------------------------------------------------------------------------- */
/* Panels of several tiles                                                                      */

enum { TILES = 3 };

/* A panel of tiles of m x n (the last one has one row, m >= n), and room for n interchanges. */
static void make_panel(struct duet_buffer *b, size_t m, size_t n, size_t element_bytes)
{
    b[0] = (struct duet_buffer){.data = g_new0(int32_t, n),
                                .rows = n,
                                .cols = 1,
                                .ld = n,
                                .element_bytes = sizeof(int32_t)};
    for (size_t t = 1; t <= TILES; t++)
        b[t] = make((unsigned)t, t < TILES ? m : 1, n, element_bytes, 0);
}

static void free_panel(struct duet_buffer *b)
{
    for (size_t t = 0; t <= TILES; t++)
        g_free(b[t].data);
}

/* Returns the tiles of a panel as one matrix of 2 m + 1 rows. */
static double *stack(const struct duet_buffer *b)
{
    size_t m = b[1].rows, rows = 2 * m + 1, n = b[1].cols;
    double *dense = g_new0(double, rows *n);
    for (size_t j = 0; j < n; j++) {
        for (size_t i = 0; i < rows; i++)
            dense[i + j * rows] = get(&b[1 + i / m], i % m, j);
    }
    return dense;
}

static void swap_rows(double *a, size_t rows, size_t n, const int32_t *pivots, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        for (size_t j = 0; j < n; j++) {
            double value = a[i + j * rows];
            a[i + j * rows] = a[(size_t)pivots[i] - 1 + j * rows];
            a[(size_t)pivots[i] - 1 + j * rows] = value;
        }
    }
}

/* L U is the panel with its rows interchanged, and no element of L exceeds 1. */
static void getrf(size_t extra, size_t n, size_t element_bytes)
{
    struct duet_buffer b[1 + TILES];
    size_t m = n + extra - 1, rows = 2 * m + 1;
    make_panel(b, m, n, element_bytes);
    double *expected = stack(b), tolerance = (double)n * (element_bytes == 4 ? 1e-6 : 1e-14);
    g_assert_cmpint(run("getrf", b, 1 + TILES, NULL), ==, 0);
    double *lu = stack(b);
    swap_rows(expected, rows, n, b[0].data, n);
    for (size_t j = 0; j < n; j++) {
        for (size_t i = 0; i < rows; i++) {
            double sum = i <= j ? lu[i + j * rows] : 0;
            for (size_t k = 0; k < MIN(i, j + 1); k++)
                sum += lu[i + k * rows] * lu[k + j * rows];
            g_assert_cmpfloat_with_epsilon(sum, expected[i + j * rows], tolerance);
            g_assert_true(i <= j || fabs(lu[i + j * rows]) <= 1);
        }
    }
    g_free(expected);
    g_free(lu);
    free_panel(b);
}

/* A panel whose tiles are windows of one matrix is factorised in place, to the same result. */
static void test_getrf_in_place(void)
{
    enum { M = 20, N = 9, ROWS = 2 * M + 1 };
    struct duet_buffer b[1 + TILES], windows[1 + TILES];
    double whole[ROWS * N];
    int32_t pivots[N];
    if (no_blas())
        return;
    make_panel(b, M, N, sizeof(double));
    double *before = stack(b);
    memcpy(whole, before, sizeof whole);
    windows[0] = (struct duet_buffer){.data = pivots,
                                      .rows = N,
                                      .cols = 1,
                                      .ld = N,
                                      .element_bytes = sizeof(int32_t)};
    for (size_t t = 1; t <= TILES; t++)
        windows[t] = (struct duet_buffer){.data = whole + (t - 1) * M,
                                          .rows = b[t].rows,
                                          .cols = N,
                                          .ld = ROWS,
                                          .element_bytes = sizeof(double)};
    g_assert_cmpint(run("getrf", b, 1 + TILES, NULL), ==, 0);
    g_assert_cmpint(run("getrf", windows, 1 + TILES, NULL), ==, 0);
    double *after = stack(b);
    g_assert_cmpmem(pivots, sizeof pivots, b[0].data, N * sizeof(int32_t));
    for (size_t i = 0; i < (size_t)ROWS * N; i++)
        g_assert_cmpfloat_with_epsilon(after[i], whole[i], 1e-14);
    g_free(before);
    g_free(after);
    free_panel(b);
}

static void laswp(size_t m, size_t n, size_t element_bytes)
{
    struct duet_buffer b[1 + TILES];
    size_t rows = 2 * m + 1;
    make_panel(b, m, n, element_bytes);
    g_free(b[0].data);
    b[0] = (struct duet_buffer){.data = g_new0(int32_t, m),
                                .rows = m,
                                .cols = 1,
                                .ld = m,
                                .element_bytes = sizeof(int32_t)};
    for (size_t i = 0; i < m; i++) /* from i + 1 to `rows` */
        ((int32_t *)b[0].data)[i] = (int32_t)(i + 1 + duet__data_key(m, (unsigned)i) % (rows - i));
    double *expected = stack(b);
    swap_rows(expected, rows, n, b[0].data, m);
    g_assert_cmpint(run("laswp", b, 1 + TILES, NULL), ==, 0);
    double *after = stack(b);
    g_assert_cmpmem(after, rows * n * sizeof *after, expected, rows * n * sizeof *after);
    ((int32_t *)b[0].data)[m - 1] = (int32_t)rows + 1;
    fails("laswp", b, 1 + TILES, "is with row");
    ((int32_t *)b[0].data)[m - 1] = (int32_t)m - 1;
    fails("laswp", b, 1 + TILES, "is with row");
    g_free(expected);
    g_free(after);
    free_panel(b);
}

/* ------------------------------------------------------------------------------------------- */

DEFINE_TEST(gemm)
DEFINE_TEST(syrk)
DEFINE_TEST(axpy)

static void test_trsm(void)
{
    each(trsm);
    each(trsm_r);
    each(trsm_l);
}

DEFINE_TEST(potrf)
DEFINE_TEST(getrf_nopiv)
DEFINE_TEST(getrf)
DEFINE_TEST(laswp)

static void test_unknown(void)
{
    g_assert_null(duet__kernel("dgemm"));
    g_assert_null(duet__kernel(""));
    g_assert_nonnull(duet__kernel("jacobi2d"));
    g_assert_nonnull(duet__kernel("sort"));
}

TEST_MAIN(test_gemm, test_syrk, test_axpy, test_trsm, test_potrf, test_getrf_nopiv, test_getrf,
          test_getrf_in_place, test_laswp, test_failures, test_unknown)
