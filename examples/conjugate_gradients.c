/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Conjugate gradients (Hestenes, Stiefel, 1952) on a sparse matrix in compressed rows (CSR), the
 * Laplacian of a square grid. Rows are in blocks; dot products are reductions, to which all workers
 * add at once. Iterations are submitted without waiting: the residual is read now and then. Two of
 * them are recorded as a graph, which is submitted again and again.
 *
 * conjugate_gradients [EDGE [BLOCKS]]        200 points a side, in 8 blocks of rows
 *
 * Link with -lduet -lm.
 */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <duet/duet.h>

enum { ITERATIONS = 2000, LOOK = 20, DIAGONALS = 5 };

static const double TOLERANCE = 1e-10; /* relative, of the residual */

enum { X, R, P, Q, VECTORS }; /* x, the residual, the direction, and A times the direction */
enum { CLEAR, ADD, MULTIPLY, DOT, STEP, DIRECTION, KERNELS };

/* A block of rows: of the matrix, and of the vectors. */
struct block {
    size_t first, rows; /* unknowns */
    uint32_t *row, *column;
    double *value;
    struct duet_handle *matrix; /* rows, columns and values */
    struct duet_handle *vectors[VECTORS];
};

struct program {
    struct duet_runtime *duet;
    size_t edge, block_count;
    double *vectors; /* x, r, p, q, each of all unknowns */
    struct block *blocks;
    double scalars[3];
    struct duet_handle *rr[2], *pq; /* r'r of this iteration and the last one; p'q */
    struct duet_codelet *kernels[KERNELS];
};

/* ------------------------------------------------------------------------------------------- */
/* Kernels                                                                                      */

static int run_clear(const struct duet_call *call)
{
    *(double *)call->buffers[0].data = 0;
    return 0;
}

static int run_add(const struct duet_call *call)
{
    *(double *)call->buffers[0].data += *(const double *)call->buffers[1].data;
    return 0;
}

/*
 * q := A p. Matrix R: rows, columns and values; q W; p R for the blocks before this one, this one
 * and after it (at an end of the grid this one again). Values: the rows of this block, and the
 * first row.
 */
static int run_multiply(const struct duet_call *call)
{
    const struct duet_buffer *buffers = call->buffers, *p = &buffers[4];
    const uint32_t *row = buffers[0].data, *column = buffers[1].data;
    const double *value = buffers[2].data;
    double *q = buffers[3].data;
    size_t rows, first;
    int error = duet_values(call, &rows, sizeof rows, &first, sizeof first, NULL);
    for (size_t i = 0; i < rows && !error; i++) {
        q[i] = 0;
        for (uint32_t k = row[i]; k < row[i + 1]; k++) {
            bool before = column[k] < first, after = column[k] >= first + rows;
            const double *part = p[before ? 0 : after ? 2 : 1].data;
            size_t begin = before ? first - p[0].rows : after ? first + rows : first;
            q[i] += value[k] * part[column[k] - begin];
        }
    }
    return error;
}

/* Adds a block of a'b to the sum: a R, b R, sum REDUCE. */
static int run_dot(const struct duet_call *call)
{
    const double *a = call->buffers[0].data, *b = call->buffers[1].data;
    double sum = 0;
    for (size_t i = 0; i < call->buffers[0].rows; i++)
        sum += a[i] * b[i];
    *(double *)call->buffers[2].data += sum;
    return 0;
}

/* x += alpha p, r -= alpha q, alpha = r'r / p'q: x RW, r RW, p R, q R, r'r R, p'q R. */
static int run_step(const struct duet_call *call)
{
    double *x = call->buffers[0].data, *r = call->buffers[1].data;
    const double *p = call->buffers[2].data, *q = call->buffers[3].data;
    double alpha = *(const double *)call->buffers[4].data / *(const double *)call->buffers[5].data;
    for (size_t i = 0; i < call->buffers[0].rows; i++) {
        x[i] += alpha * p[i];
        r[i] -= alpha * q[i];
    }
    return 0;
}

/* p := r + beta p, beta = new r'r / old r'r: p RW, r R, new R, old R. */
static int run_direction(const struct duet_call *call)
{
    double *p = call->buffers[0].data;
    const double *r = call->buffers[1].data;
    double beta = *(const double *)call->buffers[2].data / *(const double *)call->buffers[3].data;
    for (size_t i = 0; i < call->buffers[0].rows; i++)
        p[i] = r[i] + beta * p[i];
    return 0;
}

/* For simulated machines: a microsecond and the time of the vectors. The value is the rows'. */
static double cost(const void *args, const char *arch)
{
    (void)arch;
    const size_t *rows = duet_value(args, 0, sizeof *rows);
    return 1e-6 + (rows ? 1e-9 * (double)*rows : 0);
}

static int register_kernels(struct program *p)
{
    static const struct {
        const char *name;
        duet_kernel_fn run;
    } list[KERNELS] = {[CLEAR] = {"clear", run_clear},
                       [ADD] = {"add", run_add},
                       [MULTIPLY] = {"multiply", run_multiply},
                       [DOT] = {"dot", run_dot},
                       [STEP] = {"step", run_step},
                       [DIRECTION] = {"direction", run_direction}};
    int error = 0;
    for (int k = 0; k < KERNELS && !error; k++) {
        const struct duet_implementation where[] = {{"cpu", list[k].run}, {"cuda", NULL}};
        const struct duet_codelet_desc desc = {.name = list[k].name,
                                               .implementations = where,
                                               .implementation_count = 2,
                                               .cost = cost};
        error = duet_register_codelet(p->duet, &desc, &p->kernels[k]);
    }
    return error;
}

/* ------------------------------------------------------------------------------------------- */
/* Data                                                                                         */

/* The rows of a block: 4 on the diagonal, -1 for each neighbour in the grid. false: no memory. */
static bool fill_matrix(const struct program *p, struct block *block)
{
    size_t n = p->edge * p->edge, count = 0;
    block->row = malloc((block->rows + 1) * sizeof *block->row);
    block->column = malloc(block->rows * DIAGONALS * sizeof *block->column);
    block->value = malloc(block->rows * DIAGONALS * sizeof *block->value);
    if (!block->row || !block->column || !block->value)
        return false;
    for (size_t i = 0; i < block->rows; i++) {
        size_t at = block->first + i, column = at % p->edge;
        const bool there[DIAGONALS] = {at >= p->edge, column > 0, true, column + 1 < p->edge,
                                       at + p->edge < n};
        const size_t neighbours[DIAGONALS] = {at - p->edge, at - 1, at, at + 1, at + p->edge};
        block->row[i] = (uint32_t)count;
        for (size_t d = 0; d < DIAGONALS; d++)
            if (there[d]) {
                block->column[count] = (uint32_t)neighbours[d];
                block->value[count++] = neighbours[d] == at ? 4 : -1;
            }
    }
    block->row[block->rows] = (uint32_t)count;
    return true;
}

static int register_block(const struct program *p, struct block *block)
{
    size_t n = p->edge * p->edge, entries = block->row[block->rows];
    double *vectors = p->vectors + block->first;
    const struct duet_array arrays[] = {{block->row, block->rows + 1, 1, block->rows + 1,
                                         sizeof *block->row},
                                        {block->column, entries, 1, entries, sizeof *block->column},
                                        {block->value, entries, 1, entries, sizeof *block->value}};
    int error = duet_register_arrays(p->duet, arrays, 3, &block->matrix);
    for (size_t v = 0; v < VECTORS && !error; v++)
        error = duet_register_vector(p->duet, vectors + v * n, block->rows, sizeof(double),
                                     &block->vectors[v]);
    return error;
}

/* Sets x = 0, r = p = b, all ones; makes blocks of rows of the grid. */
static int prepare(struct program *p)
{
    size_t n = p->edge * p->edge;
    p->vectors = calloc(VECTORS * n, sizeof *p->vectors);
    p->blocks = calloc(p->block_count, sizeof *p->blocks);
    if (!p->vectors || !p->blocks)
        return DUET_ENOMEM;
    for (size_t i = R * n; i < Q * n; i++) /* r and p */
        p->vectors[i] = 1;
    int error = 0;
    for (size_t b = 0; b < p->block_count && !error; b++) {
        struct block *block = &p->blocks[b];
        block->first = b * p->edge / p->block_count * p->edge;
        block->rows = (b + 1) * p->edge / p->block_count * p->edge - block->first;
        error = fill_matrix(p, block) ? register_block(p, block) : DUET_ENOMEM;
    }
    struct duet_handle **scalars[] = {&p->rr[0], &p->rr[1], &p->pq};
    for (size_t s = 0; s < 3 && !error; s++) {
        error = duet_register_vector(p->duet, &p->scalars[s], 1, sizeof(double), scalars[s]);
        if (!error)
            error = duet_set_reduction(p->duet, *scalars[s], p->kernels[CLEAR], p->kernels[ADD]);
    }
    return error;
}

/* ------------------------------------------------------------------------------------------- */
/* Tasks                                                                                        */

/* sum := a'b */
static int dot(const struct program *p, int a, int b, struct duet_handle *sum)
{
    int error = duet_insert(p->duet, p->kernels[CLEAR], DUET_W, sum, 0);
    for (size_t k = 0; k < p->block_count && !error; k++) {
        const struct block *block = &p->blocks[k];
        error = duet_insert(p->duet, p->kernels[DOT], DUET_R, block->vectors[a], DUET_R,
                            block->vectors[b], DUET_REDUCE, sum, DUET_VALUE, &block->rows,
                            sizeof block->rows, 0);
    }
    return error;
}

/* q := A p */
static int multiply(const struct program *p)
{
    int error = 0;
    for (size_t b = 0; b < p->block_count && !error; b++) {
        const struct block *block = &p->blocks[b];
        struct duet_handle *before = p->blocks[b ? b - 1 : b].vectors[P];
        struct duet_handle *after = p->blocks[b + 1 < p->block_count ? b + 1 : b].vectors[P];
        error = duet_insert(p->duet, p->kernels[MULTIPLY], DUET_R, block->matrix, DUET_W,
                            block->vectors[Q], DUET_R, before, DUET_R, block->vectors[P], DUET_R,
                            after, DUET_VALUE, &block->rows, sizeof block->rows, DUET_VALUE,
                            &block->first, sizeof block->first, 0);
    }
    return error;
}

/* One iteration; r'r of the last one is in rr[last], that of this one will be in the other. */
static int iterate(const struct program *p, int last)
{
    struct duet_handle *old = p->rr[last], *new = p->rr[!last];
    int error = multiply(p);
    if (!error)
        error = dot(p, P, Q, p->pq);
    for (size_t b = 0; b < p->block_count && !error; b++) {
        const struct block *block = &p->blocks[b];
        error = duet_insert(p->duet, p->kernels[STEP], DUET_RW, block->vectors[X], DUET_RW,
                            block->vectors[R], DUET_R, block->vectors[P], DUET_R, block->vectors[Q],
                            DUET_R, old, DUET_R, p->pq, DUET_VALUE, &block->rows,
                            sizeof block->rows, 0);
    }
    if (!error)
        error = dot(p, R, R, new);
    for (size_t b = 0; b < p->block_count && !error; b++) {
        const struct block *block = &p->blocks[b];
        error = duet_insert(p->duet, p->kernels[DIRECTION], DUET_RW, block->vectors[P], DUET_R,
                            block->vectors[R], DUET_R, new, DUET_R, old, DUET_VALUE, &block->rows,
                            sizeof block->rows, 0);
    }
    return error;
}

/* Reads a scalar that tasks have computed. */
static int look_at(const struct program *p, struct duet_handle *scalar, double *value)
{
    int error = duet_acquire(p->duet, scalar, DUET_R);
    if (error)
        return error;
    *value = *(const double *)duet_address(scalar);
    return duet_release(p->duet, scalar);
}

/* Two iterations, after which r'r of the last one is in rr[0] again; recorded the first time. */
static int iterate_twice(const struct program *p, struct duet_graph **graph)
{
    if (*graph)
        return duet_graph_submit(p->duet, *graph);
    int error = duet_graph_begin(p->duet);
    if (error)
        return error;
    error = iterate(p, 0);
    if (!error)
        error = iterate(p, 1);
    int ended = duet_graph_end(p->duet, graph);
    return error ? error : ended;
}

/* Iterates until the residual is small; in a simulation, which computes nothing, LOOK times. */
static int solve(const struct program *p, bool simulated, int *iterations)
{
    struct duet_graph *graph = NULL;
    double start = 0, now;
    int error = dot(p, R, R, p->rr[0]);
    if (!error)
        error = look_at(p, p->rr[0], &start);
    now = start;
    for (*iterations = 0; !error && *iterations < ITERATIONS; *iterations += 2) {
        if (*iterations % LOOK == 0 && *iterations) {
            error = look_at(p, p->rr[0], &now);
            if (error || simulated || !(sqrt(now / start) > TOLERANCE))
                break;
        }
        error = iterate_twice(p, &graph);
    }
    duet_graph_free(graph);
    return error;
}

/* ------------------------------------------------------------------------------------------- */
/* The program                                                                                  */

/* |b - A x| / |b| of the computed x. */
static double residual(const struct program *p)
{
    const double *x = p->vectors;
    double sum = 0;
    for (size_t b = 0; b < p->block_count; b++) {
        const struct block *block = &p->blocks[b];
        for (size_t i = 0; i < block->rows; i++) {
            double rest = 1;
            for (uint32_t k = block->row[i]; k < block->row[i + 1]; k++)
                rest -= block->value[k] * x[block->column[k]];
            sum += rest * rest;
        }
    }
    return sqrt(sum) / (double)p->edge;
}

static int run(struct program *p, bool simulated)
{
    int iterations = 0, error = register_kernels(p);
    if (!error)
        error = prepare(p);
    double start_s = duet_now(p->duet);
    if (!error)
        error = solve(p, simulated, &iterations);
    for (size_t b = 0; b < p->block_count && !error; b++)
        error = duet_unregister(p->duet, p->blocks[b].vectors[X]);
    if (error)
        return error;
    printf("%d iterations in %.6f s\n", iterations, duet_now(p->duet) - start_s);
    if (!simulated)
        printf("|b - A x| / |b| = %.2g\n", residual(p));
    return simulated || residual(p) < 10 * TOLERANCE ? 0 : DUET_ETASK;
}

static int say(const char *program, const char *what)
{
    fprintf(stderr, "%s: %s\n", program, what);
    return 1;
}

static void free_data(struct program *p)
{
    for (size_t b = 0; p->blocks && b < p->block_count; b++) {
        free(p->blocks[b].row);
        free(p->blocks[b].column);
        free(p->blocks[b].value);
    }
    free(p->blocks);
    free(p->vectors);
}

int main(int argc, char **argv)
{
    struct program p = {0};
    struct duet_config config;
    struct duet_message message = {""};
    duet_config_init(&config);
    int error = duet_config_environment(&config, &message);
    if (!error)
        error = duet_config_arguments(&config, &argc, argv, &message);
    p.edge = argc > 1 ? strtoul(argv[1], NULL, 10) : 200;
    p.block_count = argc > 2 ? strtoul(argv[2], NULL, 10) : 8;
    if (!error && (p.edge < 1 || p.edge > 20000 || p.block_count < 1 || p.block_count > p.edge))
        error = duet_fail(&message, DUET_EINVAL,
                          "a side has 1 to 20000 points, and no more blocks than that");
    if (!error)
        error = duet_open(&p.duet, &config, &message);
    if (error) {
        (void)say(argv[0], *message.text ? message.text : duet_strerror(error));
        return 2;
    }
    int status = 0;
    if (run(&p, !duet_computes(p.duet))) {
        const char *text = duet_last_message(p.duet);
        status = say(argv[0], *text ? text : "no solution was found");
    }
    int closed = duet_close(p.duet); /* before the data is freed */
    free_data(&p);
    return status || closed;
}
