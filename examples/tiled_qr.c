/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A tiled QR factorisation with LAPACK's kernels geqrt, gemqrt, tpqrt and tpmqrt, as in Buttari,
 * Langou, Kurzak, Dongarra, "A class of parallel tiled linear algebra algorithms for multicore
 * architectures", Parallel Computing 35, 2009. The factors of the block reflectors are temporary
 * data: they live where the kernels run. A factorised tile has the reflectors below its diagonal
 * and R above; the two are parts of it, so that the tiles beside it are updated with the former
 * while those below it are taken into the latter.
 *
 *     tiled_qr [N [TILE]]        1024, and DUET_TILE or 128; N is a multiple of TILE
 *     env $(cat tuned.env) tiled_qr         with what `duet tune qr --env tuned.env` has found
 *
 * Link with -lduet -llapacke -lm.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <lapacke.h>

#include <duet/duet.h>

enum { INNER = 32 }; /* columns of a block reflector, at most */

enum { GEQRT, GEMQRT, TPQRT, TPMQRT, KERNELS };
enum { LOWER, UPPER, PARTS }; /* of a factorised tile; the diagonal belongs to the upper one */

struct program {
    struct duet_runtime *duet;
    size_t tiles, edge;
    double *data;           /* tile (i, j) at (i + j * tiles) * edge * edge, column-major */
    struct duet_handle **a; /* of the tiles, in the same order */
    struct duet_codelet *kernels[KERNELS];
};

/* ------------------------------------------------------------------------------------------- */
/* Kernels. LAPACKE's functions with _work take row and column strides as they are.             */

static lapack_int inner(const struct duet_buffer *factors)
{
    return (lapack_int)factors->rows;
}

static int edge_of(const struct duet_buffer *tile)
{
    return (int)tile->cols;
}

/* Allocates a kernel's workspace: INNER columns of a tile. NULL: no memory. */
static double *work_of(const struct duet_call *call)
{
    return malloc(sizeof(double) * INNER * call->buffers[0].cols);
}

static int done(double *work, lapack_int info)
{
    free(work);
    return info ? DUET_ETASK : 0;
}

/* A = Q R: R above the diagonal, the reflectors below; A RW, T W. */
static int run_geqrt(const struct duet_call *call)
{
    const struct duet_buffer *a = &call->buffers[0], *t = &call->buffers[1];
    double *work = work_of(call);
    if (!work)
        return DUET_ENOMEM;
    return done(work, LAPACKE_dgeqrt_work(LAPACK_COL_MAJOR, edge_of(a), edge_of(a), inner(t),
                                          a->data, (int)a->ld, t->data, (int)t->ld, work));
}

/* C := Q' C with the reflectors of geqrt; V R (below the diagonal), T R, C RW. */
static int run_gemqrt(const struct duet_call *call)
{
    const struct duet_buffer *v = &call->buffers[0], *t = &call->buffers[1], *c = &call->buffers[2];
    double *work = work_of(call);
    if (!work)
        return DUET_ENOMEM;
    return done(work, LAPACKE_dgemqrt_work(LAPACK_COL_MAJOR, 'L', 'T', edge_of(c), edge_of(c),
                                           edge_of(c), inner(t), v->data, (int)v->ld, t->data,
                                           (int)t->ld, c->data, (int)c->ld, work));
}

/* Takes a tile into the R above it: R RW (from the diagonal up), B RW (the reflectors), T W. */
static int run_tpqrt(const struct duet_call *call)
{
    const struct duet_buffer *r = &call->buffers[0], *b = &call->buffers[1], *t = &call->buffers[2];
    double *work = work_of(call);
    if (!work)
        return DUET_ENOMEM;
    return done(work,
                LAPACKE_dtpqrt_work(LAPACK_COL_MAJOR, edge_of(b), edge_of(b), 0, inner(t), r->data,
                                    (int)r->ld, b->data, (int)b->ld, t->data, (int)t->ld, work));
}

/* C, D := Q' (C, D) for two tiles beside them: V R, T R, upper tile RW, lower tile RW. */
static int run_tpmqrt(const struct duet_call *call)
{
    const struct duet_buffer *v = &call->buffers[0], *t = &call->buffers[1];
    const struct duet_buffer *upper = &call->buffers[2], *lower = &call->buffers[3];
    double *work = work_of(call);
    if (!work)
        return DUET_ENOMEM;
    return done(work, LAPACKE_dtpmqrt_work(LAPACK_COL_MAJOR, 'L', 'T', edge_of(lower),
                                           edge_of(lower), edge_of(lower), 0, inner(t), v->data,
                                           (int)v->ld, t->data, (int)t->ld, upper->data,
                                           (int)upper->ld, lower->data, (int)lower->ld, work));
}

/* ------------------------------------------------------------------------------------------- */
/* Tasks                                                                                        */

/* Work of each kernel, in cubes of the tile's edge. */
static const struct {
    const char *name;
    duet_kernel_fn run;
    double cubes;
} kernels[KERNELS] = {[GEQRT] = {"dgeqrt", run_geqrt, 4. / 3},
                      [GEMQRT] = {"dgemqrt", run_gemqrt, 2},
                      [TPQRT] = {"dtpqrt", run_tpqrt, 2},
                      [TPMQRT] = {"dtpmqrt", run_tpmqrt, 4}};

static double flops(const void *args)
{
    return *(const double *)duet_value(args, 0, sizeof(double));
}

/* For simulated machines that know nothing of these kernels: 5 GFlop/s on a CPU core, 100 on
 * others.
 */
static double cost(const void *args, const char *arch)
{
    return flops(args) / (strstr(arch, "cpu") ? 5e9 : 100e9);
}

static int register_kernels(struct program *p)
{
    int error = 0;
    for (int k = 0; k < KERNELS && !error; k++) {
        const struct duet_implementation where[] = {{"cpu", kernels[k].run}, {"cuda", NULL}};
        const struct duet_codelet_desc desc = {.name = kernels[k].name,
                                               .implementations = where,
                                               .implementation_count = 2,
                                               .flops = flops,
                                               .cost = cost};
        error = duet_register_codelet(p->duet, &desc, &p->kernels[k]);
    }
    return error;
}

static struct duet_handle *tile(const struct program *p, size_t i, size_t j)
{
    return p->a[i + j * p->tiles];
}

/* Flops of a kernel, the value of its tasks. */
static double work_of_kernel(const struct program *p, int kernel)
{
    return kernels[kernel].cubes * pow((double)p->edge, 3);
}

/* Registers factors of a block reflector, which its tasks will fill and use. */
static int new_factors(const struct program *p, struct duet_handle **t)
{
    size_t rows = p->edge < INNER ? p->edge : INNER;
    return duet_register_temporary(p->duet, rows, p->edge, sizeof(double), t);
}

/* Submits the tasks of the diagonal tile, whose parts are then known, and of its row. */
static int eliminate_diagonal(const struct program *p, size_t k, struct duet_handle **parts)
{
    double geqrt = work_of_kernel(p, GEQRT), gemqrt = work_of_kernel(p, GEMQRT);
    struct duet_handle *t;
    int error = new_factors(p, &t);
    if (error)
        return error;
    error = duet_insert(p->duet, p->kernels[GEQRT], DUET_RW, tile(p, k, k), DUET_W, t, DUET_VALUE,
                        &geqrt, sizeof geqrt, 0);
    if (!error)
        error = duet_cut_triangles(p->duet, tile(p, k, k), DUET_DIAGONAL_UPPER, parts);
    for (size_t j = k + 1; j < p->tiles && !error; j++)
        error = duet_insert(p->duet, p->kernels[GEMQRT], DUET_R, parts[LOWER], DUET_R, t, DUET_RW,
                            tile(p, k, j), DUET_VALUE, &gemqrt, sizeof gemqrt, 0);
    int freed = duet_unregister_submit(p->duet, t);
    return error ? error : freed;
}

/* Submits the tasks of a tile below it, and of both rows; r is the upper part of the diagonal
 * tile. */
static int eliminate_below(const struct program *p, size_t k, size_t i, struct duet_handle *r)
{
    double tpqrt = work_of_kernel(p, TPQRT), tpmqrt = work_of_kernel(p, TPMQRT);
    struct duet_handle *t;
    int error = new_factors(p, &t);
    if (error)
        return error;
    error = duet_insert(p->duet, p->kernels[TPQRT], DUET_RW, r, DUET_RW, tile(p, i, k), DUET_W, t,
                        DUET_VALUE, &tpqrt, sizeof tpqrt, 0);
    for (size_t j = k + 1; j < p->tiles && !error; j++)
        error = duet_insert(p->duet, p->kernels[TPMQRT], DUET_R, tile(p, i, k), DUET_R, t, DUET_RW,
                            tile(p, k, j), DUET_RW, tile(p, i, j), DUET_VALUE, &tpmqrt,
                            sizeof tpmqrt, 0);
    int freed = duet_unregister_submit(p->duet, t);
    return error ? error : freed;
}

static int factorise(const struct program *p)
{
    int error = 0;
    for (size_t k = 0; k < p->tiles && !error; k++) {
        struct duet_handle *parts[PARTS];
        error = eliminate_diagonal(p, k, parts);
        for (size_t i = k + 1; i < p->tiles && !error; i++)
            error = eliminate_below(p, k, i, parts[UPPER]);
    }
    return error;
}

/* ------------------------------------------------------------------------------------------- */
/* Verification                                                                                 */

static size_t order(const struct program *p)
{
    return p->tiles * p->edge;
}

static double *element(const struct program *p, double *data, size_t row, size_t col)
{
    size_t b = p->edge;
    return &data[(row / b + col / b * p->tiles) * b * b + row % b + col % b * b];
}

/* z := M' M x; for R, only the part of M above the diagonal counts. */
static void apply_twice(const struct program *p, double *m, bool upper, const double *x, double *y,
                        double *z)
{
    size_t n = order(p);
    memset(y, 0, n * sizeof *y);
    for (size_t j = 0; j < n; j++)
        for (size_t i = 0; i < (upper ? j + 1 : n); i++)
            y[i] += *element(p, m, i, j) * x[j];
    for (size_t j = 0; j < n; j++) {
        z[j] = 0;
        for (size_t i = 0; i < (upper ? j + 1 : n); i++)
            z[j] += *element(p, m, i, j) * y[i];
    }
}

/* Relative distance of R' R x from A' A x; below 0: no memory. */
static double residual(const struct program *p, double *original)
{
    size_t n = order(p);
    double *vectors = n ? calloc(4 * n, sizeof *vectors) : NULL, difference = 0, norm = 0;
    if (!vectors)
        return -1;
    double *x = vectors, *y = x + n, *of_a = y + n, *of_r = of_a + n;
    for (size_t i = 0; i < n; i++)
        x[i] = sin((double)i);
    apply_twice(p, original, false, x, y, of_a);
    apply_twice(p, p->data, true, x, y, of_r);
    for (size_t i = 0; i < n; i++) {
        difference += (of_a[i] - of_r[i]) * (of_a[i] - of_r[i]);
        norm += of_a[i] * of_a[i];
    }
    free(vectors);
    return sqrt(difference / norm);
}

/* ------------------------------------------------------------------------------------------- */
/* The program                                                                                  */

/* Fills with numbers in [-0.5, 0.5], and more on the diagonal. */
static void fill(const struct program *p)
{
    uint64_t state = 42;
    size_t n = order(p);
    for (size_t i = 0; i < n * n; i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        *element(p, p->data, i % n, i / n) =
            (double)(state >> 11) / 9007199254740992. - (i % n == i / n ? -0.5 : 0.5);
    }
}

static int register_tiles(const struct program *p)
{
    int error = 0;
    size_t size = p->edge * p->edge;
    for (size_t i = 0; i < p->tiles * p->tiles && !error; i++)
        error = duet_register_matrix(p->duet, p->data + i * size, p->edge, p->edge, p->edge,
                                     sizeof(double), &p->a[i]);
    return error;
}

/* Factorises, and fetches the result. */
static int run(struct program *p)
{
    int error = register_kernels(p);
    if (!error)
        error = register_tiles(p);
    double start_s = duet_now(p->duet);
    if (!error)
        error = factorise(p);
    if (!error)
        error = duet_wait(p->duet);
    if (!error)
        printf("factorised in %.6f s\n", duet_now(p->duet) - start_s);
    for (size_t i = 0; i < p->tiles * p->tiles && !error; i++)
        error = duet_unregister(p->duet, p->a[i]);
    return error;
}

/* Allocates the matrix and its copy. false: no memory. */
static bool prepare(struct program *p, double **original)
{
    size_t elements = order(p) * order(p);
    p->a = calloc(p->tiles * p->tiles, sizeof(struct duet_handle *));
    p->data = malloc(elements * sizeof(double));
    *original = malloc(elements * sizeof(double));
    if (!p->a || !p->data || !*original)
        return false;
    fill(p);
    memcpy(*original, p->data, elements * sizeof(double));
    return true;
}

static int say(const char *program, const char *what)
{
    fprintf(stderr, "%s: %s\n", program, what);
    return 1;
}

static int open_runtime(struct program *p, struct duet_config *config, int *argc, char **argv)
{
    struct duet_message message = {""};
    duet_config_init(config);
    int error = duet_config_environment(config, &message);
    if (!error)
        error = duet_config_arguments(config, argc, argv, &message);
    if (!error)
        error = duet_open(&p->duet, config, &message);
    if (error)
        (void)say(argv[0], *message.text ? message.text : duet_strerror(error));
    return error;
}

int main(int argc, char **argv)
{
    struct program p = {0};
    struct duet_config config;
    double *original = NULL;
    if (open_runtime(&p, &config, &argc, argv))
        return 2;
    size_t n = argc > 1 ? strtoul(argv[1], NULL, 10) : 1024;
    const char *edge = argc > 2 ? argv[2] : getenv("DUET_TILE");
    p.edge = edge ? strtoul(edge, NULL, 10) : 128;
    p.tiles = p.edge ? n / p.edge : 0;
    int status = 2;
    if (!p.tiles || n % p.edge || p.edge < 2 || n > 100000) {
        (void)say(argv[0], "the matrix needs a whole number of tiles, of 2 rows or more: tiled_qr "
                           "1024 128");
    } else if (!prepare(&p, &original)) {
        status = say(argv[0], "no memory left for the matrix");
    } else {
        status = run(&p) ? say(argv[0], duet_last_message(p.duet)) : 0;
    }
    bool computes = duet_computes(p.duet);
    int closed = duet_close(p.duet); /* before the tiles are freed */
    if (!status && closed)
        status = say(argv[0], duet_strerror(closed));
    if (!status && computes) {
        double error = residual(&p, original);
        printf("|A'A x - R'R x| / |A'A x| = %.2g\n", error);
        if (!(error >= 0 && error < 1e-12))
            status = say(argv[0], "the result is wrong");
    }
    free(original);
    free(p.data);
    free(p.a);
    return status;
}
