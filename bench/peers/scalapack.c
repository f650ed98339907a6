/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ScaLAPACK's Cholesky and LU factorisations over the processes of mpirun, for
 * bench/distributed.py: `scalapack cholesky|lu N TILE ROWS COLS REPEATS`, double precision. Prints
 * a JSON object with the rate of every repeat after one that warms up. The solution of a system is
 * checked; a wrong one is status 1.
 */
#include <math.h>
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ScaLAPACK has no header for C. */
void Cblacs_get(int context, int what, int *value);
void Cblacs_gridinit(int *context, const char *order, int rows, int cols);
void Cblacs_gridinfo(int context, int *rows, int *cols, int *row, int *col);
int numroc_(const int *n, const int *tile, const int *place, const int *first, const int *count);
void descinit_(int *desc, const int *m, const int *n, const int *mb, const int *nb, const int *row,
               const int *col, const int *context, const int *stride, int *info);
void pdpotrf_(const char *uplo, const int *n, double *a, const int *i, const int *j,
              const int *desc, int *info);
void pdpotrs_(const char *uplo, const int *n, const int *nrhs, const double *a, const int *i,
              const int *j, const int *desc, double *b, const int *ib, const int *jb,
              const int *descb, int *info);
void pdgetrf_(const int *m, const int *n, double *a, const int *i, const int *j, const int *desc,
              int *pivots, int *info);
void pdgetrs_(const char *trans, const int *n, const int *nrhs, const double *a, const int *i,
              const int *j, const int *desc, const int *pivots, double *b, const int *ib,
              const int *jb, const int *descb, int *info);

/* Place of this process in the grid, and its part of the matrix. */
struct part {
    int n, tile, rows, cols, row, col, local_rows, local_cols, desc[9], right_desc[9];
};

static const int ZERO = 0, ONE = 1;

/* Element of a symmetric matrix whose diagonal is greater than the rest of its row. */
static double element(uint64_t i, uint64_t j, int n)
{
    uint64_t hash = (i < j ? i << 32 | j : j << 32 | i) * UINT64_C(0x9E3779B97F4A7C15);
    return i == j ? n : (double)(hash >> 40) * 0x1p-24;
}

/* Returns the global number of a local row or column. */
static uint64_t global(int local, int tile, int place, int count)
{
    return ((uint64_t)(local / tile) * (uint64_t)count + (uint64_t)place) * (uint64_t)tile +
           (uint64_t)(local % tile);
}

/* Fills the matrix, and the right side with its product with a vector of ones. */
static void fill(const struct part *p, double *a, double *right)
{
    for (int j = 0; j < p->local_cols; j++)
        for (int i = 0; i < p->local_rows; i++)
            a[(size_t)j * (size_t)p->local_rows + (size_t)i] =
                element(global(i, p->tile, p->row, p->rows), global(j, p->tile, p->col, p->cols),
                        p->n);
    for (int i = 0; i < p->local_rows; i++) {
        right[i] = 0;
        for (int j = 0; j < p->n; j++)
            right[i] += element(global(i, p->tile, p->row, p->rows), (uint64_t)j, p->n);
    }
}

/* Makes one factorisation and returns its seconds; *error: largest error of the solution. */
static double factorize(const struct part *p, int lu, double *a, double *right, int *pivots,
                        double *error)
{
    int info = 0;
    fill(p, a, right);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Pcontrol(1); /* only messages of the factorisation are counted */
    double start = MPI_Wtime();
    if (lu)
        pdgetrf_(&p->n, &p->n, a, &ONE, &ONE, p->desc, pivots, &info);
    else
        pdpotrf_("L", &p->n, a, &ONE, &ONE, p->desc, &info);
    MPI_Pcontrol(0);
    MPI_Barrier(MPI_COMM_WORLD);
    double seconds = MPI_Wtime() - start, own = info;
    if (lu)
        pdgetrs_("N", &p->n, &ONE, a, &ONE, &ONE, p->desc, pivots, right, &ONE, &ONE, p->right_desc,
                 &info);
    else
        pdpotrs_("L", &p->n, &ONE, a, &ONE, &ONE, p->desc, right, &ONE, &ONE, p->right_desc, &info);
    for (int i = 0; i < p->local_rows && p->col == 0; i++)
        own = fmax(own, fabs(right[i] - 1));
    MPI_Allreduce(&own, error, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return seconds;
}

static int number(const char *text)
{
    return (int)strtol(text, NULL, 10);
}

int main(int argc, char **argv)
{
    struct part p = {0};
    int context = 0, info = 0;
    MPI_Init(&argc, &argv);
    if (argc != 7) {
        fprintf(stderr, "scalapack cholesky|lu N TILE ROWS COLS REPEATS\n");
        return 2;
    }
    int lu = strcmp(argv[1], "lu") == 0, repeats = number(argv[6]);
    p.n = number(argv[2]);
    p.tile = number(argv[3]);
    Cblacs_get(-1, 0, &context);
    Cblacs_gridinit(&context, "Row", number(argv[4]), number(argv[5]));
    Cblacs_gridinfo(context, &p.rows, &p.cols, &p.row, &p.col);
    p.local_rows = numroc_(&p.n, &p.tile, &p.row, &ZERO, &p.rows);
    p.local_cols = numroc_(&p.n, &p.tile, &p.col, &ZERO, &p.cols);
    descinit_(p.desc, &p.n, &p.n, &p.tile, &p.tile, &ZERO, &ZERO, &context, &p.local_rows, &info);
    descinit_(p.right_desc, &p.n, &ONE, &p.tile, &p.tile, &ZERO, &ZERO, &context, &p.local_rows,
              &info);
    double *a = calloc((size_t)p.local_rows * (size_t)p.local_cols + 1, sizeof *a);
    double *right = calloc((size_t)p.local_rows + 1, sizeof *right), worst = 0, error = 0;
    int *pivots = calloc((size_t)(p.local_rows + p.tile) + 1, sizeof *pivots);
    int talks = p.row == 0 && p.col == 0;
    if (talks)
        printf("{\"peer\": \"scalapack\", \"unit\": \"Gflop/s\", \"values\": [");
    for (int i = 0; i <= repeats && a && right && pivots; i++) {
        double seconds = factorize(&p, lu, a, right, pivots, &error);
        worst = fmax(worst, error);
        if (talks && i > 0)
            printf("%s%.9g", i > 1 ? ", " : "",
                   (lu ? 2e-9 : 1e-9) / 3 * p.n * (double)p.n * p.n / seconds);
    }
    int wrong = !(worst < 1e-8) || !a || !right || !pivots;
    if (talks)
        printf("], \"verified\": %s}\n", wrong ? "false" : "true");
    free(a);
    free(right);
    free(pivots);
    MPI_Finalize();
    return wrong;
}
