/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tiled matrix product C := C + A B with C m x n, A m x k, B k x n.
 *
 * One task per tile triple. All tasks have equal priority: no tile of C is on a longer path than
 * another. They are submitted by square blocks of tiles of C and, in a block, column by column of A
 * (sums of outer products): what is read is then used by a whole row or column of the block, so
 * that a device whose memory holds a few blocks computes more than it copies.
 */
#include "workloads/kernels.h"
#include "workloads/tiles.h"

static const struct duet__parameter parameters[] = {
    {"m", "1..536870912", "n", "rows of A and C"},
    {"k", "1..536870912", "n", "columns of A, rows of B"},
    {"block", "0..65536", "8",
     "blocks of so many tiles of C each way, one after another, all products with a column of A "
     "before those with the next; of several nodes, on each; 0: one tile of C after another"},
    DUET__LAYOUT_PARAMETER,
    {0},
};

static const char *const kernels[] = {"gemm", NULL};

/* Indices of the matrices of a build. */
enum { A, B, C };

static uint64_t rows(const struct duet__problem *problem)
{
    return duet__setting_number(problem, parameters, "m", problem->n);
}

static uint64_t depth(const struct duet__problem *problem)
{
    return duet__setting_number(problem, parameters, "k", problem->n);
}

static int gemm_check(const struct duet__problem *problem, struct duet_message *message)
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

static double gemm_flops(const struct duet__problem *problem)
{
    return 2.0 * (double)rows(problem) * (double)problem->n * (double)depth(problem);
}

static uint64_t gemm_tasks(const struct duet__problem *problem)
{
    return duet__tile_count(rows(problem), problem->tile) *
           duet__tile_count(problem->n, problem->tile) *
           duet__tile_count(depth(problem), problem->tile);
}

/* C(i,j) := C(i,j) + A(i,l) B(l,j) */
static int product(const struct duet__build *build, uint32_t i, uint32_t j, uint32_t l)
{
    const struct duet__tiles *a = &build->matrices[A], *b = &build->matrices[B];
    const struct duet__tiles *c = &build->matrices[C];
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
    return duet__tile_task(build, 0, args, 0, accesses, 3);
}

/* A part of C: tiles, first inclusive, last exclusive. */
struct part {
    uint32_t row, rows_end, col, cols_end;
};

/* Releases tiles: the last part of a row of parts is the last user of these tiles of A, that of a
 * column of those of B. */
static int release_tiles(const struct duet__build *build, const struct part *part, uint32_t l)
{
    const struct duet__tiles *c = &build->matrices[C];
    int error = 0;
    if (part->cols_end == c->col_tiles)
        error = duet__tiles_spent(build, &build->matrices[A], part->row, part->rows_end, l);
    for (uint32_t j = part->col; !error && part->rows_end == c->row_tiles && j < part->cols_end;
         j++)
        error = duet__tiles_spent(build, &build->matrices[B], l, l + 1, j);
    return error;
}

/* Submits the products of a column of A and a row of B for a whole part of C. */
static int submit_part(const struct duet__build *build, const struct part *part)
{
    uint32_t depth_tiles = build->matrices[A].col_tiles;
    int error = 0;
    for (uint32_t l = 0; !error && l < depth_tiles; l++) {
        for (uint32_t i = part->row; !error && i < part->rows_end; i++)
            for (uint32_t j = part->col; !error && j < part->cols_end; j++)
                error = product(build, i, j, l);
        error = error ? error : release_tiles(build, part, l);
    }
    return error;
}

static uint32_t least(uint64_t a, uint32_t b)
{
    return a < b ? (uint32_t)a : b;
}

/* Submits all products, by blocks of tiles on each node. */
static int gemm_submit(const struct duet__build *build)
{
    const struct duet__tiles *c = &build->matrices[C];
    const struct duet_grid nodes = duet_node_grid(build->runtime);
    uint64_t block = duet__setting_number(build->problem, parameters, "block", 8);
    uint64_t rows = (block ? block : 1) * nodes.rows, cols = (block ? block : 1) * nodes.cols;
    int error = 0;
    for (uint32_t i = 0; !error && i < c->row_tiles; i = least(i + rows, c->row_tiles))
        for (uint32_t j = 0; !error && j < c->col_tiles; j = least(j + cols, c->col_tiles)) {
            const struct part part = {i, least(i + rows, c->row_tiles), j,
                                      least(j + cols, c->col_tiles)};
            error = submit_part(build, &part);
        }
    return error;
}

static void gemm_shapes(const struct duet__problem *problem, struct duet__storage *out)
{
    uint64_t m = rows(problem), n = problem->n, k = depth(problem);
    out[A] = (struct duet__storage){m, k, .contents = DUET__RANDOM};
    out[B] = (struct duet__storage){k, n, .contents = DUET__RANDOM};
    out[C] = (struct duet__storage){m, n, .contents = DUET__RANDOM};
}

static const struct duet__tiled tiled = {
    .shapes = gemm_shapes,
    .flops = {duet__flops_gemm},
    .submit = gemm_submit,
};

/* ------------------------------------------------------------------------------------------- */
/* Judging the result */

/*
 * The product is not computed again: C x = C0 x + A (B x) is checked with a random vector x,
 * element by element as in BLAS's test programs (xMMCH, threshold 16): by the roundoff of the sum
 * of the absolute values of all that was added.
 */

enum { X, Y, BX, VECTORS };

/* y := y - C x */
static void subtract(void *self, uint64_t i, uint64_t j, double value)
{
    struct duet__vector *v = self;
    v[Y].value[i] -= value * v[X].value[j];
}

static int gemm_verify(void *data, const struct duet__judging *how, struct duet__verdict *verdict,
                       struct duet_message *message)
{
    const struct duet__tiled_data *made = data;
    const struct duet__storage *a = &made->matrices[A], *b = &made->matrices[B];
    const struct duet__storage *c = &made->matrices[C];
    uint64_t longest = c->rows > c->cols ? c->rows : c->cols;
    struct duet__vector v[VECTORS];
    *verdict =
        (struct duet__verdict){.formula =
                                   "max |C x - (C0 x + A B x)| / (eps (|C0| |x| + |A| |B| |x|))",
                               .threshold = 16};
    longest = b->rows > longest ? b->rows : longest;
    int error = duet__vectors_init(v, VECTORS, longest);
    if (error) {
        error = duet_fail(message, error, "no memory to judge the product: %d vectors of %llu",
                          VECTORS, (unsigned long long)longest);
    } else {
        duet__vector_draw(&v[X], c->cols, duet__data_key(made->problem.seed, C + 1));
        duet__vector_add_initial(b, how, &v[X], &v[BX]);
        duet__vector_add_initial(a, how, &v[BX], &v[Y]);
        duet__vector_add_initial(c, how, &v[X], &v[Y]);
        duet__each_element(c, how, subtract, v, false);
        verdict->residual = duet__vector_error(&v[Y], c->rows, c->element_bytes);
    }
    duet__vectors_fini(v, VECTORS);
    return error;
}

const struct duet__workload duet__workload_gemm = {
    .name = "gemm",
    .description = "tiled matrix product C := C + A B, C of m x n, A of m x k",
    .source = "Golub, Van Loan, Matrix Computations, section 1.3",
    .parameters = parameters,
    .kernels = kernels,
    .default_n = 19200,
    .default_tile = 960,
    .real_n = 2048,
    .real_tile = 256,
    .check = gemm_check,
    .flops = gemm_flops,
    .tasks = gemm_tasks,
    DUET__TILED_SLOTS(tiled, duet__tiled_fill),
    .verify = gemm_verify,
};
