/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What duet's factorisations are measured beside: OpenBLAS's own dpotrf, dgetrf (with pivoting) and
 * dgemm on its own threads, or spotrf, sgetrf and sgemm. Fills matrices, runs, and checks the
 * result on a random vector. Built twice: REAL is double and PREFIX d, or float and s.
 *
 * Usage: lapack_d cholesky|lu|gemm N THREADS [REPEATS]
 * Prints a JSON object a line for each repeat: seconds, and flops a second in 10^9.
 */
#include <math.h>
#include <stdint.h>

#include <cblas.h>
#include <lapacke.h>

#include "bench/timing.h"

#define JOIN(a, b, c) a##b##c
#define NAME(a, b, c) JOIN(a, b, c)
#define BLAS(name) NAME(cblas_, PREFIX, name)
#define LAPACK(name) NAME(LAPACKE_, PREFIX, name##_work)

typedef REAL real;

struct problem {
    size_t n;
    real *a, *b, *c; /* n x n, column-major; b and c for gemm only */
    lapack_int *pivots;
    real *x, *y, *z; /* vectors of n to check with */
};

/* Uniform in [-0.5, 0.5), by xorshift (Marsaglia, 2003). */
static double draw(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return (double)(*state >> 11) * 0x1p-53 - 0.5;
}

static void fill(real *values, size_t count, uint64_t seed)
{
    for (size_t i = 0; i < count; i++)
        values[i] = (real)draw(&seed);
}

static void require(int good, const char *what)
{
    if (good)
        return;
    fprintf(stderr, "lapack: %s\n", what);
    exit(1);
}

/* A: random; for Cholesky symmetric, with a diagonal that makes it positive definite. */
static void fill_matrix(struct problem *problem, int symmetric)
{
    size_t n = problem->n;
    fill(problem->a, n * n, 1);
    for (size_t j = 0; symmetric && j < n; j++) {
        problem->a[j * n + j] += (real)n;
        for (size_t i = 0; i < j; i++)
            problem->a[j * n + i] = problem->a[i * n + j];
    }
}

/* y := M x for the n x n matrix M */
static void multiply(const struct problem *problem, const real *matrix, const real *x, real *y)
{
    int n = (int)problem->n;
    BLAS(gemv)(CblasColMajor, CblasNoTrans, n, n, 1, matrix, n, x, 1, 0, y, 1);
}

/* The largest difference of z and y in units of n eps must be small. */
static void compare(const struct problem *problem, const real *z, const real *y)
{
    const double threshold = 30, epsilon = sizeof(real) == sizeof(float) ? 0x1p-24 : 0x1p-53;
    double difference = 0, scale = 0;
    for (size_t i = 0; i < problem->n; i++) {
        difference = fmax(difference, fabs((double)z[i] - (double)y[i]));
        scale = fmax(scale, fabs((double)y[i]));
    }
    require(difference <= threshold * epsilon * (double)problem->n * scale, "a wrong result");
}

static double cholesky(struct problem *problem)
{
    int n = (int)problem->n;
    fill_matrix(problem, 1);
    multiply(problem, problem->a, problem->x, problem->y);
    double start = seconds();
    require(LAPACK(potrf)(LAPACK_COL_MAJOR, 'L', n, problem->a, n) == 0, "potrf failed");
    double elapsed = seconds() - start;
    memcpy(problem->z, problem->x, problem->n * sizeof(real));
    BLAS(trmv)
    (CblasColMajor, CblasLower, CblasTrans, CblasNonUnit, n, problem->a, n, problem->z, 1);
    BLAS(trmv)
    (CblasColMajor, CblasLower, CblasNoTrans, CblasNonUnit, n, problem->a, n, problem->z, 1);
    compare(problem, problem->z, problem->y);
    return elapsed;
}

static double lu(struct problem *problem)
{
    int n = (int)problem->n;
    fill_matrix(problem, 0);
    multiply(problem, problem->a, problem->x, problem->y);
    double start = seconds();
    require(LAPACK(getrf)(LAPACK_COL_MAJOR, n, n, problem->a, n, problem->pivots) == 0,
            "getrf failed");
    double elapsed = seconds() - start;
    memcpy(problem->z, problem->x, problem->n * sizeof(real));
    BLAS(trmv)
    (CblasColMajor, CblasUpper, CblasNoTrans, CblasNonUnit, n, problem->a, n, problem->z, 1);
    BLAS(trmv)(CblasColMajor, CblasLower, CblasNoTrans, CblasUnit, n, problem->a, n, problem->z, 1);
    require(LAPACK(laswp)(LAPACK_COL_MAJOR, 1, problem->z, n, 1, n, problem->pivots, -1) == 0,
            "laswp failed");
    compare(problem, problem->z, problem->y);
    return elapsed;
}

/* C := A B + C */
static double gemm(struct problem *problem)
{
    int n = (int)problem->n;
    size_t elements = problem->n * problem->n;
    fill_matrix(problem, 0);
    fill(problem->b, elements, 2);
    memset(problem->c, 0, elements * sizeof(real));
    double start = seconds();
    BLAS(gemm)
    (CblasColMajor, CblasNoTrans, CblasNoTrans, n, n, n, 1, problem->a, n, problem->b, n, 1,
     problem->c, n);
    double elapsed = seconds() - start;
    multiply(problem, problem->b, problem->x, problem->z);
    multiply(problem, problem->a, problem->z, problem->y);
    multiply(problem, problem->c, problem->x, problem->z);
    compare(problem, problem->z, problem->y);
    return elapsed;
}

/* Flops of the leading terms, as LAPACK's working note 41 counts them. */
static const struct {
    const char *name;
    double (*run)(struct problem *problem);
    double cubes; /* flops / n^3 */
    int matrices;
} operations[] = {
    {"cholesky", cholesky, 1.0 / 3, 1},
    {"lu", lu, 2.0 / 3, 1},
    {"gemm", gemm, 2, 3},
};

enum { OPERATIONS = sizeof operations / sizeof operations[0] };

static void allocate(struct problem *problem, int matrices)
{
    size_t bytes = problem->n * problem->n * sizeof(real);
    problem->a = zeroed(bytes);
    problem->b = matrices > 1 ? zeroed(bytes) : NULL;
    problem->c = matrices > 1 ? zeroed(bytes) : NULL;
    problem->pivots = zeroed(problem->n * sizeof *problem->pivots);
    problem->x = zeroed(problem->n * sizeof(real));
    problem->y = zeroed(problem->n * sizeof(real));
    problem->z = zeroed(problem->n * sizeof(real));
    fill(problem->x, problem->n, 3);
}

static void release(struct problem *problem)
{
    free(problem->a);
    free(problem->b);
    free(problem->c);
    free(problem->pivots);
    free(problem->x);
    free(problem->y);
    free(problem->z);
}

int main(int argc, char **argv)
{
    size_t o = 0;
    while (o < OPERATIONS && (argc < 4 || strcmp(operations[o].name, argv[1]) != 0))
        o++;
    struct problem problem = {.n = argc > 2 ? strtoul(argv[2], NULL, 10) : 0};
    int threads = argc > 3 ? (int)strtol(argv[3], NULL, 10) : 0;
    size_t repeats = argc > 4 ? strtoul(argv[4], NULL, 10) : 1;
    if (o == OPERATIONS || !problem.n || problem.n > INT32_MAX || threads < 1) {
        fprintf(stderr, "usage: lapack_d cholesky|lu|gemm N THREADS [REPEATS]\n");
        return 2;
    }
    openblas_set_num_threads(threads);
    allocate(&problem, operations[o].matrices);
    double n = (double)problem.n;
    for (size_t i = 0; i < repeats; i++) {
        double elapsed = operations[o].run(&problem);
        printf("{\"operation\": \"%s\", \"n\": %zu, \"threads\": %d, \"seconds\": %.6f, "
               "\"gflops\": %.3f}\n",
               operations[o].name, problem.n, threads, elapsed,
               1e-9 * operations[o].cubes * n * n * n / elapsed);
    }
    release(&problem);
    return 0;
}
