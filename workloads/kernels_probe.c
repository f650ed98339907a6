/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Judging by a random vector. Factorisations too large to be multiplied out: the product of the
 * factors and the initial matrix are both applied to it, in n^2 operations instead of n^3.
 */
#include <float.h>
#include <math.h>
#include <stdlib.h>

#include "workloads/kernels.h"
#include "workloads/tiles.h"

enum { PIECE = 512 /* elements of a column of A made at a time */ };

int duet__vectors_init(struct duet__vector *vectors, unsigned count, uint64_t n)
{
    int error = 0;
    for (unsigned v = 0; v < count; v++) {
        vectors[v].value = calloc(n, sizeof *vectors[v].value);
        vectors[v].gauge = calloc(n, sizeof *vectors[v].gauge);
        error = vectors[v].value && vectors[v].gauge ? error : DUET_ENOMEM;
    }
    return error;
}

void duet__vectors_fini(struct duet__vector *vectors, unsigned count)
{
    for (unsigned v = 0; v < count; v++) {
        free(vectors[v].value);
        free(vectors[v].gauge);
    }
}

void duet__vector_draw(struct duet__vector *x, uint64_t n, uint64_t key)
{
    const struct duet__storage numbers = {.element_bytes = 8, .contents = DUET__RANDOM, .key = key};
    for (uint64_t j = 0; j < n; j++) {
        double number = duet__storage_initial(&numbers, j, 0);
        x->gauge[j] = fabs(number) + 0.5;
        x->value[j] = number < 0 ? -x->gauge[j] : x->gauge[j];
    }
}

double duet__vector_error(const struct duet__vector *y, uint64_t n, size_t element_bytes)
{
    double roundoff = element_bytes == 4 ? (double)FLT_EPSILON / 2 : DBL_EPSILON / 2, worst = 0;
    for (uint64_t i = 0; i < n; i++) {
        double ratio = fabs((double)y->value[i]) / (roundoff * y->gauge[i]);
        if (isnan(ratio))
            return ratio;
        worst = fmax(worst, ratio);
    }
    return worst;
}

static void add_term(struct duet__vector *to, uint64_t i, double factor,
                     const struct duet__vector *from, uint64_t j)
{
    to->value[i] += factor * from->value[j];
    to->gauge[i] += fabs(factor) * from->gauge[j];
}

/* ------------------------------------------------------------------------------------------- */
/* The elements that are stored, column by column of their tiles                                */

struct pass {
    const struct duet__storage *matrix;
    const struct duet__judging *how;
    duet__element_fn *fn;
    void *self;
    bool by_column;
};

/* Passes over rows [first, end) of a column, all in one tile. */
static void each_of_column(const struct pass *pass, uint64_t first, uint64_t end, uint64_t j)
{
    const struct duet__storage *a = pass->matrix;
    double piece[PIECE];
    size_t ld;
    const char *tile =
        duet__storage_tile(a, (uint32_t)(first / a->tile_rows), (uint32_t)(j / a->tile_cols), &ld);
    const void *column = tile + (j % a->tile_cols * ld + first % a->tile_rows) * a->element_bytes;
    for (uint64_t i = first; i < end; i += PIECE) {
        size_t count = end - i < PIECE ? (size_t)(end - i) : PIECE;
        for (size_t r = 0; r < count; r++)
            piece[r] = a->element_bytes == 4 ? (double)((const float *)column)[i - first + r]
                                             : ((const double *)column)[i - first + r];
        for (size_t r = 0; r < count; r++)
            pass->fn(pass->self, i + r, j, piece[r]);
    }
}

/* Passes over columns, or else rows, [first, end). */
static void each_of_part(void *self, uint64_t first, uint64_t end)
{
    const struct pass *pass = self;
    const struct duet__storage *a = pass->matrix;
    uint64_t j = pass->by_column ? first : 0, last_col = pass->by_column ? end : a->cols;
    uint64_t last_row = pass->by_column ? a->rows : end, stop;
    for (; j < last_col && !duet__judging_stopped(pass->how); j++) {
        uint64_t top = a->lower ? j - j % a->tile_cols : 0; /* first stored row */
        for (uint64_t i = pass->by_column || first < top ? top : first; i < last_row; i = stop) {
            stop = i - i % a->tile_rows + a->tile_rows;
            stop = stop < last_row ? stop : last_row;
            each_of_column(pass, i, stop, j);
        }
    }
}

void duet__each_element(const struct duet__storage *a, const struct duet__judging *how,
                        duet__element_fn *fn, void *self, bool by_column)
{
    struct pass pass = {a, how, fn, self, by_column};
    duet__share(by_column ? a->cols : a->rows, a->rows * a->cols, each_of_part, &pass);
}

/* ------------------------------------------------------------------------------------------- */
/* The matrix as it was filled                                                                  */

struct product {
    const struct duet__storage *matrix;
    const struct duet__judging *how;
    const struct duet__vector *x;
    struct duet__vector *y;
};

/* Adds to rows [first, end) of y the product A x from stored elements: of a symmetric A the lower
 * triangle. */
static void initial_rows(void *self, uint64_t first, uint64_t end)
{
    const struct product *p = self;
    double piece[PIECE];
    for (uint64_t j = 0; j < p->matrix->cols && !duet__judging_stopped(p->how); j++) {
        for (uint64_t i = p->matrix->lower && first < j ? j : first; i < end; i += PIECE) {
            size_t count = end - i < PIECE ? (size_t)(end - i) : PIECE;
            duet__storage_initial_column(p->matrix, i, j, count, piece);
            for (size_t r = 0; r < count; r++)
                add_term(p->y, i + r, piece[r], p->x, j);
        }
    }
}

/* Adds (A above its diagonal) x, the mirrored columns, to rows [first, end) of y. */
static void initial_mirrors(void *self, uint64_t first, uint64_t end)
{
    const struct product *p = self;
    double piece[PIECE];
    uint64_t n = p->matrix->rows;
    for (uint64_t j = first; j < end && !duet__judging_stopped(p->how); j++) {
        for (uint64_t i = j + 1; i < n; i += PIECE) {
            size_t count = n - i < PIECE ? (size_t)(n - i) : PIECE;
            duet__storage_initial_column(p->matrix, i, j, count, piece);
            for (size_t r = 0; r < count; r++)
                add_term(p->y, j, piece[r], p->x, i + r);
        }
    }
}

void duet__vector_add_initial(const struct duet__storage *a, const struct duet__judging *how,
                              const struct duet__vector *x, struct duet__vector *y)
{
    struct product product = {a, how, x, y};
    duet__share(a->rows, a->rows * a->cols, initial_rows, &product);
    if (a->lower)
        duet__share(a->rows, a->rows * a->cols, initial_mirrors, &product);
}

/* ------------------------------------------------------------------------------------------- */
/* Factorisations                                                                               */

enum { X, Y, PRODUCT, TRUTH, VECTORS };

/* y := L' x */
static void transposed(void *self, uint64_t i, uint64_t j, double value)
{
    struct duet__vector *v = self;
    if (i >= j)
        add_term(&v[Y], j, value, &v[X], i);
}

/* y := U x */
static void upper(void *self, uint64_t i, uint64_t j, double value)
{
    struct duet__vector *v = self;
    if (i <= j)
        add_term(&v[Y], i, value, &v[X], j);
}

/* product := L y */
static void lower(void *self, uint64_t i, uint64_t j, double value)
{
    struct duet__vector *v = self;
    if (i >= j)
        add_term(&v[PRODUCT], i, value, &v[Y], j);
}

/* product := L y with a unit diagonal, which is not stored */
static void unit_lower(void *self, uint64_t i, uint64_t j, double value)
{
    struct duet__vector *v = self;
    if (i >= j)
        add_term(&v[PRODUCT], i, i == j ? 1 : value, &v[Y], j);
}

static int no_memory(const struct duet__storage *a, struct duet_message *message)
{
    return duet_fail(message, DUET_ENOMEM, "no memory to judge a matrix of order %llu",
                     (unsigned long long)a->rows);
}

/* Row i of P A is row rows[i] of A; NULL: P = I. */
static int probe_factors(const struct duet__storage *a, const uint64_t *rows,
                         const struct duet__judging *how, double *residual,
                         struct duet_message *message)
{
    struct duet__vector v[VECTORS];
    int error = duet__vectors_init(v, VECTORS, a->rows);
    if (error) {
        error = no_memory(a, message);
    } else {
        duet__vector_draw(&v[X], a->rows, duet__data_key(a->key, 1));
        duet__each_element(a, how, a->lower ? transposed : upper, v, a->lower);
        duet__each_element(a, how, a->lower ? lower : unit_lower, v, false);
        duet__vector_add_initial(a, how, &v[X], &v[TRUTH]);
        for (uint64_t i = 0; i < a->rows; i++) {
            uint64_t row = rows ? rows[i] : i;
            v[PRODUCT].value[i] -= v[TRUTH].value[row];
            v[PRODUCT].gauge[i] += v[TRUTH].gauge[row];
        }
        *residual = duet__vector_error(&v[PRODUCT], a->rows, a->element_bytes);
    }
    duet__vectors_fini(v, VECTORS);
    return error;
}

/* ------------------------------------------------------------------------------------------- */
/* Judgements                                                                                   */

/* Computes the order of rows after the interchanges: row i of P A is row rows[i] of A. false if an
 * interchange is invalid. */
static bool permute(uint64_t *rows, uint64_t n, const struct duet__storage *pivots)
{
    for (uint64_t i = 0; i < n; i++)
        rows[i] = i;
    for (uint64_t i = 0; i < n; i++) {
        int32_t pivot = *(const int32_t *)duet__storage_at(pivots, i, 0);
        uint64_t other = i - i % pivots->tile_rows + (uint64_t)pivot - 1;
        if (pivot < 1 || other < i || other >= n)
            return false;
        uint64_t row = rows[i];
        rows[i] = rows[other];
        rows[other] = row;
    }
    return true;
}

int duet__judge_factors(void *data, const struct duet__judging *how, struct duet__verdict *verdict,
                        struct duet_message *message)
{
    enum { LU, PIVOTED, CHOLESKY };
    static const char *const formulas[][2] = {
        [LU] = {"max |L U x - A x| / (eps (|L| |U| |x| + |A| |x|))", "||A - L U|| / (n ||A|| eps)"},
        [PIVOTED] = {"max |L U x - P A x| / (eps (|L| |U| |x| + |A| |x|))",
                     "||P A - L U|| / (n ||A|| eps)"},
        [CHOLESKY] = {"max |L L' x - A x| / (eps (|L| |L'| |x| + |A| |x|))",
                      "||A - L L'|| / (n ||A|| eps)"},
    };
    const struct duet__storage *a = ((const struct duet__tiled_data *)data)->matrices;
    const bool exact = how && how->exact, pivoted = a[1].rows;
    uint64_t *rows = pivoted ? calloc(a->rows, sizeof *rows) : NULL;
    int error = 0;
    *verdict = (struct duet__verdict){.formula = formulas[a->lower  ? CHOLESKY
                                                          : pivoted ? PIVOTED
                                                                    : LU][exact],
                                      .threshold = exact ? 30 : 16};
    if (pivoted && !rows)
        error = no_memory(a, message);
    else if (pivoted && !permute(rows, a->rows, &a[1]))
        verdict->residual = NAN;
    else
        error = (exact ? duet__residual : probe_factors)(a, rows, how, &verdict->residual, message);
    free(rows);
    return error;
}
