/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What duet's factorisations are measured beside: OpenBLAS's own potrf, getrf (with pivoting) and
 * gemm on its own threads. Fills matrices, runs, and checks the result on a random vector.
 *
 * Usage: lapack cholesky|lu|gemm s|d N THREADS [REPEATS]
 * Prints a JSON object a line for each repeat: seconds, and flops a second in 10^9.
 */
#include <stdbool.h>

#include <cblas.h>
#include <lapacke.h>

#include "bench/matrix.h"
#include "bench/timing.h"

struct problem {
    char precision;
    size_t n;
    void *a, *b, *c;         /* b and c for gemm only */
    lapack_int *narrow;      /* LAPACK's pivots */
    int64_t *pivots;         /* the same */
    void *x, *found, *right; /* vectors to check with */
};

static bool cholesky(struct problem *p)
{
    int n = (int)p->n;
    return (p->precision == 's' ? LAPACKE_spotrf_work(LAPACK_COL_MAJOR, 'L', n, p->a, n)
                                : LAPACKE_dpotrf_work(LAPACK_COL_MAJOR, 'L', n, p->a, n)) == 0;
}

static bool lu(struct problem *p)
{
    int n = (int)p->n;
    return (p->precision == 's'
                ? LAPACKE_sgetrf_work(LAPACK_COL_MAJOR, n, n, p->a, n, p->narrow)
                : LAPACKE_dgetrf_work(LAPACK_COL_MAJOR, n, n, p->a, n, p->narrow)) == 0;
}

/* C := A B + C */
static bool gemm(struct problem *p)
{
    int n = (int)p->n;
    if (p->precision == 's')
        cblas_sgemm(CblasColMajor, CblasNoTrans, CblasNoTrans, n, n, n, 1, p->a, n, p->b, n, 1,
                    p->c, n);
    else
        cblas_dgemm(CblasColMajor, CblasNoTrans, CblasNoTrans, n, n, n, 1, p->a, n, p->b, n, 1,
                    p->c, n);
    return true;
}

/* Flops of the leading terms, as LAPACK's working note 41 counts them. */
static const struct operation {
    const char *name;
    bool (*run)(struct problem *problem);
    double cubes; /* flops / n^3 */
    bool symmetric, product;
} operations[] = {
    {"cholesky", cholesky, 1.0 / 3, true, false},
    {"lu", lu, 2.0 / 3, false, false},
    {"gemm", gemm, 2, false, true},
};

enum { OPERATIONS = sizeof operations / sizeof operations[0] };

/* A new matrix, and what the result's product with x has to be. */
static void prepare(struct problem *p, const struct operation *operation)
{
    if (operation->symmetric)
        fill_positive(p->a, p->precision, p->n, 1);
    else
        fill_values(p->a, p->precision, p->n * p->n, 1);
    if (operation->product) {
        memset(p->c, 0, p->n * p->n * element_bytes(p->precision));
        multiply(p->b, p->precision, p->n, p->x, p->found);
        multiply(p->a, p->precision, p->n, p->found, p->right);
    } else {
        multiply(p->a, p->precision, p->n, p->x, p->right);
    }
}

static bool is_right(struct problem *p, const struct operation *operation)
{
    if (operation->product) {
        multiply(p->c, p->precision, p->n, p->x, p->found);
    } else {
        memcpy(p->found, p->x, p->n * element_bytes(p->precision));
        for (size_t i = 0; i < p->n; i++)
            p->pivots[i] = p->narrow[i];
        multiply_factors(p->a, p->precision, p->n, operation->symmetric ? NULL : p->pivots,
                         p->found);
    }
    return residual(p->precision, p->n, p->found, p->right) < RESIDUAL_MOST;
}

static void allocate(struct problem *p, bool product)
{
    size_t bytes = p->n * p->n * element_bytes(p->precision);
    p->a = zeroed(bytes);
    p->b = zeroed(product ? bytes : 1);
    p->c = zeroed(product ? bytes : 1);
    p->narrow = zeroed(p->n * sizeof *p->narrow);
    p->pivots = zeroed(p->n * sizeof *p->pivots);
    p->x = zeroed(p->n * sizeof(double));
    p->found = zeroed(p->n * sizeof(double));
    p->right = zeroed(p->n * sizeof(double));
    fill_values(p->x, p->precision, p->n, 3);
    if (product)
        fill_values(p->b, p->precision, p->n * p->n, 2);
}

int main(int argc, char **argv)
{
    size_t o = 0;
    while (o < OPERATIONS && (argc < 5 || strcmp(operations[o].name, argv[1]) != 0))
        o++;
    struct problem problem = {.precision = argc > 2 ? *argv[2] : 0,
                              .n = argc > 3 ? strtoul(argv[3], NULL, 10) : 0};
    int threads = argc > 4 ? (int)strtol(argv[4], NULL, 10) : 0;
    size_t repeats = argc > 5 ? strtoul(argv[5], NULL, 10) : 1;
    if (o == OPERATIONS || (problem.precision != 's' && problem.precision != 'd') || !problem.n ||
        problem.n > INT32_MAX || threads < 1) {
        fprintf(stderr, "usage: lapack cholesky|lu|gemm s|d N THREADS [REPEATS]\n");
        return 2;
    }
    openblas_set_num_threads(threads);
    allocate(&problem, operations[o].product);
    double n = (double)problem.n;
    for (size_t i = 0; i < repeats; i++) {
        prepare(&problem, &operations[o]);
        double start = seconds();
        bool done = operations[o].run(&problem);
        double elapsed = seconds() - start;
        if (!done || !is_right(&problem, &operations[o])) {
            fprintf(stderr, "lapack: %s\n", done ? "a wrong result" : "LAPACK says that it failed");
            return 1;
        }
        printf("{\"operation\": \"%s\", \"n\": %zu, \"threads\": %d, \"seconds\": %.6f, "
               "\"gflops\": %.3f}\n",
               operations[o].name, problem.n, threads, elapsed,
               1e-9 * operations[o].cubes * n * n * n / elapsed);
    }
    return 0; /* the process's memory goes with it */
}
