/* SPDX-License-Identifier: Apache-2.0 */
/* Random matrices for the tests of kernels, whose columns have gaps that must stay as they are. */
#ifndef DUET_TEST_MATRICES_H
#define DUET_TEST_MATRICES_H

#include <math.h>

#include <glib.h>

#include <duet/duet.h>

#include "workloads/data.h"

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

#endif
