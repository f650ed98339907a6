/* SPDX-License-Identifier: Apache-2.0 */
/* Random matrices for the tests of kernels, whose columns have gaps that must stay as they are. */
#ifndef DUET_TEST_MATRICES_H
#define DUET_TEST_MATRICES_H

#include <math.h>
#include <string.h>

#include <glib.h>

#include <duet/duet.h>

#include "workloads/data.h"
#include "workloads/kernels.h"
#include "workloads/tiles.h"

enum { GAP = 3 /* elements between columns */, WRITTEN = 77 /* what they hold */ };

static inline void *at(const struct duet_buffer *a, size_t i, size_t j)
{
    return (char *)a->data + (i + j * a->ld) * a->element_bytes;
}

static inline double get(const struct duet_buffer *a, size_t i, size_t j)
{
    return a->element_bytes == 4 ? (double)*(float *)at(a, i, j) : *(double *)at(a, i, j);
}

static inline void set(const struct duet_buffer *a, size_t i, size_t j, double value)
{
    duet__store_values(at(a, i, j), &value, 1, a->element_bytes);
}

/* Makes a matrix, random in [-1/2, 1/2) with `diagonal` added to the diagonal: always the same for
 * the same sizes and number. The caller frees the data. */
static inline struct duet_buffer make(unsigned number, size_t rows, size_t cols,
                                      size_t element_bytes, double diagonal)
{
    struct duet_buffer a = {.data = NULL,
                            .rows = rows,
                            .cols = cols,
                            .ld = rows + GAP,
                            .element_bytes = element_bytes};
    const struct duet__storage random = {.element_bytes = element_bytes,
                                         .contents = DUET__RANDOM,
                                         .key = duet__data_key(rows + 1000 * cols, number)};
    a.data = g_malloc(a.ld * cols * element_bytes);
    for (size_t j = 0; j < cols; j++) {
        for (size_t i = 0; i < a.ld; i++)
            set(&a, i, j,
                i < rows ? duet__storage_initial(&random, i, j) + (i == j ? diagonal : 0)
                         : WRITTEN);
    }
    return a;
}

/* Returns the elements, densely; the caller frees them. */
static inline double *values(const struct duet_buffer *a)
{
    double *dense = g_new0(double, a->rows * a->cols);
    for (size_t j = 0; j < a->cols; j++) {
        for (size_t i = 0; i < a->rows; i++)
            dense[i + j * a->rows] = get(a, i, j);
    }
    return dense;
}

/* Fails unless elements are as expected within scale x 10^-14 (10^-6 in single precision), and gaps
 * as made. */
static inline void same(const struct duet_buffer *a, const double *expected, double scale)
{
    double tolerance = scale * (a->element_bytes == 4 ? 1e-6 : 1e-14);
    for (size_t j = 0; j < a->cols; j++) {
        for (size_t i = 0; i < a->ld; i++) {
            if (i < a->rows)
                g_assert_cmpfloat(fabs(get(a, i, j) - expected[i + j * a->rows]), <=, tolerance);
            else
                g_assert_cmpfloat(get(a, i, j), ==, WRITTEN);
        }
    }
}

/* Makes the operands of a kernel for these sizes, k of them being another. Returns their number. */
static inline size_t make_operands(const char *base, size_t m, size_t n, size_t element_bytes,
                                   uint32_t form, struct duet_buffer *b)
{
    const size_t k = (m + n) / 2 + 1;
    const bool transposed = form & DUET__TRANSPOSED, left = !strcmp(base, "trsm_l");
    if (!strcmp(base, "gemm")) {
        b[0] = make(0, m, k, element_bytes, 0);
        b[1] = make(1, transposed ? n : k, transposed ? k : n, element_bytes, 0);
        b[2] = make(2, m, n, element_bytes, 0);
        return 3;
    }
    if (!strcmp(base, "potrf") || !strcmp(base, "getrf_nopiv")) {
        b[0] = make(0, m, m, element_bytes, (double)m);
        return 1;
    }
    if (!strcmp(base, "axpy") || !strcmp(base, "syrk")) {
        const bool vectors = base[0] == 'a';
        b[0] = make(0, m, vectors ? 1 : n, element_bytes, 0);
        b[1] = make(1, m, vectors ? 1 : m, element_bytes, 0);
        return 2;
    }
    b[0] = left ? make(0, m, m, element_bytes, 9) : make(0, n, n, element_bytes, (double)n);
    b[1] = make(1, m, n, element_bytes, 0);
    /* the diagonal of L counts as 1; its other elements are small, or the solution would grow */
    for (size_t j = 0; left && j < m; j++)
        for (size_t i = j + 1; i < m; i++)
            set(&b[0], i, j, get(&b[0], i, j) / (double)m);
    return 2;
}

/* Skips the test, and returns true, without BLAS. */
static inline bool no_blas(void)
{
    if (duet__kernel("gemm"))
        return false;
    g_test_skip("built without BLAS");
    return true;
}

/* Runs the test for every pair of sizes in both precisions, if the CPU has its kernels. */
static inline void each(void (*test)(size_t m, size_t n, size_t element_bytes))
{
    static const size_t sizes[] = {1, 2, 5, 16, 17, 33, 100};
    if (no_blas())
        return;
    g_assert_cmpint(duet__blas_begin(4, NULL), ==, 0);
    for (size_t i = 0; i < G_N_ELEMENTS(sizes) * G_N_ELEMENTS(sizes); i++) {
        test(sizes[i % G_N_ELEMENTS(sizes)], sizes[i / G_N_ELEMENTS(sizes)], 8);
        test(sizes[i % G_N_ELEMENTS(sizes)], sizes[i / G_N_ELEMENTS(sizes)], 4);
    }
}

#define DEFINE_TEST(name)                                                                          \
    static void test_##name(void)                                                                  \
    {                                                                                              \
        each(name);                                                                                \
    }

#endif
