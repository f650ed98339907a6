/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Judges factorisations too large to be multiplied out: the product of the factors and the initial
 * matrix are both applied to a random vector (Freivalds, "Fast probabilistic algorithms", MFCS
 * 1979), in extended precision. Takes n^2 operations instead of n^3.
 */
#include <float.h>
#include <math.h>
#include <stdlib.h>

#include "workloads/kernels.h"
#include "workloads/tiles.h"

enum { PIECE = 512 /* elements of a column of A made at a time */ };

/* A vector, and the scale of its rounding errors: the same sums of absolute values. Longer than
 * double, since diagonals are large: later sums would be rounded once a term. */
struct vector {
    long double *value;
    double *gauge;
};

struct probe {
    const struct duet__storage *a;
    const struct duet__judging *how;
    const uint64_t *rows; /* row i of P A is this row of A; NULL: P = I */
    struct vector x, y, product, truth;
};

static int vector_init(struct vector *vector, uint64_t n)
{
    vector->value = calloc(n, sizeof *vector->value);
    vector->gauge = calloc(n, sizeof *vector->gauge);
    return vector->value && vector->gauge ? 0 : DUET_ENOMEM;
}

static void vector_fini(struct vector *vector)
{
    free(vector->value);
    free(vector->gauge);
}

static void add_term(struct vector *to, uint64_t i, double factor, const struct vector *from,
                     uint64_t j)
{
    to->value[i] += factor * from->value[j];
    to->gauge[i] += fabs(factor) * from->gauge[j];
}

/* ------------------------------------------------------------------------------------------- */
/* The factors, column by column of their tiles                                                 */

/* Called with element (i, j) of the matrix of factors. */
typedef void element_fn(struct probe *probe, uint64_t i, uint64_t j, double value);

/* A pass over all elements, on several threads, each with whole columns, or with whole rows. */
struct pass {
    struct probe *probe;
    element_fn *fn;
    bool by_column;
};

/* Passes over rows [first, end) of a column, all in one tile. */
static void each_of_column(const struct pass *pass, uint64_t first, uint64_t end, uint64_t j)
{
    const struct duet__storage *a = pass->probe->a;
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
            pass->fn(pass->probe, i + r, j, piece[r]);
    }
}

/* Passes over columns, or else rows, [first, end). */
static void each_of_part(void *self, uint64_t first, uint64_t end)
{
    const struct pass *pass = self;
    const struct duet__storage *a = pass->probe->a;
    uint64_t j = pass->by_column ? first : 0, last_col = pass->by_column ? end : a->cols;
    uint64_t last_row = pass->by_column ? a->rows : end, stop;
    for (; j < last_col && !duet__judging_stopped(pass->probe->how); j++) {
        uint64_t top = a->lower ? j - j % a->tile_cols : 0; /* first stored row */
        for (uint64_t i = pass->by_column || first < top ? top : first; i < last_row; i = stop) {
            stop = i - i % a->tile_rows + a->tile_rows;
            stop = stop < last_row ? stop : last_row;
            each_of_column(pass, i, stop, j);
        }
    }
}

static void each_element(struct probe *probe, element_fn *fn, bool by_column)
{
    const struct duet__storage *a = probe->a;
    struct pass pass = {probe, fn, by_column};
    duet__share(a->rows, a->rows * a->cols, each_of_part, &pass);
}

/* y := L' x */
static void transposed(struct probe *probe, uint64_t i, uint64_t j, double value)
{
    if (i >= j)
        add_term(&probe->y, j, value, &probe->x, i);
}

/* y := U x */
static void upper(struct probe *probe, uint64_t i, uint64_t j, double value)
{
    if (i <= j)
        add_term(&probe->y, i, value, &probe->x, j);
}

/* product := L y */
static void lower(struct probe *probe, uint64_t i, uint64_t j, double value)
{
    if (i >= j)
        add_term(&probe->product, i, value, &probe->y, j);
}

/* product := L y with a unit diagonal, which is not stored */
static void unit_lower(struct probe *probe, uint64_t i, uint64_t j, double value)
{
    if (i >= j)
        add_term(&probe->product, i, i == j ? 1 : value, &probe->y, j);
}

/* ------------------------------------------------------------------------------------------- */
/* The matrix as it was filled                                                                  */

/* Computes rows [first, end) of truth := A x from stored elements: of a symmetric A the lower
 * triangle. */
static void initial_rows(void *self, uint64_t first, uint64_t end)
{
    struct probe *probe = self;
    double piece[PIECE];
    for (uint64_t j = 0; j < probe->a->rows && !duet__judging_stopped(probe->how); j++) {
        for (uint64_t i = probe->a->lower && first < j ? j : first; i < end; i += PIECE) {
            size_t count = end - i < PIECE ? (size_t)(end - i) : PIECE;
            duet__storage_initial_column(probe->a, i, j, count, piece);
            for (size_t r = 0; r < count; r++)
                add_term(&probe->truth, i + r, piece[r], &probe->x, j);
        }
    }
}

/* Adds (A above its diagonal) x, the mirrored columns, to rows [first, end) of truth. */
static void initial_mirrors(void *self, uint64_t first, uint64_t end)
{
    struct probe *probe = self;
    double piece[PIECE];
    uint64_t n = probe->a->rows;
    for (uint64_t j = first; j < end && !duet__judging_stopped(probe->how); j++) {
        for (uint64_t i = j + 1; i < n; i += PIECE) {
            size_t count = n - i < PIECE ? (size_t)(n - i) : PIECE;
            duet__storage_initial_column(probe->a, i, j, count, piece);
            for (size_t r = 0; r < count; r++)
                add_term(&probe->truth, j, piece[r], &probe->x, i + r);
        }
    }
}

static void apply_initial(struct probe *probe)
{
    uint64_t n = probe->a->rows;
    duet__share(n, n * n, initial_rows, probe);
    if (probe->a->lower)
        duet__share(n, n * n, initial_mirrors, probe);
}

static void draw(struct probe *probe)
{
    const struct duet__storage numbers = {.element_bytes = 8,
                                          .contents = DUET__RANDOM,
                                          .key = duet__data_key(probe->a->key, 1)};
    for (uint64_t j = 0; j < probe->a->rows; j++) {
        double number = duet__storage_initial(&numbers, j, 0);
        probe->x.gauge[j] = fabs(number) + 0.5;
        probe->x.value[j] = number < 0 ? -probe->x.gauge[j] : probe->x.gauge[j];
    }
}

static double judge(struct probe *probe)
{
    double roundoff = probe->a->element_bytes == 4 ? (double)FLT_EPSILON / 2 : DBL_EPSILON / 2;
    double worst = 0;
    draw(probe);
    each_element(probe, probe->a->lower ? transposed : upper, probe->a->lower);
    each_element(probe, probe->a->lower ? lower : unit_lower, false);
    apply_initial(probe);
    for (uint64_t i = 0; i < probe->a->rows; i++) {
        uint64_t row = probe->rows ? probe->rows[i] : i;
        double gauge = probe->product.gauge[i] + probe->truth.gauge[row];
        double error = (double)(probe->product.value[i] - probe->truth.value[row]);
        double ratio = fabs(error) / (roundoff * gauge);
        if (isnan(ratio))
            return ratio;
        worst = fmax(worst, ratio);
    }
    return worst;
}

static int no_memory(const struct duet__storage *a, struct duet_message *message)
{
    return duet_fail(message, DUET_ENOMEM, "no memory to judge a matrix of order %llu",
                     (unsigned long long)a->rows);
}

static int probe_factors(const struct duet__storage *a, const uint64_t *rows,
                         const struct duet__judging *how, double *residual,
                         struct duet_message *message)
{
    struct probe probe = {.a = a, .how = how, .rows = rows};
    struct vector *vectors[] = {&probe.x, &probe.y, &probe.product, &probe.truth};
    int error = 0;
    for (unsigned v = 0; v < 4; v++)
        error = vector_init(vectors[v], a->rows) ? DUET_ENOMEM : error;
    if (error)
        error = no_memory(a, message);
    else
        *residual = judge(&probe);
    for (unsigned v = 0; v < 4; v++)
        vector_fini(vectors[v]);
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
