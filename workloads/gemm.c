/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tiled matrix product C := C + A B with C m x n, A m x k, B k x n.
 *
 * One task per tile triple; the k updates of a tile of C follow each other. All tasks have equal
 * priority: no tile of C is on a longer path than another.
 */
#include <float.h>
#include <math.h>
#include <stdlib.h>

#include "workloads/tiles.h"

static const struct duet_parameter parameters[] = {
    {"m", "1..536870912", "n", "rows of A and C"},
    {"k", "1..536870912", "n", "columns of A, rows of B"},
    DUET__LAYOUT_PARAMETER,
    {0},
};

static const char *const kernels[] = {"gemm", NULL};

/* The matrices of a build. */
enum { A, B, C };

static uint64_t rows(const struct duet_problem *problem)
{
    return duet__setting_number(problem, parameters, "m", problem->n);
}

static uint64_t depth(const struct duet_problem *problem)
{
    return duet__setting_number(problem, parameters, "k", problem->n);
}

static int check(const struct duet_problem *problem, struct duet_message *message)
{
    int error = duet__problem_check(problem, parameters, message);
    if (!error)
        error = duet__tiles_check("n", problem->n, problem->tile, message);
    if (!error)
        error = duet__tiles_check("m", rows(problem), problem->tile, message);
    if (!error)
        error = duet__tiles_check("k", depth(problem), problem->tile, message);
    return error;
}

static double flops(const struct duet_problem *problem)
{
    return 2.0 * (double)rows(problem) * (double)problem->n * (double)depth(problem);
}

static uint64_t tasks(const struct duet_problem *problem)
{
    return duet__tile_count(rows(problem), problem->tile) *
           duet__tile_count(problem->n, problem->tile) *
           duet__tile_count(depth(problem), problem->tile);
}

static uint64_t bytes(const struct duet_problem *problem)
{
    uint64_t m = rows(problem), n = problem->n, k = depth(problem);
    return (m * k + k * n + m * n) * duet__element_bytes(problem);
}

static int submit(const struct duet__build *build)
{
    const struct duet__tiles *a = &build->matrices[A], *b = &build->matrices[B];
    const struct duet__tiles *c = &build->matrices[C];
    int error = 0;
    for (uint32_t i = 0; !error && i < c->row_tiles; i++) {
        for (uint32_t j = 0; !error && j < c->col_tiles; j++) {
            for (uint32_t l = 0; !error && l < a->col_tiles; l++) {
                const struct duet_access accesses[] = {
                    {duet__tile(a, i, l), DUET_R},
                    {duet__tile(b, l, j), DUET_R},
                    {duet__tile(c, i, j), DUET_RW},
                };
                const struct duet__tile_args args = {
                    .m = duet__tile_rows(c, i),
                    .n = duet__tile_cols(c, j),
                    .k = duet__tile_cols(a, l),
                };
                error = duet__tile_task(build, 0, args, 0, accesses, 3);
            }
        }
    }
    return error;
}

static void shapes(const struct duet_problem *problem, struct duet__shape *out)
{
    uint64_t m = rows(problem), n = problem->n, k = depth(problem);
    out[A] = (struct duet__shape){m, k, .contents = DUET__RANDOM};
    out[B] = (struct duet__shape){k, n, .contents = DUET__RANDOM};
    out[C] = (struct duet__shape){m, n, .contents = DUET__RANDOM};
}

static const struct duet__tiled tiled = {
    .check = check,
    .shapes = shapes,
    .kernels = kernels,
    .flops = {duet__flops_gemm},
    .parameters = parameters,
    .submit = submit,
};

static int build(struct duet_runtime *runtime, const struct duet_problem *problem, void **state,
                 struct duet_message *message)
{
    return duet__tiled_build(&tiled, runtime, problem, state, message);
}

static int generate(const struct duet_problem *problem, void **data, struct duet_message *message)
{
    return duet__tiled_generate(&tiled, problem, data, message);
}

/* ------------------------------------------------------------------------------------------- */
/* Is the result right?                                                                         */

/*
 * Instead of computing the product again: C x = C0 x + A (B x) with a random vector x (Freivalds,
 * "Fast probabilistic algorithms", MFCS 1979), judged element by element as BLAS's test programs do
 * (xMMCH, threshold 16): by the roundoff of the sum of the absolute values of all that was added.
 * The elements of x are at least 1/2 in absolute value, so that no single wrong element of C hides.
 */

/* A vector and, element by element, what its rounding errors are measured with. */
struct sums {
    double *value, *gauge;
};

static int sums_init(struct sums *sums, uint64_t count, struct duet_message *message)
{
    sums->value = calloc(count, sizeof *sums->value);
    sums->gauge = calloc(count, sizeof *sums->gauge);
    if (sums->value && sums->gauge)
        return 0;
    return duet_fail(message, DUET_ENOMEM, "no memory to judge the product: two vectors of %llu",
                     (unsigned long long)count);
}

static void sums_fini(struct sums *sums)
{
    free(sums->value);
    free(sums->gauge);
}

/* y := y + M x, with M as it was filled. */
static void add_product(const struct duet__storage *matrix, const struct sums *x, struct sums *y)
{
    double column[512];
    size_t length = sizeof column / sizeof *column;
    for (uint64_t j = 0; j < matrix->cols; j++) {
        for (uint64_t i = 0; i < matrix->rows; i += length) {
            size_t count = matrix->rows - i < length ? (size_t)(matrix->rows - i) : length;
            duet__storage_initial_column(matrix, i, j, count, column);
            for (size_t r = 0; r < count; r++) {
                y->value[i + r] += column[r] * x->value[j];
                y->gauge[i + r] += fabs(column[r]) * x->gauge[j];
            }
        }
    }
}

/* y := y - M x, with M as it is now. */
static void subtract_result(const struct duet__storage *matrix, const struct sums *x,
                            struct sums *y)
{
    for (uint64_t j = 0; j < matrix->cols; j++) {
        for (uint64_t i = 0; i < matrix->rows; i++)
            y->value[i] -= duet__storage_value(matrix, i, j) * x->value[j];
    }
}

static double residual(const struct duet__tiled_data *data, struct sums *x, struct sums *y,
                       struct sums *bx)
{
    const struct duet__storage *matrices = data->matrices, *c = &matrices[C];
    double roundoff = data->problem.precision == 's' ? (double)FLT_EPSILON / 2 : DBL_EPSILON / 2;
    const struct duet__storage numbers = {.element_bytes = 8,
                                          .contents = DUET__RANDOM,
                                          .key = duet__data_key(data->problem.seed, C + 1)};
    for (uint64_t j = 0; j < c->cols; j++) {
        double number = duet__storage_initial(&numbers, j, 0);
        x->value[j] = number < 0 ? number - 0.5 : number + 0.5;
        x->gauge[j] = fabs(x->value[j]);
    }
    add_product(&matrices[B], x, bx);
    add_product(&matrices[A], bx, y);
    add_product(c, x, y);
    subtract_result(c, x, y);
    double worst = 0;
    for (uint64_t i = 0; i < c->rows; i++) {
        double ratio = fabs(y->value[i]) / (roundoff * y->gauge[i]);
        if (isnan(ratio))
            return ratio;
        worst = fmax(worst, ratio);
    }
    return worst;
}

static int verify(void *data, struct duet_verdict *verdict, struct duet_message *message)
{
    const struct duet__tiled_data *made = data;
    struct sums x = {0}, y = {0}, bx = {0};
    *verdict =
        (struct duet_verdict){.formula =
                                  "max |C x - (C0 x + A B x)| / (eps (|C0| |x| + |A| |B| |x|))",
                              .threshold = 16};
    int error = sums_init(&x, made->matrices[C].cols, message);
    if (!error)
        error = sums_init(&y, made->matrices[C].rows, message);
    if (!error)
        error = sums_init(&bx, made->matrices[B].rows, message);
    if (!error)
        verdict->residual = residual(made, &x, &y, &bx);
    sums_fini(&x);
    sums_fini(&y);
    sums_fini(&bx);
    return error;
}

const struct duet_workload duet__workload_gemm = {
    .name = "gemm",
    .description = "tiled matrix product C := C + A B, C of m x n, A of m x k",
    .source = "Golub, Van Loan, Matrix Computations, section 1.3",
    .parameters = parameters,
    .kernels = kernels,
    .default_n = 19200,
    .default_tile = 960,
    .real_n = 2048,
    .real_tile = 256,
    .check = check,
    .flops = flops,
    .tasks = tasks,
    .bytes = bytes,
    .build = build,
    .fini = duet__tiled_fini,
    .generate = generate,
    .fill = duet__tiled_fill,
    .retrieve = duet__tiled_retrieve,
    .verify = verify,
    .discard = duet__tiled_discard,
};
