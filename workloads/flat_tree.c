/* SPDX-License-Identifier: Apache-2.0 */
/* Submits tasks of factorisations along a flat tree, and applies the factors to a vector. */
#include "workloads/flat_tree.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "workloads/kernels.h"

enum { CHUNK = 512 /* elements of a column of A made at a time */ };
enum { LOWER, UPPER, TRIANGLES }; /* of a diagonal tile; UPPER has the diagonal */

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

void duet__flat_tree_shapes(const struct duet__problem *problem, unsigned more,
                            struct duet__shape *out)
{
    uint64_t inner = duet__setting_number(problem, duet__flat_tree_parameters, "inner", 1);
    uint32_t rows = (uint32_t)(inner < problem->tile ? inner : problem->tile) + more;
    out[DUET__FLAT_A] = (struct duet__shape){problem->n, problem->n, .contents = DUET__RANDOM};
    out[DUET__FLAT_FACTORS] =
        (struct duet__shape){duet__tile_count(problem->n, problem->tile) * rows, problem->n,
                             .tile_rows = rows, .lower = true};
}

/* ------------------------------------------------------------------------------------------- */
/* Tasks                                                                                        */

static struct duet_handle *factors(const struct duet__build *build, uint32_t m, uint32_t k)
{
    return duet__tile(&build->matrices[DUET__FLAT_FACTORS], m, k);
}

/* Factorises the diagonal tile, and cuts it for the tasks that follow, if any; data that a node
 * owns is whole. */
static int factorise_diagonal(const struct duet__build *build, uint32_t k,
                              struct duet_handle **triangles)
{
    const struct duet__tiles *a = build->matrices;
    const struct duet_access accesses[] = {
        {duet__tile(a, k, k), DUET_RW},
        {factors(build, k, k), DUET_W},
    };
    const struct duet__tile_args args = {.n = duet__tile_cols(a, k)};
    int error = duet__factor_task(build, DUET__DIAGONAL, args, k, 0, accesses, 2);
    triangles[LOWER] = triangles[UPPER] = accesses[0].handle;
    if (error || args.n < 2 || k + 1 == a->row_tiles || duet_node_count(build->runtime) > 1)
        return error;
    return duet_cut_triangles(build->runtime, accesses[0].handle, DUET_DIAGONAL_UPPER, triangles);
}

static int row(const struct duet__build *build, uint32_t k, uint32_t n, struct duet_handle *lower)
{
    const struct duet__tiles *a = build->matrices;
    const struct duet_access accesses[] = {
        {lower, DUET_R},
        {factors(build, k, k), DUET_R},
        {duet__tile(a, k, n), DUET_RW},
    };
    const struct duet__tile_args args = {.m = duet__tile_rows(a, k),
                                         .n = duet__tile_cols(a, n),
                                         .k = duet__tile_cols(a, k),
                                         .form = DUET__TRANSPOSED};
    return duet__factor_task(build, DUET__ROW, args, k, n, accesses, 3);
}

static int couple(const struct duet__build *build, uint32_t m, uint32_t k,
                  struct duet_handle *upper)
{
    const struct duet__tiles *a = build->matrices;
    const struct duet_access accesses[] = {
        {upper, DUET_RW},
        {duet__tile(a, m, k), DUET_RW},
        {factors(build, m, k), DUET_W},
    };
    const struct duet__tile_args args = {.m = duet__tile_rows(a, m), .n = duet__tile_cols(a, k)};
    return duet__factor_task(build, DUET__COUPLE, args, k, m, accesses, 3);
}

static int update(const struct duet__build *build, uint32_t m, uint32_t n, uint32_t k)
{
    const struct duet__tiles *a = build->matrices;
    const struct duet_access accesses[] = {
        {duet__tile(a, m, k), DUET_R},
        {factors(build, m, k), DUET_R},
        {duet__tile(a, k, n), DUET_RW},
        {duet__tile(a, m, n), DUET_RW},
    };
    const struct duet__tile_args args = {.m = duet__tile_rows(a, m),
                                         .n = duet__tile_cols(a, n),
                                         .k = duet__tile_cols(a, k),
                                         .form = DUET__TRANSPOSED};
    return duet__factor_task(build, DUET__UPDATE, args, k, m + n, accesses, 4);
}

int duet__flat_tree_submit(const struct duet__build *build)
{
    uint32_t t = build->matrices->row_tiles;
    int error = 0;
    for (uint32_t k = 0; !error && k < t; k++) {
        struct duet_handle *triangles[TRIANGLES];
        error = factorise_diagonal(build, k, triangles);
        for (uint32_t n = k + 1; !error && n < t; n++)
            error = row(build, k, n, triangles[LOWER]);
        for (uint32_t m = k + 1; !error && m < t; m++) {
            error = couple(build, m, k, triangles[UPPER]);
            for (uint32_t n = k + 1; !error && n < t; n++)
                error = update(build, m, n, k);
        }
        for (uint32_t n = k + 1; !error && n < t; n++)
            error = duet__tiles_spent(build, build->matrices, k, k + 1, n);
        if (!error)
            error = duet__tiles_spent(build, build->matrices, k, t, k);
        if (!error)
            error = duet__tiles_spent(build, &build->matrices[DUET__FLAT_FACTORS], k, t, k);
    }
    return error;
}

/* ------------------------------------------------------------------------------------------- */
/* Judging                                                                                      */

static int make_vector(struct duet__flat_judge *judge, unsigned number,
                       enum duet__contents contents, struct duet__storage *out)
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
    int error = make_vector(&judge, 2, DUET__RANDOM, &judge.x);
    if (!error)
        error = make_vector(&judge, 3, DUET__ZEROS, &judge.y);
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

/* Applies the transformation of tile (m,k) to the vector's tiles k and m. */
static int apply_tile(const struct duet__flat_judge *judge, const char *const *kernels,
                      bool backward, uint32_t m, uint32_t k, const struct duet__storage *vector)
{
    const struct duet__tiled_data *data = judge->data;
    const struct duet_buffer buffers[] = {
        duet__storage_view(&data->matrices[DUET__FLAT_A], m, k),
        duet__storage_view(&data->matrices[DUET__FLAT_FACTORS], m, k),
        duet__storage_view(vector, k, 0),
        duet__storage_view(vector, m, 0),
    };
    const struct duet__tile_args args = {.form = backward ? 0 : DUET__TRANSPOSED};
    const struct duet_call call = {.args = &args,
                                   .buffers = buffers,
                                   .buffer_count = m == k ? 3 : 4,
                                   .message = judge->message};
    return duet__kernel(kernels[m == k ? DUET__ROW : DUET__UPDATE])(&call);
}

int duet__flat_tree_apply(const struct duet__flat_judge *judge, const char *const *kernels,
                          bool backward, const struct duet__storage *vector)
{
    const struct duet__storage *a = &judge->data->matrices[DUET__FLAT_A];
    uint32_t t = (uint32_t)duet__tile_count(a->rows, a->tile_rows);
    int error = 0;
    for (uint32_t step = 0; !error && step < t; step++) {
        uint32_t k = backward ? t - 1 - step : step;
        for (uint32_t i = k; !error && i < t; i++)
            error = apply_tile(judge, kernels, backward, backward ? t - 1 - (i - k) : i, k, vector);
    }
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
