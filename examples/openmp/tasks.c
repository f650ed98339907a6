/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Six programs with OpenMP's tasks, as others write them: nothing here knows of duet. Recorded by
 * `duet record`, they become task graphs (docs/openmp.md). They check what they have computed.
 *
 *     cc -O2 -g -fopenmp tasks.c -o tasks -lm
 *     ./tasks cholesky|sparse-lu|jacobi|strassen|sort|queens [N [BLOCK]]
 *
 * N is the number of blocks of a row (cholesky, sparse-lu), of blocks and of sweeps (jacobi), of
 * rows (strassen), of elements (sort), or of queens; BLOCK the rows of a block, or where recursion
 * ends.
 */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static double *zeros(size_t count)
{
    double *made = calloc(count, sizeof *made);
    if (!made)
        abort();
    return made;
}

static double noise(size_t i)
{
    return (double)((i * 2654435761U + 12345) % 1000) / 1000;
}

/* ------------------------------------------------------------------------------------------- */
/* Factorisations of n x n tiles of b x b, each tile row by row; a tile of zeros may be NULL     */

static double get(double *const *tiles, size_t n, size_t b, size_t row, size_t column)
{
    const double *tile = tiles[row / b * n + column / b];
    return tile ? tile[row % b * b + column % b] : 0;
}

/* A symmetric matrix with a large diagonal. */
static double **make_tiles(size_t n, size_t b, int sparse)
{
    double **tiles = calloc(n * n, sizeof *tiles);
    if (!tiles)
        abort();
    for (size_t k = 0; k < n * n; k++) {
        size_t i = k / n, j = k % n;
        if (sparse && i != j && (i + 2 * j) % 3 != 0)
            continue;
        tiles[k] = zeros(b * b);
        for (size_t e = 0; e < b * b; e++) {
            size_t row = i * b + e / b, column = j * b + e % b;
            tiles[k][e] = row == column
                              ? 2.0 * (double)(n * b)
                              : noise(row < column ? row * 7919 + column : column * 7919 + row);
        }
    }
    return tiles;
}

/* Returns the largest difference of L U and the matrix; U is L's transpose, or has its own
 * diagonal. */
static double residual(double *const *tiles, double *const *before, size_t n, size_t b, int lu)
{
    double worst = 0;
    for (size_t i = 0; i < n * b; i++)
        for (size_t j = 0; j <= i || (lu && j < n * b); j++) {
            double sum = 0;
            for (size_t k = 0; k <= (i < j ? i : j); k++)
                sum += (lu && k == i ? 1 : get(tiles, n, b, i, k)) *
                       (lu ? get(tiles, n, b, k, j) : get(tiles, n, b, j, k));
            worst = fmax(worst, fabs(sum - get(before, n, b, i, j)));
        }
    return worst;
}

static void potrf(double *a, size_t b)
{
    for (size_t k = 0; k < b; k++) {
        a[k * b + k] = sqrt(a[k * b + k]);
        for (size_t i = k + 1; i < b; i++)
            a[i * b + k] /= a[k * b + k];
        for (size_t i = k + 1; i < b; i++)
            for (size_t j = k + 1; j <= i; j++)
                a[i * b + j] -= a[i * b + k] * a[j * b + k];
    }
}

static void trsm(const double *l, double *a, size_t b)
{
    for (size_t i = 0; i < b; i++)
        for (size_t j = 0; j < b; j++) {
            for (size_t k = 0; k < j; k++)
                a[i * b + j] -= a[i * b + k] * l[j * b + k];
            a[i * b + j] /= l[j * b + j];
        }
}

/* c -= a times the transpose of d */
static void gemm(const double *a, const double *d, double *c, size_t b)
{
    for (size_t i = 0; i < b; i++)
        for (size_t j = 0; j < b; j++)
            for (size_t k = 0; k < b; k++)
                c[i * b + j] -= a[i * b + k] * d[j * b + k];
}

static int cholesky(size_t n, size_t b)
{
    double **a = make_tiles(n, b, 0), **before = make_tiles(n, b, 0);
#pragma omp parallel
#pragma omp single
    for (size_t k = 0; k < n; k++) {
        double *kk = a[k * n + k];
#pragma omp task depend(inout : kk[0])
        potrf(kk, b);
        for (size_t i = k + 1; i < n; i++) {
            double *ik = a[i * n + k];
#pragma omp task depend(in : kk[0]) depend(inout : ik[0])
            trsm(kk, ik, b);
        }
        for (size_t i = k + 1; i < n; i++) {
            for (size_t j = k + 1; j <= i; j++) {
                double *ik = a[i * n + k], *jk = a[j * n + k], *ij = a[i * n + j];
#pragma omp task depend(in : ik[0], jk[0]) depend(inout : ij[0])
                gemm(ik, jk, ij, b);
            }
        }
    }
    return residual(a, before, n, b, 0) < 1e-6;
}

static void lu(double *a, size_t b)
{
    for (size_t k = 0; k < b; k++)
        for (size_t i = k + 1; i < b; i++) {
            a[i * b + k] /= a[k * b + k];
            for (size_t j = k + 1; j < b; j++)
                a[i * b + j] -= a[i * b + k] * a[k * b + j];
        }
}

static void forward(const double *d, double *a, size_t b)
{
    for (size_t k = 0; k < b; k++)
        for (size_t i = k + 1; i < b; i++)
            for (size_t j = 0; j < b; j++)
                a[i * b + j] -= d[i * b + k] * a[k * b + j];
}

static void divide(const double *d, double *a, size_t b)
{
    for (size_t i = 0; i < b; i++)
        for (size_t k = 0; k < b; k++) {
            a[i * b + k] /= d[k * b + k];
            for (size_t j = k + 1; j < b; j++)
                a[i * b + j] -= a[i * b + k] * d[k * b + j];
        }
}

static void update(const double *left, const double *top, double *a, size_t b)
{
    for (size_t i = 0; i < b; i++)
        for (size_t k = 0; k < b; k++)
            for (size_t j = 0; j < b; j++)
                a[i * b + j] -= left[i * b + k] * top[k * b + j];
}

static int sparse_lu(size_t n, size_t b)
{
    double **a = make_tiles(n, b, 1), **before = make_tiles(n, b, 1);
#pragma omp parallel
#pragma omp single
    for (size_t k = 0; k < n; k++) {
        double *kk = a[k * n + k];
#pragma omp task depend(inout : kk[0])
        lu(kk, b);
        for (size_t j = k + 1; j < n; j++) {
            double *kj = a[k * n + j];
            if (kj) {
#pragma omp task depend(in : kk[0]) depend(inout : kj[0])
                forward(kk, kj, b);
            }
        }
        for (size_t i = k + 1; i < n; i++) {
            double *ik = a[i * n + k];
            if (ik) {
#pragma omp task depend(in : kk[0]) depend(inout : ik[0])
                divide(kk, ik, b);
            }
        }
        for (size_t i = k + 1; i < n; i++) {
            for (size_t j = k + 1; j < n; j++) {
                double *ik = a[i * n + k], *kj = a[k * n + j], *ij = a[i * n + j];
                if (!ik || !kj)
                    continue;
                if (!ij)
                    ij = a[i * n + j] = zeros(b * b);
#pragma omp task depend(in : ik[0], kj[0]) depend(inout : ij[0])
                update(ik, kj, ij, b);
            }
        }
    }
    return residual(a, before, n, b, 1) < 1e-6;
}

/* ------------------------------------------------------------------------------------------- */

static void sweep(const double *from, double *to, size_t begin, size_t end, size_t width)
{
    for (size_t i = begin; i < end; i++)
        for (size_t j = 1; j + 1 < width; j++)
            to[i * width + j] = 0.25 * (from[(i - 1) * width + j] + from[(i + 1) * width + j] +
                                        from[i * width + j - 1] + from[i * width + j + 1]);
}

/* n sweeps over n blocks of b rows; block i waits for its neighbours' last sweep. */
static int jacobi(size_t n, size_t b)
{
    size_t width = n * b + 2;
    double *grids[2] = {zeros(width * width), zeros(width * width)};
    double *check[2] = {zeros(width * width), zeros(width * width)};
    for (size_t i = 0; i < width * width; i++)
        grids[0][i] = grids[1][i] = check[0][i] = check[1][i] = noise(i);
#pragma omp parallel
#pragma omp single
    for (size_t s = 0; s < n; s++) {
        double *from = grids[s % 2], *to = grids[1 - s % 2];
        for (size_t i = 0; i < n; i++) {
            /* a block is known by its first row; the border is in none, and nobody writes it */
            const double *above = i ? &from[((i - 1) * b + 1) * width] : from;
            const double *own = &from[(i * b + 1) * width], *below = own + b * width;
            double *out = &to[(i * b + 1) * width];
            (void)above, (void)own, (void)below, (void)out; /* only the clauses use them */
#pragma omp task depend(in : above[0], own[0], below[0]) depend(out : out[0])
            sweep(from, to, i * b + 1, (i + 1) * b + 1, width);
        }
    }
    for (size_t s = 0; s < n; s++)
        sweep(check[s % 2], check[1 - s % 2], 1, width - 1, width);
    return memcmp(grids[n % 2], check[n % 2], width * width * sizeof(double)) == 0;
}

/* ------------------------------------------------------------------------------------------- */
/* Recursion                                                                                    */

/* Returns part p of a matrix of 2 h rows, of `stride` a row; or the sum with part q. */
static double *part(const double *a, size_t h, size_t stride, int p, int q, double sign)
{
    double *made = zeros(h * h);
    for (size_t i = 0; i < h; i++)
        for (size_t j = 0; j < h; j++) {
            made[i * h + j] = a[(i + p / 2 * h) * stride + j + p % 2 * h];
            if (q >= 0)
                made[i * h + j] += sign * a[(i + q / 2 * h) * stride + j + q % 2 * h];
        }
    return made;
}

static void multiply(const double *a, const double *b, double *c, size_t n)
{
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < n; k++)
            for (size_t j = 0; j < n; j++)
                c[i * n + j] += a[i * n + k] * b[k * n + j];
}

/* c = a b, by seven products of halves. */
static void strassen(const double *a, const double *b, double *c, size_t n, size_t least)
{
    static const int of_a[7][3] = {{0, 3, 1}, {2, 3, 1},  {0, -1, 1}, {3, -1, 1},
                                   {0, 1, 1}, {2, 0, -1}, {1, 3, -1}};
    static const int of_b[7][3] = {{0, 3, 1},  {0, -1, 1}, {1, 3, -1}, {2, 0, -1},
                                   {3, -1, 1}, {0, 1, 1},  {2, 3, 1}};
    size_t h = n / 2;
    double *m[7];
    if (n <= least) {
        multiply(a, b, c, n);
        return;
    }
    for (int i = 0; i < 7; i++) {
        m[i] = zeros(h * h);
#pragma omp task shared(m)
        {
            double *left = part(a, h, n, of_a[i][0], of_a[i][1], of_a[i][2]);
            double *right = part(b, h, n, of_b[i][0], of_b[i][1], of_b[i][2]);
            strassen(left, right, m[i], h, least);
            free(left);
            free(right);
        }
    }
#pragma omp taskwait
    for (size_t i = 0; i < h; i++)
        for (size_t j = 0; j < h; j++) {
            size_t e = i * h + j;
            c[i * n + j] = m[0][e] + m[3][e] - m[4][e] + m[6][e];
            c[i * n + j + h] = m[2][e] + m[4][e];
            c[(i + h) * n + j] = m[1][e] + m[3][e];
            c[(i + h) * n + j + h] = m[0][e] - m[1][e] + m[2][e] + m[5][e];
        }
    for (int i = 0; i < 7; i++)
        free(m[i]);
}

static int run_strassen(size_t n, size_t least)
{
    double *a = zeros(n * n), *b = zeros(n * n), *c = zeros(n * n), *check = zeros(n * n);
    double worst = 0;
    for (size_t i = 0; i < n * n; i++) {
        a[i] = noise(i);
        b[i] = noise(i + n * n);
    }
#pragma omp parallel
#pragma omp single
    strassen(a, b, c, n, least);
    multiply(a, b, check, n);
    for (size_t i = 0; i < n * n; i++)
        worst = fmax(worst, fabs(c[i] - check[i]));
    return worst < 1e-8 * (double)n;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void merge(double *values, size_t middle, size_t n, double *space)
{
    size_t i = 0, j = middle;
    memcpy(space, values, n * sizeof *values);
    for (size_t k = 0; k < n; k++)
        values[k] = j == n || (i < middle && space[i] <= space[j]) ? space[i++] : space[j++];
}

static void merge_sort(double *values, double *space, size_t n, size_t least)
{
    if (n <= least) {
        qsort(values, n, sizeof *values, compare);
        return;
    }
#pragma omp task
    merge_sort(values, space, n / 2, least);
#pragma omp task if (n > 4 * least)
    merge_sort(values + n / 2, space + n / 2, n - n / 2, least);
#pragma omp taskwait
    merge(values, n / 2, n, space);
}

static int sort(size_t n, size_t least)
{
    double *values = zeros(n), *space = zeros(n);
    int sorted = 1;
    for (size_t i = 0; i < n; i++)
        values[i] = noise(i * 31);
#pragma omp parallel
    {
#pragma omp single nowait
        merge_sort(values, space, n, least);
    }
    for (size_t i = 1; i < n; i++)
        sorted &= values[i - 1] <= values[i];
    return sorted;
}

/* Counts the ways to put n - row queens into the rows from `row` on, by the columns and diagonals
 * taken. */
static int queens(unsigned n, unsigned row, unsigned columns, unsigned left, unsigned right,
                  unsigned deep)
{
    int found = 0;
    if (row == n)
        return 1;
    if (row >= deep) {
        for (unsigned c = 0; c < n; c++)
            if (!((columns | left | right) >> c & 1))
                found += queens(n, row + 1, columns | 1U << c, (left | 1U << c) << 1,
                                (right | 1U << c) >> 1, deep);
        return found;
    }
#pragma omp taskgroup
    for (unsigned c = 0; c < n; c++)
        if (!((columns | left | right) >> c & 1)) {
#pragma omp task shared(found)
            {
                int below = queens(n, row + 1, columns | 1U << c, (left | 1U << c) << 1,
                                   (right | 1U << c) >> 1, deep);
#pragma omp atomic
                found += below;
            }
        }
    return found;
}

static int run_queens(size_t n, size_t deep)
{
    static const int known[] = {1, 1, 0, 0, 2, 10, 4, 40, 92, 352, 724, 2680, 14200, 73712};
    int found = 0;
#pragma omp parallel
#pragma omp master
    found = queens((unsigned)n, 0, 0, 0, 0, (unsigned)deep);
    return n < sizeof known / sizeof known[0] && found == known[n];
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        int (*run)(size_t n, size_t block);
        size_t n, block;
    } programs[] = {
        {"cholesky", cholesky, 10, 64}, {"sparse-lu", sparse_lu, 12, 64},
        {"jacobi", jacobi, 16, 64},     {"strassen", run_strassen, 512, 64},
        {"sort", sort, 1000000, 10000}, {"queens", run_queens, 11, 3},
    };
    for (size_t i = 0; argc > 1 && i < sizeof programs / sizeof programs[0]; i++)
        if (strcmp(argv[1], programs[i].name) == 0) {
            size_t n = argc > 2 ? (size_t)strtoul(argv[2], NULL, 10) : programs[i].n;
            size_t block = argc > 3 ? (size_t)strtoul(argv[3], NULL, 10) : programs[i].block;
            int right = programs[i].run(n, block);
            printf("%s: %s\n", argv[1], right ? "right" : "wrong");
            return !right;
        }
    fprintf(stderr, "tasks cholesky|sparse-lu|jacobi|strassen|sort|queens [N [BLOCK]]\n");
    return 2;
}
