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
/* Kernels of tiles, by hand: `last` has the values of the last operand, and is to get those that it
 * has afterwards. Solves have a solution there, and make the operand its product with the triangle,
 * whose other half, and for trsm_l the diagonal, must not matter. */

static void gemm_by_hand(const struct duet_buffer *b, double *last, uint32_t form)
{
    const double sign = form & DUET__MINUS ? -1 : 1;
    for (size_t j = 0; j < b[2].cols; j++)
        for (size_t i = 0; i < b[2].rows; i++)
            for (size_t l = 0; l < b[0].cols; l++)
                last[i + j * b[2].rows] +=
                    sign * get(&b[0], i, l) *
                    (form & DUET__TRANSPOSED ? get(&b[1], j, l) : get(&b[1], l, j));
}

/* Only the lower triangle changes. */
static void syrk_by_hand(const struct duet_buffer *b, double *last, uint32_t form)
{
    for (size_t j = 0; j < b[1].cols; j++)
        for (size_t i = j; i < b[1].rows; i++)
            for (size_t l = 0; l < b[0].cols; l++)
                last[i + j * b[1].rows] -= get(&b[0], i, l) * get(&b[0], j, l);
}

static void axpy_by_hand(const struct duet_buffer *b, double *last, uint32_t form)
{
    for (size_t i = 0; i < b[1].rows; i++)
        last[i] += -1.25 * get(&b[0], i, 0);
}

/* B := X T' with T lower */
/* NOLINTNEXTLINE(readability-non-const-parameter): as the others */
static void trsm_by_hand(const struct duet_buffer *b, double *x, uint32_t form)
{
    for (size_t i = 0; i < b[1].rows; i++)
        for (size_t j = 0; j < b[1].cols; j++) {
            double sum = 0;
            for (size_t l = 0; l <= j; l++)
                sum += x[i + l * b[1].rows] * get(&b[0], j, l);
            set(&b[1], i, j, sum);
        }
}

/* B := X T with T upper */
/* NOLINTNEXTLINE(readability-non-const-parameter): as the others */
static void trsm_r_by_hand(const struct duet_buffer *b, double *x, uint32_t form)
{
    for (size_t i = 0; i < b[1].rows; i++)
        for (size_t j = 0; j < b[1].cols; j++) {
            double sum = 0;
            for (size_t l = 0; l <= j; l++)
                sum += x[i + l * b[1].rows] * get(&b[0], l, j);
            set(&b[1], i, j, sum);
        }
}

/* B := T X with T lower, its diagonal taken as 1 */
/* NOLINTNEXTLINE(readability-non-const-parameter): as the others */
static void trsm_l_by_hand(const struct duet_buffer *b, double *x, uint32_t form)
{
    for (size_t j = 0; j < b[1].cols; j++)
        for (size_t i = 0; i < b[1].rows; i++) {
            double sum = x[i + j * b[1].rows];
            for (size_t l = 0; l < i; l++)
                sum += get(&b[0], i, l) * x[l + j * b[1].rows];
            set(&b[1], i, j, sum);
        }
}

/* The strictly upper triangle is not touched. */
static void potrf_by_hand(const struct duet_buffer *b, double *l, uint32_t form)
{
    const size_t n = b->rows;
    for (size_t j = 0; j < n; j++) {
        for (size_t k = 0; k < j; k++)
            for (size_t i = j; i < n; i++)
                l[i + j * n] -= l[i + k * n] * l[j + k * n];
        double root = sqrt(l[j + j * n]);
        for (size_t i = j; i < n; i++)
            l[i + j * n] /= root;
    }
}

static void getrf_nopiv_by_hand(const struct duet_buffer *b, double *lu, uint32_t form)
{
    const size_t n = b->rows;
    for (size_t k = 0; k < n; k++) {
        for (size_t i = k + 1; i < n; i++)
            lu[i + k * n] /= lu[k + k * n];
        for (size_t j = k + 1; j < n; j++)
            for (size_t i = k + 1; i < n; i++)
                lu[i + j * n] -= lu[i + k * n] * lu[k + j * n];
    }
}

static void tiles(const char *base, size_t m, size_t n, size_t element_bytes, double scale,
                  void (*by_hand)(const struct duet_buffer *b, double *last, uint32_t form))
{
    const struct duet__axpy_args vectors = {m, -1.25};
    const bool gemm = !strcmp(base, "gemm"), axpy = !strcmp(base, "axpy");
    for (uint32_t form = 0; form < (gemm ? 4 : 1); form++) {
        const struct duet__tile_args forms = {.form = form};
        struct duet_buffer b[3];
        double *expected[3] = {NULL};
        const size_t count = make_operands(base, m, n, element_bytes, form, b);
        for (size_t i = 0; i < count; i++)
            expected[i] = values(&b[i]);
        by_hand(b, expected[count - 1], form);
        g_assert_cmpint(run(base, b, count,
                            gemm   ? (const void *)&forms
                            : axpy ? &vectors
                                   : NULL),
                        ==, 0);
        for (size_t i = 0; i < count; i++) {
            same(&b[i], expected[i], i + 1 < count ? 0 : scale);
            g_free(b[i].data);
            g_free(expected[i]);
        }
    }
}

/* A kernel, and the error of its elements that is allowed; m, n: the sizes. */
#define DEFINE_TILES(name, scale)                                                                  \
    static void name(size_t m, size_t n, size_t element_bytes)                                     \
    {                                                                                              \
        tiles(#name, m, n, element_bytes, scale, name##_by_hand);                                  \
    }                                                                                              \
    DEFINE_TEST(name)

DEFINE_TILES(gemm, floor((double)(m + n) / 2) + 1)
DEFINE_TILES(syrk, (double)n)
DEFINE_TILES(axpy, 1)
DEFINE_TILES(trsm, 10)
DEFINE_TILES(trsm_l, 10)
DEFINE_TILES(trsm_r, 10)
DEFINE_TILES(potrf, 10 * sqrt((double)m))
DEFINE_TILES(getrf_nopiv, 10 * (double)m)

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

DEFINE_TEST(getrf)
DEFINE_TEST(laswp)

static void test_unknown(void)
{
    g_assert_null(duet__kernel("dgemm"));
    g_assert_null(duet__kernel(""));
    g_assert_nonnull(duet__kernel("jacobi2d"));
    g_assert_nonnull(duet__kernel("sort"));
}

TEST_MAIN(test_gemm, test_syrk, test_axpy, test_trsm, test_trsm_l, test_trsm_r, test_potrf,
          test_getrf_nopiv, test_getrf, test_getrf_in_place, test_laswp, test_failures,
          test_unknown)
