/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Jacobi's iteration for Laplace's equation on a square: every inner point of an n x n grid becomes
 * the mean of its four neighbours, over and over; values on the boundary around it are fixed.
 *
 * The grid is cut into blocks of tile x tile points. A step has a task for each block, which reads
 * the block of the step before and the borders of its four neighbours, and writes the block and its
 * own borders: its first row (north), its last row (south), its first column (west) and its last
 * column (east), handles of their own, so that borders and not blocks travel between blocks.
 * Everything exists twice, for odd and even steps.
 *
 * The boundary values are borders of blocks that are not there: north of the first row of blocks is
 * a border south that no task writes, and so on. So there is only one kind of task.
 */
#include "workloads/kernels.h"
#include "workloads/tiles.h"

enum { TASKS_MAX = 100000000, CHUNK = 512 /* points that are filled at a time */ };

static const struct duet__parameter parameters[] = {
    {"iterations", "1..1000000", "10", "steps"},
    DUET__SUBMIT_PARAMETER,
    {0},
};

static const char *const kernels[] = {"jacobi2d", NULL};

/*
 * Matrices of a step: parity p has numbers GRIDS * p + these. With T x T blocks SOUTH has T + 1
 * rows, row i the borders south of the blocks in row i - 1; NORTH has T + 1 rows, row i the borders
 * north of the blocks in row i; columns of EAST and WEST likewise.
 */
enum { GRID, NORTH, SOUTH, WEST, EAST, GRIDS };

static uint64_t iterations(const struct duet__problem *problem)
{
    return duet__setting_number(problem, parameters, "iterations", 1);
}

static int jacobi2d_check(const struct duet__problem *problem, struct duet_message *message)
{
    int error = duet__square_check(problem, parameters, message);
    if (error)
        return error;
    uint64_t t = duet__tile_count(problem->n, problem->tile);
    if (t * t * iterations(problem) <= TASKS_MAX)
        return 0;
    return duet_fail(message, DUET_EINVAL,
                     "%llu steps of %llu x %llu blocks are too many: at most %d tasks are possible",
                     (unsigned long long)iterations(problem), (unsigned long long)t,
                     (unsigned long long)t, TASKS_MAX);
}

static double jacobi2d_flops(const struct duet__problem *problem)
{
    return 4 * (double)problem->n * (double)problem->n * (double)iterations(problem);
}

static uint64_t jacobi2d_tasks(const struct duet__problem *problem)
{
    uint64_t t = duet__tile_count(problem->n, problem->tile);
    return t * t * iterations(problem);
}

/* Flops: three additions and a multiplication a point. */
static double flops_jacobi2d(const void *args)
{
    const struct duet__tile_args *size = args;
    return 4.0 * size->m * size->n;
}

/* Submits the task of block (i,j) in a step that reads `old` and writes `new`. */
static int step_block(const struct duet__build *build, const struct duet__tiles *old,
                      const struct duet__tiles *new, uint32_t i, uint32_t j)
{
    const struct duet_access accesses[] = {
        {duet__tile(&old[GRID], i, j), DUET_R},
        {duet__tile(&old[SOUTH], i, j), DUET_R},     /* of the block to the north */
        {duet__tile(&old[NORTH], i + 1, j), DUET_R}, /* of the block to the south */
        {duet__tile(&old[EAST], i, j), DUET_R},      /* of the block to the west */
        {duet__tile(&old[WEST], i, j + 1), DUET_R},  /* of the block to the east */
        {duet__tile(&new[GRID], i, j), DUET_W},
        {duet__tile(&new[NORTH], i, j), DUET_W},
        {duet__tile(&new[SOUTH], i + 1, j), DUET_W},
        {duet__tile(&new[WEST], i, j), DUET_W},
        {duet__tile(&new[EAST], i, j + 1), DUET_W},
    };
    const struct duet__tile_args args = {
        .m = duet__tile_rows(&new[GRID], i),
        .n = duet__tile_cols(&new[GRID], j),
    };
    return duet__tile_task(build, 0, args, 0, accesses, sizeof accesses / sizeof *accesses);
}

static int step_all(const struct duet__build *build, unsigned parity)
{
    const struct duet__tiles *old = &build->matrices[GRIDS * parity];
    const struct duet__tiles *new = &build->matrices[GRIDS * (1 - parity)];
    uint32_t t = old->row_tiles;
    int error = 0;
    for (uint32_t j = 0; !error && j < t; j++) {
        for (uint32_t i = 0; !error && i < t; i++)
            error = step_block(build, old, new, i, j);
    }
    return error;
}

static int jacobi2d_submit(const struct duet__build *build)
{
    return duet__tiled_iterate(build, parameters, step_all);
}

static void jacobi2d_shapes(const struct duet__problem *problem, struct duet__storage *out)
{
    uint64_t n = problem->n, t = duet__tile_count(n, problem->tile);
    for (unsigned parity = 0; parity < 2; parity++, out += GRIDS) {
        out[GRID] = (struct duet__storage){.rows = n, .cols = n};
        out[NORTH] = out[SOUTH] = (struct duet__storage){t + 1, n, .tile_rows = 1};
        out[WEST] = out[EAST] = (struct duet__storage){n, t + 1, .tile_cols = 1};
    }
}

/* Returns the row or column of blocks that a border at place `index` belongs to; `shifted`: that of
 * the blocks before. Boundary values belong to their only reader. */
static uint64_t block_of(uint32_t index, bool shifted, uint64_t blocks)
{
    uint64_t block = shifted && index ? index - 1 : index;
    return block < blocks ? block : blocks - 1;
}

/*
 * Owner of a block or border. Each node has a rectangle of blocks, as near a square as its grid
 * allows, and a step sends the borders around it; cyclically dealt blocks would send all their
 * borders. Bands, in a grid of one column or row, have two neighbours instead of four and longer
 * borders, which pays where messages are dear.
 */
static unsigned jacobi2d_owner(const struct duet_runtime *runtime,
                               const struct duet__problem *problem, unsigned matrix, uint32_t i,
                               uint32_t j)
{
    uint64_t t = duet__tile_count(problem->n, problem->tile);
    unsigned kind = matrix % GRIDS;
    struct duet_grid nodes = duet_node_grid(runtime);
    uint64_t row = block_of(i, kind == SOUTH, t), col = block_of(j, kind == EAST, t);
    return duet_node_at(runtime, row * nodes.rows / t, col * nodes.cols / t);
}

static const struct duet__tiled tiled = {
    .shapes = jacobi2d_shapes,
    .owner = jacobi2d_owner,
    .flops = {flops_jacobi2d},
    .capturable = true,
    .submit = jacobi2d_submit,
};

/* ------------------------------------------------------------------------------------------- */
/* Contents                                                                                     */

/* Describes the grid with its boundary, rows and columns 0 and n + 1, which are random like the
 * rest. */
static struct duet__storage framed(const struct duet__tiled_data *data)
{
    uint64_t edge = data->problem.n + 2;
    return (struct duet__storage){
        .rows = edge,
        .cols = edge,
        .tile_rows = (uint32_t)edge,
        .tile_cols = (uint32_t)edge,
        .element_bytes = data->matrices[GRID].element_bytes,
        .contents = DUET__RANDOM,
        .key = duet__data_key(data->problem.seed, 0),
    };
}

/* Returns the position in the frame of row `index` of NORTH and SOUTH, or column `index` of WEST
 * and EAST. */
static uint64_t frame_border(const struct duet__problem *problem, unsigned kind, uint64_t index)
{
    uint64_t first = index * problem->tile + 1; /* first point of the blocks number `index` */
    uint64_t border = kind == NORTH || kind == WEST ? first : first - 1;
    uint64_t last = kind == NORTH || kind == WEST ? problem->n + 1 : problem->n;
    return border < last ? border : last;
}

static uint64_t frame_row(const struct duet__problem *problem, unsigned kind, uint64_t row)
{
    return kind == NORTH || kind == SOUTH ? frame_border(problem, kind, row) : row + 1;
}

static uint64_t frame_col(const struct duet__problem *problem, unsigned kind, uint64_t col)
{
    return kind == WEST || kind == EAST ? frame_border(problem, kind, col) : col + 1;
}

/* Fills a column of a tile; rows of a tile are adjacent in the frame, too. */
static void fill_column(const struct duet__storage *frame, uint64_t row, uint64_t col, size_t rows,
                        char *out)
{
    double values[CHUNK];
    for (size_t r = 0; r < rows; r += CHUNK) {
        size_t count = rows - r < CHUNK ? rows - r : CHUNK;
        duet__storage_initial_column(frame, row + r, col, count, values);
        duet__store_values(out + r * frame->element_bytes, values, count, frame->element_bytes);
    }
}

static void fill_tile(const struct duet__tiled_data *data, unsigned number, uint32_t i, uint32_t j)
{
    const struct duet__storage *matrix = &data->matrices[number];
    const struct duet__problem *problem = &data->problem;
    struct duet__storage frame = framed(data);
    unsigned kind = number % GRIDS;
    size_t ld, rows = duet__piece(matrix->rows, matrix->tile_rows, i);
    char *tile = duet__storage_tile(matrix, i, j, &ld);
    for (size_t c = 0; c < duet__piece(matrix->cols, matrix->tile_cols, j); c++)
        fill_column(&frame, frame_row(problem, kind, (uint64_t)i * matrix->tile_rows),
                    frame_col(problem, kind, (uint64_t)j * matrix->tile_cols + c), rows,
                    tile + c * ld * matrix->element_bytes);
}

/* Fills both steps with the contents of the first; the odd one keeps only the boundary. */
static void jacobi2d_fill(void *pointer, const struct duet_runtime *runtime)
{
    const struct duet__tiled_data *data = pointer;
    for (unsigned number = 0; number < 2 * GRIDS; number++) {
        const struct duet__storage *matrix = &data->matrices[number];
        uint64_t row_tiles = duet__tile_count(matrix->rows, matrix->tile_rows);
        uint64_t col_tiles = duet__tile_count(matrix->cols, matrix->tile_cols);
        for (uint32_t j = 0; j < col_tiles; j++) {
            for (uint32_t i = 0; i < row_tiles; i++)
                if (duet__tiled_here(data, runtime, number, i, j))
                    fill_tile(data, number, i, j);
        }
    }
}

/* ------------------------------------------------------------------------------------------- */
/* Judging the result */

/* Defines a step on columns of the grid with its boundary, whose columns have `edge` points; the
 * order of additions is that of the tasks, so that results must be equal. */
#define DEFINE_STEP(name, type)                                                                    \
    static void name(const type *old, type *new, size_t edge, size_t first, size_t end)            \
    {                                                                                              \
        for (size_t j = first; j < end; j++) {                                                     \
            for (size_t i = 1; i + 1 < edge; i++) {                                                \
                size_t at = i + j * edge;                                                          \
                new[at] = ((old[at - 1] + old[at + 1]) + (old[at - edge] + old[at + edge])) *      \
                          (type)0.25;                                                              \
            }                                                                                      \
        }                                                                                          \
    }

DEFINE_STEP(step_single, float)
DEFINE_STEP(step_double, double)

/* Number of points of `grid` that differ from the inner points of `frame`. */
static uint64_t count_different(const struct duet__storage *grid, const struct duet__storage *frame)
{
    uint64_t count = 0;
    for (uint64_t j = 0; j < grid->cols; j++) {
        for (uint64_t i = 0; i < grid->rows; i++)
            count += duet__storage_value(grid, i, j) != duet__storage_value(frame, i + 1, j + 1);
    }
    return count;
}

/* A step between two filled grids with their boundary. */
struct stepping {
    const struct duet__storage *old, *new;
};

/* Computes columns of inner points, counted from 0. */
static void step_columns(void *self, uint64_t first, uint64_t end)
{
    const struct stepping *s = self;
    const void *old = s->old->memory;
    if (s->old->element_bytes == sizeof(float))
        step_single(old, (float *)(void *)s->new->memory, s->old->rows, first + 1, end + 1);
    else
        step_double(old, (double *)(void *)s->new->memory, s->old->rows, first + 1, end + 1);
}

/* Computes all steps in `frames`, two filled grids with their boundary. */
static uint64_t jacobi2d_judge(const struct duet__tiled_data *data, const struct duet__judging *how,
                               const struct duet__storage *frames)
{
    uint64_t n = data->problem.n;
    for (uint64_t step = 0; step < data->iterations && !duet__judging_stopped(how); step++) {
        struct stepping stepping = {&frames[step % 2], &frames[1 - step % 2]};
        duet__share(n, n * n, step_columns, &stepping);
    }
    uint64_t last = data->iterations % 2;
    return count_different(&data->matrices[GRIDS * last + GRID], &frames[last]);
}

static int jacobi2d_verify(void *pointer, const struct duet__judging *how,
                           struct duet__verdict *verdict, struct duet_message *message)
{
    const struct duet__tiled_data *data = pointer;
    struct duet__storage frames[2] = {framed(data), framed(data)};
    *verdict =
        (struct duet__verdict){.formula = "points that differ from those of a sequential run",
                               .threshold = 1};
    int error = duet__storage_allocate(&frames[0], message);
    if (!error)
        error = duet__storage_allocate(&frames[1], message);
    if (!error) {
        duet__storage_fill(&frames[0], NULL, NULL);
        duet__storage_fill(&frames[1], NULL, NULL);
        verdict->residual = (double)jacobi2d_judge(data, how, frames);
    }
    duet__storage_free(&frames[0]);
    duet__storage_free(&frames[1]);
    return error;
}

const struct duet__workload duet__workload_jacobi2d = {
    .name = "jacobi2d",
    .description = "Jacobi iteration for Laplace's equation on n x n points, tile x tile a task",
    .source =
        "Golub, Van Loan, Matrix Computations, section 10.1 (section 11.2 in the 4th edition)",
    .parameters = parameters,
    .kernels = kernels,
    .default_n = 8192,
    .default_tile = 1024,
    .real_n = 4096,
    .real_tile = 512,
    .check = jacobi2d_check,
    .flops = jacobi2d_flops,
    .tasks = jacobi2d_tasks,
    DUET__TILED_SLOTS(tiled, jacobi2d_fill),
    .verify = jacobi2d_verify,
};
