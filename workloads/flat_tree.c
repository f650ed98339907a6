/* SPDX-License-Identifier: Apache-2.0 */
/* Tasks of factorisations along a flat tree, and what was done applied to a vector. */
#include "workloads/flat_tree.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <duet/parts.h>

#include "workloads/kernels.h"

enum { CHUNK = 512 /* elements of a column of A that are made at a time */ };
enum { LOWER, UPPER, TRIANGLES }; /* of a diagonal tile; the diagonal belongs to the upper one */

const struct duet__parameter duet__flat_tree_parameters[] = {
    {"inner", "1..4096", "32", "columns that the kernels take at a time"},
    {"panel", "cpu|any", "any", "where panels are factorised: CPUs only, or anywhere"},
    DUET__LAYOUT_PARAMETER,
    {0},
};

int duet__flat_tree_check(const struct duet__problem *problem, struct duet_message *message)
{
    return duet__square_check(problem, duet__flat_tree_parameters, message);
}

uint64_t duet__flat_tree_tasks(const struct duet__problem *problem, uint32_t domains)
{
    uint64_t t = duet__tile_count(problem->n, problem->tile), sum = 0;
    /* a step on r rows: each but one is eliminated, and tops are factorised, in as many columns */
    for (uint64_t r = 1; r <= t; r++)
        sum += r * (r - 1 + (r < domains ? r : domains));
    return sum;
}

void duet__flat_tree_shapes(const struct duet__problem *problem, unsigned more, uint32_t domains,
                            struct duet__shape *out)
{
    uint64_t inner = duet__setting_number(problem, duet__flat_tree_parameters, "inner", 1);
    uint32_t rows = (uint32_t)(inner < problem->tile ? inner : problem->tile) + more;
    out[DUET__FLAT_A] = (struct duet__shape){problem->n, problem->n, .contents = DUET__RANDOM};
    out[DUET__FLAT_FACTORS] =
        (struct duet__shape){duet__tile_count(problem->n, problem->tile) * rows, problem->n,
                             .tile_rows = rows, .lower = true};
    if (domains > 1)
        out[DUET__FLAT_MERGED] =
            (struct duet__shape){(uint64_t)(domains - 1) * rows, problem->n, .tile_rows = rows};
}

uint64_t duet__flat_tree_bytes(const struct duet__problem *problem, unsigned more, uint32_t domains)
{
    struct duet__shape shapes[DUET__MATRICES_MAX] = {0};
    duet__flat_tree_shapes(problem, more, domains, shapes);
    const struct duet__shape *made = &shapes[DUET__FLAT_FACTORS], *merged = made + 1;
    const struct duet__storage factors = {
        .rows = made->rows,
        .cols = problem->n,
        .tile_rows = made->tile_rows,
        .tile_cols = (uint32_t)problem->tile,
        .element_bytes = duet__element_bytes(problem),
        .lower = true,
    };
    return (problem->n + merged->rows) * problem->n * factors.element_bytes +
           duet__storage_bytes(&factors);
}

/* ------------------------------------------------------------------------------------------- */
/* The trees                                                                                    */

uint32_t duet__flat_tree_domains(const struct duet__problem *problem,
                                 const struct duet__parameter *parameters)
{
    uint64_t rows = problem->nodes.rows ? problem->nodes.rows : 1;
    uint64_t t = duet__tile_count(problem->n, problem->tile);
    uint64_t domains = duet__setting_number(problem, parameters, "domains", rows);
    return (uint32_t)(domains < t ? domains : t);
}

/* What happens to column k in one step: tile (row, k) is factorised by itself, where row = pivot,
 * or eliminated with the triangle of (pivot, k); tops: its own triangle is. */
struct elimination {
    uint32_t k, row, pivot;
    bool tops;
};

typedef int elimination_fn(void *self, const struct elimination *one);

/* Binary tree over the tops, in its order or backward. */
static int merge(uint32_t k, uint32_t tops, bool backward, elimination_fn *act, void *self)
{
    int error = 0;
    uint32_t last = 1;
    while (last < tops)
        last *= 2;
    for (uint32_t level = 1; !error && level < last; level *= 2) {
        uint32_t apart = backward ? last / 2 / level : level;
        for (uint32_t i = 0; !error && i + apart < tops; i += 2 * apart)
            error = act(self, &(struct elimination){k, k + i + apart, k + i, true});
    }
    return error;
}

/* Calls `act` for all of step k of t, in their order or backward, up to the first error. */
static int step(uint32_t t, uint32_t domains, uint32_t k, bool backward, elimination_fn *act,
                void *self)
{
    uint32_t tops = domains < t - k ? domains : t - k;
    int error = backward ? merge(k, tops, true, act, self) : 0;
    for (uint32_t i = 0; !error && i < t - k; i++) {
        uint32_t at = backward ? t - k - 1 - i : i;
        error = act(self, &(struct elimination){k, k + at, k + at % domains, false});
    }
    return error || backward ? error : merge(k, tops, false, act, self);
}

/* ------------------------------------------------------------------------------------------- */
/* Tasks                                                                                        */

/* Tasks of a step. */
struct stepping {
    const struct duet__build *build;
    struct duet_handle *(*triangles)[TRIANGLES]; /* of the tops, from the diagonal on */
};

static struct duet_handle *factors(const struct duet__build *build, const struct elimination *one)
{
    const struct duet__tiles *matrices = build->matrices;
    return one->tops ? duet__tile(&matrices[DUET__FLAT_MERGED], one->row - one->k - 1, one->k)
                     : duet__tile(&matrices[DUET__FLAT_FACTORS], one->row, one->k);
}

/* Factorises a top, and cuts it for the tasks that follow, if there are any; data that a node owns
 * is whole. */
static int top(const struct stepping *s, const struct elimination *one)
{
    const struct duet__tiles *a = s->build->matrices;
    uint32_t k = one->k, m = one->row;
    struct duet_handle **triangles = s->triangles[m - k];
    const struct duet_access accesses[] = {
        {duet__tile(a, m, k), DUET_RW},
        {factors(s->build, one), DUET_W},
    };
    const struct duet__tile_args args = {.n = duet__tile_rows(a, m)};
    int error = duet__factor_task(s->build, DUET__DIAGONAL, args, k, m > k ? m : 0, accesses, 2);
    triangles[LOWER] = triangles[UPPER] = accesses[0].handle;
    if (error || args.n < 2 || args.n < duet__tile_cols(a, k) || k + 1 == a->row_tiles ||
        duet_node_count(s->build->runtime) > 1)
        return error;
    return duet_cut_triangles(s->build->runtime, accesses[0].handle, DUET_DIAGONAL_UPPER,
                              triangles);
}

static int row(const struct stepping *s, const struct elimination *one, uint32_t n)
{
    const struct duet__tiles *a = s->build->matrices;
    uint32_t k = one->k, m = one->row;
    const struct duet_access accesses[] = {
        {s->triangles[m - k][LOWER], DUET_R},
        {factors(s->build, one), DUET_R},
        {duet__tile(a, m, n), DUET_RW},
    };
    const struct duet__tile_args args = {.m = duet__tile_rows(a, m),
                                         .n = duet__tile_cols(a, n),
                                         .k = duet__tile_cols(a, k),
                                         .form = DUET__TRANSPOSED};
    return duet__factor_task(s->build, DUET__ROW, args, k, m > k ? m + n : n, accesses, 3);
}

static struct duet_handle *eliminated(const struct stepping *s, const struct elimination *one)
{
    return one->tops ? s->triangles[one->row - one->k][UPPER]
                     : duet__tile(s->build->matrices, one->row, one->k);
}

static int couple(const struct stepping *s, const struct elimination *one)
{
    const struct duet__tiles *a = s->build->matrices;
    const struct duet_access accesses[] = {
        {s->triangles[one->pivot - one->k][UPPER], DUET_RW},
        {eliminated(s, one), DUET_RW},
        {factors(s->build, one), DUET_W},
    };
    const struct duet__tile_args args = {.m = duet__tile_rows(a, one->row),
                                         .n = duet__tile_cols(a, one->k),
                                         .form = one->tops ? DUET__TRIANGLE : 0};
    return duet__factor_task(s->build, DUET__COUPLE, args, one->k, one->row, accesses, 3);
}

static int update(const struct stepping *s, const struct elimination *one, uint32_t n)
{
    const struct duet__tiles *a = s->build->matrices;
    const struct duet_access accesses[] = {
        {eliminated(s, one), DUET_R},
        {factors(s->build, one), DUET_R},
        {duet__tile(a, one->pivot, n), DUET_RW},
        {duet__tile(a, one->row, n), DUET_RW},
    };
    const struct duet__tile_args args = {.m = duet__tile_rows(a, one->row),
                                         .n = duet__tile_cols(a, n),
                                         .k = duet__tile_cols(a, one->k),
                                         .form =
                                             DUET__TRANSPOSED | (one->tops ? DUET__TRIANGLE : 0)};
    return duet__factor_task(s->build, DUET__UPDATE, args, one->k, one->row + n, accesses, 4);
}

static int eliminate(void *self, const struct elimination *one)
{
    const struct stepping *s = self;
    bool alone = one->row == one->pivot;
    int error = alone ? top(s, one) : couple(s, one);
    for (uint32_t n = one->k + 1; !error && n < s->build->matrices->row_tiles; n++)
        error = alone ? row(s, one, n) : update(s, one, n);
    return error;
}

/* Of step k, row k and column k stay as they are. */
static int let_go(const struct duet__build *build, uint32_t k)
{
    const struct duet__tiles *a = build->matrices, *merged = &a[DUET__FLAT_MERGED];
    int error = 0;
    for (uint32_t n = k + 1; !error && n < a->row_tiles; n++)
        error = duet__tiles_spent(build, a, k, k + 1, n);
    if (!error)
        error = duet__tiles_spent(build, a, k, a->row_tiles, k);
    if (!error)
        error = duet__tiles_spent(build, &a[DUET__FLAT_FACTORS], k, a->row_tiles, k);
    return error ? error : duet__tiles_spent(build, merged, 0, merged->row_tiles, k);
}

int duet__flat_tree_submit(const struct duet__build *build)
{
    const struct duet__tiles *a = build->matrices;
    uint32_t t = a->row_tiles, domains = a[DUET__FLAT_MERGED].row_tiles + 1;
    struct stepping s = {build, calloc(domains, sizeof *s.triangles)};
    int error = s.triangles ? 0 : DUET_ENOMEM;
    for (uint32_t k = 0; !error && k < t; k++) {
        error = step(t, domains, k, false, eliminate, &s);
        error = error ? error : let_go(build, k);
    }
    free(s.triangles);
    return error;
}

/* ------------------------------------------------------------------------------------------- */
/* Judging                                                                                      */

static int vector(struct duet__flat_judge *judge, unsigned number, enum duet__contents contents,
                  struct duet__storage *out)
{
    const struct duet__storage *a = &judge->data->matrices[DUET__FLAT_A];
    *out = (struct duet__storage){.rows = a->rows,
                                  .cols = 1,
                                  .tile_rows = a->tile_rows,
                                  .tile_cols = 1,
                                  .element_bytes = a->element_bytes,
                                  .contents = contents,
                                  .key = duet__data_key(judge->data->problem.seed, number)};
    int error = duet__storage_allocate(out, judge->message);
    if (!error)
        duet__storage_fill(out, NULL, NULL);
    return error;
}

int duet__flat_tree_judge(void *data, double *residual,
                          int (*judge_by)(struct duet__flat_judge *, double *residual),
                          struct duet_message *message)
{
    struct duet__flat_judge judge = {.data = data, .message = message};
    const struct duet__storage *a = &judge.data->matrices[DUET__FLAT_A];
    judge.roundoff = a->element_bytes == 4 ? (double)FLT_EPSILON / 2 : DBL_EPSILON / 2;
    int error = vector(&judge, 2, DUET__RANDOM, &judge.x);
    if (!error)
        error = vector(&judge, 3, DUET__ZEROS, &judge.y);
    judge.values = calloc(a->rows, sizeof *judge.values);
    if (!error && !judge.values)
        error = duet_fail(message, DUET_ENOMEM, "no memory to judge a matrix of order %llu",
                          (unsigned long long)a->rows);
    if (!error)
        error = judge_by(&judge, residual);
    duet__storage_free(&judge.x);
    duet__storage_free(&judge.y);
    free(judge.values);
    return error;
}

static struct duet_buffer view(const struct duet__storage *a, uint32_t i, uint32_t j)
{
    struct duet_buffer tile = {.rows = duet__piece(a->rows, a->tile_rows, i),
                               .cols = duet__piece(a->cols, a->tile_cols, j),
                               .element_bytes = a->element_bytes};
    tile.data = duet__storage_tile(a, i, j, &tile.ld);
    return tile;
}

/* What is done to a vector. */
struct applying {
    const struct duet__flat_judge *judge;
    const char *const *kernels;
    const struct duet__storage *vector;
    bool backward;
};

/* What the kernel of an elimination did, to the vector's tiles of both rows. */
static int apply(void *self, const struct elimination *one)
{
    const struct applying *applying = self;
    const struct duet__storage *matrices = applying->judge->data->matrices;
    bool alone = one->row == one->pivot;
    const struct duet_buffer buffers[] = {
        view(&matrices[DUET__FLAT_A], one->row, one->k),
        one->tops ? view(&matrices[DUET__FLAT_MERGED], one->row - one->k - 1, one->k)
                  : view(&matrices[DUET__FLAT_FACTORS], one->row, one->k),
        view(applying->vector, one->pivot, 0),
        view(applying->vector, one->row, 0),
    };
    const struct duet__tile_args args = {.form = (applying->backward ? 0 : DUET__TRANSPOSED) |
                                                 (one->tops ? DUET__TRIANGLE : 0)};
    const struct duet_call call = {.args = &args,
                                   .buffers = buffers,
                                   .buffer_count = alone ? 3 : 4,
                                   .message = applying->judge->message};
    return duet__kernel(applying->kernels[alone ? DUET__ROW : DUET__UPDATE])(&call);
}

int duet__flat_tree_apply(const struct duet__flat_judge *judge, const char *const *kernels,
                          bool backward, const struct duet__storage *vector)
{
    const struct duet__storage *a = &judge->data->matrices[DUET__FLAT_A];
    const struct duet__storage *merged = &judge->data->matrices[DUET__FLAT_MERGED];
    struct applying applying = {judge, kernels, vector, backward};
    uint32_t t = (uint32_t)duet__tile_count(a->rows, a->tile_rows);
    uint32_t domains = merged->rows ? (uint32_t)(merged->rows / merged->tile_rows) + 1 : 1;
    int error = 0;
    for (uint32_t i = 0; !error && i < t; i++)
        error = step(t, domains, backward ? t - 1 - i : i, backward, apply, &applying);
    return error;
}

double duet__flat_tree_product(const struct duet__flat_judge *judge, const struct duet__storage *x)
{
    const struct duet__storage *a = &judge->data->matrices[DUET__FLAT_A];
    double column[CHUNK], squares = 0;
    memset(judge->values, 0, a->rows * sizeof *judge->values);
    for (uint64_t j = 0; j < a->cols; j++) {
        double factor = duet__storage_value(x, j, 0);
        for (uint64_t i = 0; i < a->rows; i += CHUNK) {
            size_t count = a->rows - i < CHUNK ? (size_t)(a->rows - i) : CHUNK;
            duet__storage_initial_column(a, i, j, count, column);
            for (size_t r = 0; r < count; r++) {
                judge->values[i + r] += column[r] * factor;
                squares += column[r] * column[r];
            }
        }
    }
    return sqrt(squares);
}

double duet__flat_tree_distance(const struct duet__storage *a, const double *values)
{
    double sum = 0;
    for (uint64_t i = 0; i < a->rows; i++) {
        double difference = duet__storage_value(a, i, 0) - (values ? values[i] : 0);
        sum += difference * difference;
    }
    return sqrt(sum);
}
