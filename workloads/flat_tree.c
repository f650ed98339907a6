/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Factorisations along a flat tree: the diagonal tile of each step is factorised, then the tiles
 * below it one after the other with the upper triangle that is there by then. Tiled QR and LU with
 * incremental pivoting (Buttari, Langou, Kurzak, Dongarra, "A class of parallel tiled linear
 * algebra algorithms for multicore architectures", Parallel Computing 35, 2009) differ in their
 * kernels alone. Of step k of T, with F the factors that a tile's elimination leaves beside it:
 *
 *     diagonal(k)    A(k,k) RW, F(k,k) W
 *     row(k,n)       lower A(k,k) R, F(k,k) R, A(k,n) RW                      n = k+1 ... T-1
 *     couple(m,k)    upper A(k,k) RW, A(m,k) RW, F(m,k) W                     m = k+1 ... T-1
 *     update(m,n,k)  A(m,k) R, F(m,k) R, A(k,n) RW, A(m,n) RW                 both
 *
 * The triangles of a diagonal tile are parts of it, so that rows and couples of a step do not wait
 * for each other. Arguments: struct duet__tile_args; diagonal n; row and update m x n, the tile
 * that changes (the lower one), and k, the columns that are eliminated; couple m x n, the lower
 * tile. Priorities are as in other factorisations: 2T - 2k, less n, m, or both.
 */
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "workloads/kernels.h"
#include "workloads/tiles.h"

/* Indices of the kernels of such a workload, and of its matrices. */
enum { DIAGONAL, ROW, COUPLE, UPDATE };
enum { A, FACTORS };
enum { LOWER, UPPER, TRIANGLES }; /* of a diagonal tile; UPPER has the diagonal */

enum {
    PANEL_KERNELS = 1 << DIAGONAL | 1 << COUPLE, /* which `panel` places */
    CHUNK = 512,                                 /* elements of a column of A made at a time */
};

static const struct duet__parameter parameters[] = {
    {"inner", "1..4096", "32", "columns that the kernels take at a time"},
    {"panel", "cpu|any", "any", "where panels are factorised: CPUs only, or anywhere"},
    DUET__LAYOUT_PARAMETER,
    {0},
};

static int flat_check(const struct duet__problem *problem, struct duet_message *message)
{
    return duet__square_check(problem, parameters, message);
}

/* Sets the shapes of A, random, and of its factors: a tile of `inner` rows and `more` for each tile
 * on and below the diagonal. */
static void flat_shapes(const struct duet__problem *problem, unsigned more,
                        struct duet__storage *out)
{
    uint64_t inner = duet__setting_number(problem, parameters, "inner", 1);
    uint32_t rows = (uint32_t)(inner < problem->tile ? inner : problem->tile) + more;
    out[A] = (struct duet__storage){problem->n, problem->n, .contents = DUET__RANDOM};
    out[FACTORS] = (struct duet__storage){duet__tile_count(problem->n, problem->tile) * rows,
                                          problem->n, .tile_rows = rows, .lower = true};
}

/* ------------------------------------------------------------------------------------------- */
/* Tasks                                                                                        */

static struct duet_handle *factors(const struct duet__build *build, uint32_t m, uint32_t k)
{
    return duet__tile(&build->matrices[FACTORS], m, k);
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
    int error = duet__factor_task(build, DIAGONAL, args, k, 0, accesses, 2);
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
    return duet__factor_task(build, ROW, args, k, n, accesses, 3);
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
    return duet__factor_task(build, COUPLE, args, k, m, accesses, 3);
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
    return duet__factor_task(build, UPDATE, args, k, m + n, accesses, 4);
}

static int flat_submit(const struct duet__build *build)
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
            error = duet__tiles_spent(build, &build->matrices[FACTORS], k, t, k);
    }
    return error;
}

/* ------------------------------------------------------------------------------------------- */
/* Judging                                                                                      */

/* State of a judgement by a vector, in n^2 operations (Freivalds; see kernels_probe.c): the vector
 * is transformed as A was. */
struct judge {
    const struct duet__tiled_data *data;
    struct duet__storage x, y; /* n elements in A's tiles and precision: x random, y zeros */
    double *values;            /* n zeros */
    double roundoff;           /* unit roundoff of the precision */
    struct duet_message *message;
};

static int make_vector(struct judge *judge, unsigned number, enum duet__contents contents,
                       struct duet__storage *out)
{
    const struct duet__storage *a = &judge->data->matrices[A];
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

/* Makes the state, and has `judge_by` set *residual. Errors are those of that, and DUET_ENOMEM with
 * a message. */
static int flat_judge(void *data, double *residual,
                      int (*judge_by)(struct judge *, double *residual),
                      struct duet_message *message)
{
    struct judge judge = {.data = data, .message = message};
    const struct duet__storage *a = &judge.data->matrices[A];
    judge.roundoff = a->element_bytes == 4 ? (double)FLT_EPSILON / 2 : DBL_EPSILON / 2;
    int error = make_vector(&judge, 2, DUET__RANDOM, &judge.x);
    if (!error)
        error = make_vector(&judge, 3, DUET__ZEROS, &judge.y);
    judge.values = calloc(a->rows, sizeof *judge.values);
    if (!error && !judge.values)
        error = duet_fail(message, DUET_ENOMEM, "no memory to judge a matrix of order %llu",
                          (unsigned long long)a->rows);
    else if (!error)
        error = judge_by(&judge, residual);
    duet__storage_free(&judge.x);
    duet__storage_free(&judge.y);
    free(judge.values);
    return error;
}

/* Applies the transformation of tile (m,k) to the vector's tiles k and m. */
static int apply_tile(const struct judge *judge, const char *const *kernels, bool backward,
                      uint32_t m, uint32_t k, const struct duet__storage *vector)
{
    const struct duet__tiled_data *data = judge->data;
    const struct duet_buffer buffers[] = {
        duet__storage_view(&data->matrices[A], m, k),
        duet__storage_view(&data->matrices[FACTORS], m, k),
        duet__storage_view(vector, k, 0),
        duet__storage_view(vector, m, 0),
    };
    const struct duet__tile_args args = {.form = backward ? 0 : DUET__TRANSPOSED};
    const struct duet_call call = {.args = &args,
                                   .buffers = buffers,
                                   .buffer_count = m == k ? 3 : 4,
                                   .message = judge->message};
    return duet__kernel(kernels[m == k ? ROW : UPDATE])(&call);
}

/* Applies the transformations to `vector`, in order or, if they can be undone, `backward`, by the
 * kernels of these names. Errors are the kernels'. */
static int flat_apply(const struct judge *judge, const char *const *kernels, bool backward,
                      const struct duet__storage *vector)
{
    const struct duet__storage *a = &judge->data->matrices[A];
    uint32_t t = (uint32_t)duet__tile_count(a->rows, a->tile_rows);
    int error = 0;
    for (uint32_t step = 0; !error && step < t; step++) {
        uint32_t k = backward ? t - 1 - step : step;
        for (uint32_t i = k; !error && i < t; i++)
            error = apply_tile(judge, kernels, backward, backward ? t - 1 - (i - k) : i, k, vector);
    }
    return error;
}

/* Sets values := A x for the initial A; returns the Frobenius norm of A. */
static double flat_product(const struct judge *judge, const struct duet__storage *x)
{
    const struct duet__storage *a = &judge->data->matrices[A];
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

/* Returns the 2-norm of a - values, with n elements; values NULL: of a. */
static double flat_distance(const struct duet__storage *a, const double *values)
{
    double sum = 0;
    for (uint64_t i = 0; i < a->rows; i++) {
        double difference = duet__storage_value(a, i, 0) - (values ? values[i] : 0);
        sum += difference * difference;
    }
    return sqrt(sum);
}

/* ------------------------------------------------------------------------------------------- */
/*
 * Tiled QR factorisation, A = Q R,. A tile then has R above the
 * diagonal of the matrix, and below it the Householder vectors of Q; the factors are the triangles
 * of its block reflectors, `inner` columns each.
 *
 * Algorithm: Buttari, Langou, Kurzak, Dongarra, Parallel Computing 35, 2009; kernels geqrt, ormqr,
 * tsqrt and tsmqr as PLASMA names them. Neither PLASMA nor Chameleon gives their tasks priorities.
 *
 * Flops: working note 41's for the problem, geqrt and ormqr; of tsqrt and tsmqr the leading term.
 */

static const char *const qr_kernels[] = {"geqrt", "ormqr", "tsqrt", "tsmqr", NULL};

static double flops_of_order(double n)
{
    return 4 * n * n * n / 3 + 2 * n * n + 14 * n / 3;
}

static double qr_flops(const struct duet__problem *problem)
{
    return flops_of_order((double)problem->n);
}

static void qr_shapes(const struct duet__problem *problem, struct duet__storage *out)
{
    flat_shapes(problem, 0, out);
}

static double flops_geqrt(const void *args)
{
    return flops_of_order(((const struct duet__tile_args *)args)->n);
}

static double flops_ormqr(const void *args)
{
    const struct duet__tile_args *size = args;
    double m = size->m, n = size->n, k = size->k;
    return 4 * n * m * k - 2 * n * k * k + 3 * n * k;
}

static double flops_tsqrt(const void *args)
{
    const struct duet__tile_args *size = args;
    return 2.0 * size->m * size->n * size->n;
}

static double flops_tsmqr(const void *args)
{
    const struct duet__tile_args *size = args;
    return 4.0 * size->m * size->n * size->k;
}

static const struct duet__tiled qr = {
    .shapes = qr_shapes,
    .flops = {flops_geqrt, flops_ormqr, flops_tsqrt, flops_tsmqr},
    .placement = "panel",
    .placed = PANEL_KERNELS,
    .submit = flat_submit,
};

/* y := R x */
static void multiply_upper(struct judge *judge)
{
    const struct duet__storage *r = &judge->data->matrices[A];
    for (uint64_t i = 0; i < r->rows; i++) {
        double sum = 0;
        for (uint64_t j = i; j < r->cols; j++)
            sum += duet__storage_value(r, i, j) * duet__storage_value(&judge->x, j, 0);
        duet__store_values(duet__storage_at(&judge->y, i, 0), &sum, 1, r->element_bytes);
    }
}

/* Judges A = Q R and Q' Q = I, by both sides applied to x. */
static int qr_judge(struct judge *judge, double *residual)
{
    uint64_t n = judge->x.rows;
    multiply_upper(judge);
    int error = flat_apply(judge, qr_kernels, true, &judge->y);
    double squares = 0;
    flat_product(judge, &judge->x);
    double distance = flat_distance(&judge->y, judge->values);
    for (uint64_t i = 0; i < n; i++) {
        squares += judge->values[i] * judge->values[i];
        judge->values[i] = duet__storage_value(&judge->x, i, 0);
    }
    double product = distance / sqrt(squares);
    double norm = flat_distance(&judge->x, NULL);
    if (!error)
        error = flat_apply(judge, qr_kernels, true, &judge->x);
    if (!error)
        error = flat_apply(judge, qr_kernels, false, &judge->x);
    double identity = flat_distance(&judge->x, judge->values) / norm;
    /* fmax would lose a NaN */
    *residual = (isnan(product) || product > identity ? product : identity) /
                (sqrt((double)n) * judge->roundoff);
    return error;
}

static int qr_verify(void *data, const struct duet__judging *how, struct duet__verdict *verdict,
                     struct duet_message *message)
{
    *verdict = (struct duet__verdict){
        .formula = "max(||Q R x - A x|| / ||A x||, ||Q' Q x - x|| / ||x||) / (sqrt(n) eps)",
        .threshold = 30};
    return flat_judge(data, &verdict->residual, qr_judge, message);
}

const struct duet__workload duet__workload_qr = {
    .name = "qr",
    .description = "tiled QR factorisation of an n x n matrix",
    .source = "Buttari, Langou, Kurzak, Dongarra, Parallel Computing 35, 2009 (flat tree)",
    .parameters = parameters,
    .kernels = qr_kernels,
    .default_n = 19200,
    .default_tile = 960,
    .real_n = 2048,
    .real_tile = 256,
    .check = flat_check,
    .flops = qr_flops,
    .tasks = duet__square_tasks,
    DUET__TILED_SLOTS(qr, duet__tiled_fill),
    .verify = qr_verify,
};

/* ------------------------------------------------------------------------------------------- */
/*
 * Tiled LU factorisation with incremental pivoting: a pivot is
 * looked for in the diagonal tile and in one tile below it at a time, so that no task needs a whole
 * column of tiles, as those of lu_pivot.c do; multipliers may grow more. A tile then has U on and
 * above the diagonal of the matrix, and multipliers below it; with those and the interchanges in
 * the factors, systems are solved.
 *
 * Algorithm: Quintana-Orti, van de Geijn, "Updating an LU factorization with pivoting", ACM TOMS
 * 35, 2008, by tiles as Buttari, Langou, Kurzak, Dongarra, Parallel Computing 35, 2009; kernels
 * gessm, tstrf and ssssm as PLASMA names them. PLASMA gives their tasks no priorities.
 *
 * Flops: working note 41's for the problem and the diagonal; of the others the leading term.
 */

static const char *const lu_kernels[] = {"getrf_incpiv", "gessm", "tstrf", "ssssm", NULL};

enum { MORE_ROWS = 1 /* rows of the factors of a tile beside those of the multipliers */ };

static void lu_incremental_shapes(const struct duet__problem *problem, struct duet__storage *out)
{
    flat_shapes(problem, MORE_ROWS, out);
}

static const struct duet__tiled lu = {
    .shapes = lu_incremental_shapes,
    .flops = {duet__flops_getrf, duet__flops_trsm_left, duet__flops_trsm_right, duet__flops_gemm},
    .placement = "panel",
    .placed = PANEL_KERNELS,
    .submit = flat_submit,
};

static void lu_set(const struct duet__storage *vector, uint64_t i, double value)
{
    duet__store_values(duet__storage_at(vector, i, 0), &value, 1, vector->element_bytes);
}

/* y := U^-1 y */
static void solve_upper(const struct judge *judge)
{
    const struct duet__storage *u = &judge->data->matrices[A];
    for (uint64_t i = u->rows; i-- > 0;) {
        double sum = duet__storage_value(&judge->y, i, 0);
        for (uint64_t j = i + 1; j < u->cols; j++)
            sum -= duet__storage_value(u, i, j) * duet__storage_value(&judge->y, j, 0);
        lu_set(&judge->y, i, sum / duet__storage_value(u, i, i));
    }
}

/* Returns the residual of the solution of A y = x. */
static int lu_judge(struct judge *judge, double *residual)
{
    uint64_t n = judge->x.rows;
    for (uint64_t i = 0; i < n; i++)
        lu_set(&judge->y, i, duet__storage_value(&judge->x, i, 0));
    int error = flat_apply(judge, lu_kernels, false, &judge->y);
    solve_upper(judge);
    double norm = flat_product(judge, &judge->y);
    *residual = flat_distance(&judge->x, judge->values) /
                (norm * flat_distance(&judge->y, NULL) * sqrt((double)n) * judge->roundoff);
    if (error != DUET_ETASK)
        return error;
    *residual = NAN; /* an invalid interchange */
    return 0;
}

static int lu_incremental_verify(void *data, const struct duet__judging *how,
                                 struct duet__verdict *verdict, struct duet_message *message)
{
    *verdict =
        (struct duet__verdict){.formula = "||A x - b|| / (||A|| ||x|| sqrt(n) eps), A x = b solved",
                               .threshold = 30};
    return flat_judge(data, &verdict->residual, lu_judge, message);
}

const struct duet__workload duet__workload_lu_incremental = {
    .name = "lu-incremental",
    .description = "tiled LU factorisation with incremental pivoting of an n x n matrix",
    .source = "Buttari, Langou, Kurzak, Dongarra, Parallel Computing 35, 2009; Quintana-Orti, van "
              "de Geijn, ACM TOMS 35, 2008",
    .parameters = parameters,
    .kernels = lu_kernels,
    .default_n = 19200,
    .default_tile = 960,
    .real_n = 2048,
    .real_tile = 256,
    .check = flat_check,
    .flops = duet__lu_flops,
    .tasks = duet__square_tasks,
    DUET__TILED_SLOTS(lu, duet__tiled_fill),
    .verify = lu_incremental_verify,
};
