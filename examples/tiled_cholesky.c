/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program that uses duet: factorises a matrix by tiles, reads the result, changes the matrix, and
 * factorises again, as a maximum-likelihood estimation does in its loop.
 *
 * tiled_cholesky                                          runs on this machine
 *     tiled_cholesky --duet-simulate=idgraf --duet-gpus=4     simulated on another one
 *     DUET_SIMULATE=idgraf tiled_cholesky                     the same by the environment
 *     mpirun -n 4 tiled_cholesky --duet-nodes=2x2             on four nodes, each with its tiles
 *     tiled_cholesky --duet-simulate=idgraf --duet-nodes=4    simulated on four
 *
 * For one node only <duet/duet.h> is needed; link with -lduet -lm. For several, a program says who
 * owns its data (duet_own), and leaves to its owner what it does with data itself.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include <duet/duet.h>
#include <duet/nodes.h>

/* The matrix has 6 x 6 tiles of 320 x 320 elements. (Of idgraf, times for 320 and 960 are known.)
 */
enum { TILES = 6, TILE = 320 };

enum { POTRF, TRSM, SYRK, GEMM, KERNELS };

/* The program's state; of the matrix, only the tiles on and below the diagonal are used. */
struct program {
    struct duet_runtime *duet;
    double *data; /* tile (i, j) at (i * TILES + j) * TILE * TILE, column-major */
    struct duet_handle *a[TILES][TILES];
    struct duet_codelet *kernels[KERNELS];
};

/* ------------------------------------------------------------------------------------------- */
/* Kernels: the code of tasks, and its amount of work. A real program calls BLAS here. These kernels
 * rely on tiles without gaps between columns (call->buffers[i].ld == rows). */

/* C := C - A B', for gemm and syrk. */
static void update(double *c, const double *a, const double *b, size_t n)
{
    for (size_t j = 0; j < n; j++)
        for (size_t k = 0; k < n; k++)
            for (size_t i = 0; i < n; i++)
                c[i + j * n] -= a[i + k * n] * b[j + k * n];
}

static int run_gemm(const struct duet_call *call)
{
    const struct duet_buffer *buffers = call->buffers; /* in the order of the task's accesses */
    update(buffers[2].data, buffers[0].data, buffers[1].data, buffers[2].rows);
    return 0;
}

static int run_syrk(const struct duet_call *call)
{
    const struct duet_buffer *buffers = call->buffers;
    update(buffers[1].data, buffers[0].data, buffers[0].data, buffers[1].rows);
    return 0;
}

static int run_trsm(const struct duet_call *call)
{
    const double *l = call->buffers[0].data;
    double *b = call->buffers[1].data;
    size_t n = call->buffers[1].rows;
    for (size_t j = 0; j < n; j++) {
        for (size_t k = 0; k < j; k++)
            for (size_t i = 0; i < n; i++)
                b[i + j * n] -= b[i + k * n] * l[j + k * n];
        for (size_t i = 0; i < n; i++)
            b[i + j * n] /= l[j + j * n];
    }
    return 0;
}

static int run_potrf(const struct duet_call *call)
{
    double *a = call->buffers[0].data;
    size_t n = call->buffers[0].rows;
    for (size_t j = 0; j < n; j++) {
        for (size_t k = 0; k < j; k++)
            for (size_t i = j; i < n; i++)
                a[i + j * n] -= a[i + k * n] * a[j + k * n];
        if (!(a[j + j * n] > 0))
            return DUET_EINVAL; /* not positive definite: fails the task, and so the wait */
        double root = sqrt(a[j + j * n]);
        for (size_t i = j; i < n; i++)
            a[i + j * n] /= root;
    }
    return 0;
}

/* The argument of every task is its tile's edge. Kernel times are looked up by these counts. */
static double cube(const void *args)
{
    return pow(*(const double *)args, 3);
}

static double flops_potrf(const void *args)
{
    double n = *(const double *)args;
    return n * n * n / 3 + n * n / 2 + n / 6;
}

static double flops_syrk(const void *args)
{
    double n = *(const double *)args;
    return n * n * (n + 1);
}

static double flops_gemm(const void *args)
{
    return 2 * cube(args);
}

static int register_kernels(struct program *p)
{
    static const struct {
        const char *name;
        duet_kernel_fn run;
        double (*flops)(const void *args);
    } list[KERNELS] = {[POTRF] = {"dpotrf", run_potrf, flops_potrf},
                       [TRSM] = {"dtrsm", run_trsm, cube},
                       [SYRK] = {"dsyrk", run_syrk, flops_syrk},
                       [GEMM] = {"dgemm", run_gemm, flops_gemm}};
    for (int k = 0; k < KERNELS; k++) {
        /* There is no code for GPUs yet, but simulated ones need none; potrf stays on CPUs. */
        const struct duet_implementation where[] = {{"cpu", list[k].run}, {"cuda", NULL}};
        const struct duet_codelet_desc desc = {.name = list[k].name,
                                               .implementations = where,
                                               .implementation_count = k == POTRF ? 1 : 2,
                                               .flops = list[k].flops};
        int error = duet_register_codelet(p->duet, &desc, &p->kernels[k]);
        if (error)
            return error;
    }
    return 0;
}

/* ------------------------------------------------------------------------------------------- */
/* Data                                                                                         */

static double *tile_data(const struct program *p, size_t i, size_t j)
{
    return p->data + (i * TILES + j) * TILE * TILE;
}

/*
 * Registers each tile: from now on its data is touched only between acquire and release. Of several
 * nodes, each has memory for its own tiles only.
 */
static int register_tile(struct program *p, size_t i, size_t j)
{
    bool here = duet_node_here(p->duet, duet_node_at(p->duet, i, j));
    int error = duet_register_matrix(p->duet, here ? tile_data(p, i, j) : NULL, TILE, TILE, TILE,
                                     sizeof(double), &p->a[i][j]);
    return error ? error : duet_own(p->duet, p->a[i][j], duet_node_at(p->duet, i, j));
}

static int register_tiles(struct program *p)
{
    int error = 0;
    for (size_t i = 0; i < TILES; i++)
        for (size_t j = 0; !error && j <= i; j++)
            error = register_tile(p, i, j);
    return error;
}

/* Fills one tile of a matrix of exp(-|row - column|), with `noise` added on the diagonal. */
static int fill_tile(const struct program *p, size_t i, size_t j, double noise)
{
    bool here;
    unsigned node = duet_node_at(p->duet, i, j);
    /* waits, on that node, for the tasks that use it */
    int error = duet_acquire_on(p->duet, p->a[i][j], DUET_W, node, &here);
    if (error)
        return error;
    for (size_t col = 0; here && col < TILE; col++) {
        for (size_t row = 0; row < TILE; row++) {
            double distance = fabs((double)(i * TILE + row) - (double)(j * TILE + col));
            tile_data(p, i, j)[row + col * TILE] = exp(-distance) + (distance > 0 ? 0 : noise);
        }
    }
    return duet_release(p->duet, p->a[i][j]);
}

/* Reads the last pivot, which depends on all tasks, on node 0. */
static int read_pivot(const struct program *p, double *pivot)
{
    bool here;
    struct duet_handle *last = p->a[TILES - 1][TILES - 1];
    int error = duet_acquire_on(p->duet, last, DUET_R, 0, &here); /* brings the data to the host */
    if (error)
        return error;
    if (here && duet_computes(p->duet)) /* simulated tasks take time, but compute nothing */
        *pivot = ((const double *)duet_address(last))[TILE * TILE - 1];
    return duet_release(p->duet, last);
}

/* ------------------------------------------------------------------------------------------- */
/* Tasks                                                                                        */

static int submit(const struct program *p, int kernel, const struct duet_access *accesses,
                  size_t count)
{
    double edge = TILE;
    const struct duet_task_desc task = {.codelet = p->kernels[kernel],
                                        .accesses = accesses,
                                        .access_count = count,
                                        .args = &edge,
                                        .args_bytes = sizeof edge};
    return duet_submit(p->duet, &task);
}

/* Submits the factorisation in the order of a sequential program; duet finds what may overlap. */
static int factorise(const struct program *p)
{
    int error = 0;
    for (size_t k = 0; !error && k < TILES; k++) {
        struct duet_access panel = {p->a[k][k], DUET_RW};
        error = submit(p, POTRF, &panel, 1);
        for (size_t i = k + 1; !error && i < TILES; i++) {
            struct duet_access column[] = {{p->a[k][k], DUET_R}, {p->a[i][k], DUET_RW}};
            error = submit(p, TRSM, column, 2);
        }
        for (size_t i = k + 1; !error && i < TILES; i++) {
            struct duet_access diagonal[] = {{p->a[i][k], DUET_R}, {p->a[i][i], DUET_RW}};
            error = submit(p, SYRK, diagonal, 2);
            for (size_t j = k + 1; !error && j < i; j++) {
                struct duet_access inner[] = {{p->a[i][k], DUET_R},
                                              {p->a[j][k], DUET_R},
                                              {p->a[i][j], DUET_RW}};
                error = submit(p, GEMM, inner, 3);
            }
        }
    }
    return error;
}

/* Reports on node 0 that something was done. */
static void tell(const struct program *p, int round, const char *what)
{
    if (duet_node(p->duet) == 0)
        printf("round %d: %s at %.6f s\n", round, what, duet_now(p->duet));
}

/* One round: fill, factorise, wait, read the result. */
static int run_round(const struct program *p, int round)
{
    double pivot = 0;
    int error = 0;
    for (size_t i = 0; i < TILES; i++)
        for (size_t j = 0; !error && j <= i; j++)
            error = fill_tile(p, i, j, 0.1 * round);
    if (error || (error = factorise(p)))
        return error;
    tell(p, round, "submitted");
    if ((error = duet_wait(p->duet)))
        return error;
    tell(p, round, "factorised");
    if ((error = read_pivot(p, &pivot)))
        return error;
    tell(p, round, "result read");
    if (duet_computes(p->duet) && duet_node(p->duet) == 0)
        printf("round %d: last pivot %.12g\n", round, pivot);
    return 0;
}

static int run(struct program *p)
{
    p->data = malloc(sizeof(double) * TILES * TILES * TILE * TILE);
    int error = p->data ? register_kernels(p) : DUET_ENOMEM;
    if (!error)
        error = register_tiles(p);
    for (int round = 1; !error && round <= 2; round++)
        error = run_round(p, round);
    return error;
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
    if (!error)
        error = duet_open(&p.duet, &config, &message);
    if (error) {
        fprintf(stderr, "%s: %s\n", argv[0], *message.text ? message.text : duet_strerror(error));
        return 2;
    }

    error = run(&p);
    if (error) {
        const char *text = duet_last_message(p.duet);
        fprintf(stderr, "%s: %s\n", argv[0], *text ? text : duet_strerror(error));
    }
    int closing = duet_close(p.duet); /* waits for what is left, before the tiles are freed */
    if (!error && closing)
        fprintf(stderr, "%s: %s\n", argv[0], duet_strerror(closing));
    free(p.data);
    return error || closing ? 1 : 0;
}
