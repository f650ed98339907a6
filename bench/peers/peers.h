/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Libraries with which duet's runs are compared, one operation at a time. main.c makes the arrays,
 * times and verifies; a peer (lapack.c, cuda.c) computes. Matrices are n x n, column-major without
 * gaps, vectors have n elements; the precision is 's' (float) or 'd' (double).
 */
#ifndef DUET_BENCH_PEERS_H
#define DUET_BENCH_PEERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    ARRAYS_MAX = 3,
    PEER_SKIPPED = 77, /* exit status: no GPU, or it is too small */
};

enum kind {
    PRODUCT,  /* C := C + A B */
    CHOLESKY, /* A := its factor, in the lower triangle */
    LU,       /* A := its factors, with partial pivoting */
    AXPY,     /* y := y + ALPHA x */
};
#define ALPHA 0.5

/* One measurement. */
struct problem {
    const struct operation *operation;
    char precision;
    size_t n;
    size_t array_bytes;      /* size of each array */
    unsigned arrays;         /* number that the operation has */
    unsigned threads, block; /* 0: the library's default */
    void *given[ARRAYS_MAX]; /* initial arrays, in memory of peer_allocate */
    void *last;              /* the array that the operation changes */
    void *result;            /* its memory: the result */
    int64_t *pivots;         /* row swaps of LU, as LAPACK's getrf numbers them */
};

/* ------------------------------------------------------------------------------------------- */
/* The peer, every function of which ends the program on an error (peer_end)                    */

struct operation {
    const char *name; /* as of duet's workload */
    const char *peer; /* the library */
    enum kind kind;
    /*
     * `in` brings the arrays to where `compute` works, and `out` the result from there. Each
     * returns when it is done. Without `in` and `out`, `compute` works in the host's memory:
     * `result` then holds the last array before.
     */
    void (*in)(const struct problem *problem);
    void (*compute)(const struct problem *problem);
    void (*out)(const struct problem *problem);
};

extern const struct operation peer_operations[]; /* the last one has no name */

/* Memory of the host for one array. */
void *peer_allocate(size_t bytes);
/* Makes all that the operation needs beside the arrays of the host: for each order, the largest one
 * first, after all peer_allocate. */
void peer_open(const struct problem *problem);

/* Ends the program, with status 1 or PEER_SKIPPED and one line. */
_Noreturn void peer_end(int status, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* ------------------------------------------------------------------------------------------- */
/* Arrays: a result is right if its product with a vector is                                    */

static inline size_t element_bytes(char precision)
{
    return precision == 's' ? sizeof(float) : sizeof(double);
}

/* Fills with uniform numbers in [-0.5, 0.5), on all cores if OpenMP is there. */
void fill_values(void *values, char precision, size_t count, uint64_t seed);
/* Fills a symmetric matrix with n added to the diagonal, which makes it positive definite. */
void fill_positive(void *matrix, char precision, size_t n, uint64_t seed);

/* y := M x + beta y */
void multiply(const void *matrix, char precision, size_t n, const void *x, double beta, void *y);
/* y := y + alpha x */
void add(char precision, size_t n, double alpha, const void *x, void *y);
/*
 * x := L L' x, where the factors are the lower triangle that Cholesky leaves; or, with the n pivots
 * that LAPACK's getrf gives, x := P' L U x.
 */
void multiply_factors(const void *factors, char precision, size_t n, const int64_t *pivots,
                      void *x);
/* True if two vectors are equal but for roundoff, if each element was made of `terms` ones: wrong
 * results differ by orders of magnitude more. */
bool almost_equal(char precision, size_t n, size_t terms, const void *found, const void *right);

#endif
