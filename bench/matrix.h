/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Matrices and vectors in the host's memory with which the peers of duet's runs are measured, and
 * the check of what became of them: a result is right if its product with a vector is. Matrices are
 * n x n, column-major without gaps; the precision is 's' (float) or 'd' (double).
 */
#ifndef DUET_BENCH_MATRIX_H
#define DUET_BENCH_MATRIX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Residuals below this are roundoff, those of wrong results are larger by orders of magnitude. */
#define RESIDUAL_MOST 30.0

static inline size_t element_bytes(char precision)
{
    return precision == 's' ? sizeof(float) : sizeof(double);
}

static inline double element(const void *values, char precision, size_t i)
{
    return precision == 's' ? (double)((const float *)values)[i] : ((const double *)values)[i];
}

static inline void set_element(void *values, char precision, size_t i, double value)
{
    if (precision == 's')
        ((float *)values)[i] = (float)value;
    else
        ((double *)values)[i] = value;
}

/* Half of the distance from 1 to the next number: the largest relative error of rounding. */
static inline double roundoff(char precision)
{
    return precision == 's' ? 0x1p-24 : 0x1p-53;
}

/* Uniform in [-0.5, 0.5), on all cores where OpenMP is there. */
void fill_values(void *values, char precision, size_t count, uint64_t seed);
/* The same, symmetric and with n added to the diagonal, which makes it positive definite. */
void fill_positive(void *matrix, char precision, size_t n, uint64_t seed);

/* y := M x */
void multiply(const void *matrix, char precision, size_t n, const void *x, void *y);
/* y := y + alpha x */
void add(char precision, size_t n, double alpha, const void *x, void *y);
/*
 * x := L L' x, where the factors are the lower triangle that Cholesky leaves; or, with the n pivots
 * that LAPACK's getrf gives, x := P' L U x.
 */
void multiply_factors(const void *factors, char precision, size_t n, const int64_t *pivots,
                      void *x);
/* Largest difference of two vectors, in units of n roundoffs of the largest element of `right`. */
double residual(char precision, size_t n, const void *found, const void *right);

#endif
