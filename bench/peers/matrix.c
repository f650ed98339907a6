/* SPDX-License-Identifier: Apache-2.0 */
/* Random matrices, filled by a function of the place, and their products with vectors. */
#include <math.h>
#include <string.h>

#include <cblas.h>

#include "bench/peers/peers.h"

static double element(const void *values, char precision, size_t i)
{
    return precision == 's' ? (double)((const float *)values)[i] : ((const double *)values)[i];
}

static void set_element(void *values, char precision, size_t i, double value)
{
    if (precision == 's')
        ((float *)values)[i] = (float)value;
    else
        ((double *)values)[i] = value;
}

/* Returns the index-th number of a sequence, by Steele, Lea, Flood, "Fast splittable pseudorandom
 * number generators", OOPSLA 2014. */
static double draw(uint64_t seed, uint64_t index)
{
    uint64_t z = (seed << 32) + (index + 1) * UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return (double)((z ^ (z >> 31)) >> 11) * 0x1p-53 - 0.5;
}

void fill_values(void *values, char precision, size_t count, uint64_t seed)
{
#ifdef _OPENMP
#pragma omp parallel for
#endif
    for (size_t i = 0; i < count; i++)
        set_element(values, precision, i, draw(seed, i));
}

void fill_positive(void *matrix, char precision, size_t n, uint64_t seed)
{
#ifdef _OPENMP
#pragma omp parallel for
#endif
    for (size_t j = 0; j < n; j++)
        for (size_t i = 0; i < n; i++) {
            double value = draw(seed, i > j ? j * n + i : i * n + j);
            set_element(matrix, precision, j * n + i, value + (i == j ? (double)n : 0));
        }
}

void multiply(const void *matrix, char precision, size_t n, const void *x, double beta, void *y)
{
    int size = (int)n;
    if (precision == 's')
        cblas_sgemv(CblasColMajor, CblasNoTrans, size, size, 1, matrix, size, x, 1, (float)beta, y,
                    1);
    else
        cblas_dgemv(CblasColMajor, CblasNoTrans, size, size, 1, matrix, size, x, 1, beta, y, 1);
}

void add(char precision, size_t n, double alpha, const void *x, void *y)
{
    if (precision == 's')
        cblas_saxpy((int)n, (float)alpha, x, 1, y, 1);
    else
        cblas_daxpy((int)n, alpha, x, 1, y, 1);
}

/* x := T x for a triangle T of the matrix, or T' x */
static void multiply_triangle(const void *matrix, char precision, size_t n, CBLAS_UPLO triangle,
                              CBLAS_TRANSPOSE transposed, CBLAS_DIAG diagonal, void *x)
{
    int size = (int)n;
    if (precision == 's')
        cblas_strmv(CblasColMajor, triangle, transposed, diagonal, size, matrix, size, x, 1);
    else
        cblas_dtrmv(CblasColMajor, triangle, transposed, diagonal, size, matrix, size, x, 1);
}

void multiply_factors(const void *factors, char precision, size_t n, const int64_t *pivots, void *x)
{
    if (!pivots) {
        multiply_triangle(factors, precision, n, CblasLower, CblasTrans, CblasNonUnit, x);
        multiply_triangle(factors, precision, n, CblasLower, CblasNoTrans, CblasNonUnit, x);
        return;
    }
    multiply_triangle(factors, precision, n, CblasUpper, CblasNoTrans, CblasNonUnit, x);
    multiply_triangle(factors, precision, n, CblasLower, CblasNoTrans, CblasUnit, x);
    for (size_t i = n; i-- > 0;) {
        double value = element(x, precision, i);
        size_t other = (size_t)pivots[i] - 1;
        if (other >= n) { /* an invalid pivot: no result is right */
            set_element(x, precision, i, NAN);
            return;
        }
        set_element(x, precision, i, element(x, precision, other));
        set_element(x, precision, other, value);
    }
}

bool almost_equal(char precision, size_t n, size_t terms, const void *found, const void *right)
{
    const double roundoffs_most = 30;
    /* half of the distance from 1 to the next number: the largest relative error of rounding */
    const double roundoff = precision == 's' ? 0x1p-24 : 0x1p-53;
    double difference = 0, scale = 0;
    for (size_t i = 0; i < n; i++) {
        double error = fabs(element(found, precision, i) - element(right, precision, i));
        if (isnan(error))
            return false;
        difference = fmax(difference, error);
        scale = fmax(scale, fabs(element(right, precision, i)));
    }
    return difference < roundoffs_most * roundoff * (double)terms * scale;
}
