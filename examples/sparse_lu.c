/* SPDX-License-Identifier: Apache-2.0 */
/*
 * LU factorisation without pivoting of a matrix of blocks of which many are zero, as the SparseLU
 * of the Barcelona OpenMP Tasks Suite (Duran et al., ICPP 2009): blocks come into being while tasks
 * are submitted. They are temporary data, so that memory is taken when their first task runs, where
 * it runs.
 *
 *     sparse_lu [BLOCKS [EDGE]]        16 blocks of 64 elements a side
 *
 * Link with -lduet -lm.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <duet/duet.h>

enum { FILL, LU0, FWD, BDIV, BMOD, KERNELS };

struct program {
    struct duet_runtime *duet;
    size_t blocks, edge;
    struct duet_handle **a; /* block (i, j) at i + j * blocks; NULL: it is zero */
    struct duet_codelet *kernels[KERNELS];
};

/* ------------------------------------------------------------------------------------------- */
/* Kernels                                                                                      */

/* True if this block of the original matrix is not zero. */
static bool present(size_t i, size_t j)
{
    return i == j || i + 1 == j || j + 1 == i || (i * 7 + j * 3) % 11 == 0;
}

/* Element of the original matrix, whose diagonal dominates. */
static double original(size_t edge, size_t blocks, size_t row, size_t col)
{
    if (!present(row / edge, col / edge))
        return 0;
    return row == col ? (double)(blocks * edge)
                      : sin((double)(row * 31 + col * 17)); /* any numbers would do */
}

/* Place of a block, and other arguments of `fill`. */
struct place {
    size_t row, col, blocks;
    bool zero;
};

static int run_fill(const struct duet_call *call)
{
    const struct duet_buffer *a = &call->buffers[0];
    struct place place;
    int error = duet_values(call, &place, sizeof place, NULL);
    if (error)
        return error;
    double *data = a->data;
    for (size_t j = 0; j < a->cols; j++)
        for (size_t i = 0; i < a->rows; i++)
            data[i + j * a->ld] = place.zero
                                      ? 0
                                      : original(a->rows, place.blocks, place.row * a->rows + i,
                                                 place.col * a->cols + j);
    return 0;
}

/* A = L U: L below the diagonal, ones on it; A RW. */
static int run_lu0(const struct duet_call *call)
{
    double *a = call->buffers[0].data;
    size_t n = call->buffers[0].rows, ld = call->buffers[0].ld;
    for (size_t k = 0; k < n; k++) {
        if (a[k + k * ld] == 0)
            return duet_fail(call->message, DUET_ETASK, "pivot %zu is zero", k);
        for (size_t i = k + 1; i < n; i++)
            a[i + k * ld] /= a[k + k * ld];
        for (size_t j = k + 1; j < n; j++)
            for (size_t i = k + 1; i < n; i++)
                a[i + j * ld] -= a[i + k * ld] * a[k + j * ld];
    }
    return 0;
}

/* B := L \ B; L R, B RW. */
static int run_fwd(const struct duet_call *call)
{
    const double *l = call->buffers[0].data;
    double *b = call->buffers[1].data;
    size_t n = call->buffers[1].rows, ld = call->buffers[0].ld, ldb = call->buffers[1].ld;
    for (size_t j = 0; j < n; j++)
        for (size_t k = 0; k < n; k++)
            for (size_t i = k + 1; i < n; i++)
                b[i + j * ldb] -= l[i + k * ld] * b[k + j * ldb];
    return 0;
}

/* B := B / U; U R, B RW. */
static int run_bdiv(const struct duet_call *call)
{
    const double *u = call->buffers[0].data;
    double *b = call->buffers[1].data;
    size_t n = call->buffers[1].rows, ld = call->buffers[0].ld, ldb = call->buffers[1].ld;
    for (size_t j = 0; j < n; j++) {
        for (size_t k = 0; k < j; k++)
            for (size_t i = 0; i < n; i++)
                b[i + j * ldb] -= b[i + k * ldb] * u[k + j * ld];
        for (size_t i = 0; i < n; i++)
            b[i + j * ldb] /= u[j + j * ld];
    }
    return 0;
}

/* C := C - A B; A R, B R, C RW. */
static int run_bmod(const struct duet_call *call)
{
    const struct duet_buffer *a = &call->buffers[0], *b = &call->buffers[1], *c = &call->buffers[2];
    const double *left = a->data, *right = b->data;
    double *result = c->data;
    for (size_t j = 0; j < c->cols; j++)
        for (size_t k = 0; k < a->cols; k++)
            for (size_t i = 0; i < c->rows; i++)
                result[i + j * c->ld] -= left[i + k * a->ld] * right[k + j * b->ld];
    return 0;
}

static const struct {
    const char *name;
    duet_kernel_fn run;
    double cubes; /* flops, in cubes of a block's edge */
} kernels[KERNELS] = {[FILL] = {"fill", run_fill, 0},
                      [LU0] = {"lu0", run_lu0, 2. / 3},
                      [FWD] = {"fwd", run_fwd, 1},
                      [BDIV] = {"bdiv", run_bdiv, 1},
                      [BMOD] = {"bmod", run_bmod, 2}};

/* ------------------------------------------------------------------------------------------- */
/* Tasks                                                                                        */

/* Value of every task but those that fill; these count as many bytes. */
static double flops(const void *args)
{
    const double *work = duet_value(args, 0, sizeof *work);
    return work ? *work : 0;
}

/* For simulated machines, which know nothing of these kernels: 2 GFlop/s on any. */
static double cost(const void *args, const char *arch)
{
    (void)arch;
    return 1e-6 + flops(args) / 2e9;
}

static int register_kernels(struct program *p)
{
    int error = 0;
    for (int k = 0; k < KERNELS && !error; k++) {
        const struct duet_implementation where[] = {{"cpu", kernels[k].run}, {"cuda", NULL}};
        const struct duet_codelet_desc desc = {.name = kernels[k].name,
                                               .implementations = where,
                                               .implementation_count = 2,
                                               .flops = k == FILL ? NULL : flops,
                                               .cost = cost};
        error = duet_register_codelet(p->duet, &desc, &p->kernels[k]);
    }
    return error;
}

static struct duet_handle **block(const struct program *p, size_t i, size_t j)
{
    return &p->a[i + j * p->blocks];
}

/* Makes a block. */
static int make_block(const struct program *p, size_t i, size_t j, bool zero)
{
    const struct place place = {i, j, p->blocks, zero};
    int error = duet_register_temporary(p->duet, p->edge, p->edge, sizeof(double), block(p, i, j));
    return error ? error
                 : duet_insert(p->duet, p->kernels[FILL], DUET_W, *block(p, i, j), DUET_VALUE,
                               &place, sizeof place, 0);
}

/* Submits a task that changes the last one of up to three blocks. */
static int submit(const struct program *p, int kernel, struct duet_handle *first,
                  struct duet_handle *second, struct duet_handle *changed)
{
    double work = kernels[kernel].cubes * pow((double)p->edge, 3);
    const struct duet_codelet *codelet = p->kernels[kernel];
    if (second)
        return duet_insert(p->duet, codelet, DUET_R, first, DUET_R, second, DUET_RW, changed,
                           DUET_VALUE, &work, sizeof work, 0);
    if (first)
        return duet_insert(p->duet, codelet, DUET_R, first, DUET_RW, changed, DUET_VALUE, &work,
                           sizeof work, 0);
    return duet_insert(p->duet, codelet, DUET_RW, changed, DUET_VALUE, &work, sizeof work, 0);
}

/* Updates the blocks right of and below (k, k), if both its row and its column have blocks. */
static int update(const struct program *p, size_t k)
{
    int error = 0;
    for (size_t i = k + 1; i < p->blocks; i++) {
        for (size_t j = k + 1; j < p->blocks && *block(p, i, k) && !error; j++) {
            if (!*block(p, k, j))
                continue;
            if (!*block(p, i, j))
                error = make_block(p, i, j, true);
            if (!error)
                error = submit(p, BMOD, *block(p, i, k), *block(p, k, j), *block(p, i, j));
        }
    }
    return error;
}

static int factorise(const struct program *p)
{
    int error = 0;
    for (size_t k = 0; k < p->blocks && !error; k++) {
        struct duet_handle *diagonal = *block(p, k, k);
        error = submit(p, LU0, NULL, NULL, diagonal);
        for (size_t i = k + 1; i < p->blocks && !error; i++) {
            if (*block(p, k, i))
                error = submit(p, FWD, diagonal, NULL, *block(p, k, i));
            if (!error && *block(p, i, k))
                error = submit(p, BDIV, diagonal, NULL, *block(p, i, k));
        }
        if (!error)
            error = update(p, k);
    }
    return error;
}

/* ------------------------------------------------------------------------------------------- */
/* Verification                                                                                 */

/* y := y + B x, of a block's part above the diagonal or below it (with ones on it), or all of it.
 */
static void apply(const double *b, size_t n, int part, const double *x, double *y)
{
    for (size_t j = 0; j < n; j++) {
        for (size_t i = 0; i < n; i++)
            if (part == 0 || (part > 0 ? i <= j : i > j))
                y[i] += b[i + j * n] * x[j];
        if (part < 0)
            y[j] += x[j];
    }
}

/* y := L x (below) or U x, of the existing blocks. */
static int apply_factor(const struct program *p, bool below, const double *x, double *y)
{
    int error = 0;
    for (size_t k = 0; k < p->blocks * p->blocks && !error; k++) {
        size_t i = k % p->blocks, j = k / p->blocks;
        if (!p->a[k] || (below ? i < j : i > j))
            continue;
        error = duet_acquire(p->duet, p->a[k], DUET_R);
        if (error)
            break;
        apply(duet_address(p->a[k]), p->edge, i == j ? (below ? -1 : 1) : 0, &x[j * p->edge],
              &y[i * p->edge]);
        error = duet_release(p->duet, p->a[k]);
    }
    return error;
}

/* Relative distance of L U x from A x. */
static int residual(const struct program *p, double *out)
{
    size_t n = p->blocks * p->edge;
    double *vectors = n ? calloc(3 * n, sizeof *vectors) : NULL, difference = 0, norm = 0;
    if (!vectors)
        return DUET_ENOMEM;
    double *x = vectors, *y = x + n, *z = y + n;
    for (size_t i = 0; i < n; i++)
        x[i] = cos((double)i);
    int error = apply_factor(p, false, x, y);
    if (!error)
        error = apply_factor(p, true, y, z);
    for (size_t i = 0; i < n && !error; i++) {
        double wanted = 0;
        for (size_t j = 0; j < n; j++)
            wanted += original(p->edge, p->blocks, i, j) * x[j];
        difference += (wanted - z[i]) * (wanted - z[i]);
        norm += wanted * wanted;
    }
    *out = sqrt(difference / norm);
    free(vectors);
    return error;
}

/* ------------------------------------------------------------------------------------------- */
/* The program                                                                                  */

static int run(struct program *p, bool verify)
{
    double error_of_result = 0;
    int error = register_kernels(p);
    for (size_t j = 0; j < p->blocks; j++)
        for (size_t i = 0; i < p->blocks && !error; i++)
            if (present(i, j))
                error = make_block(p, i, j, false);
    if (!error)
        error = factorise(p);
    if (!error)
        error = duet_wait(p->duet);
    if (error)
        return error;
    size_t there = 0;
    for (size_t k = 0; k < p->blocks * p->blocks; k++)
        there += p->a[k] != NULL;
    printf("factorised %zu of %zu blocks in %.6f s\n", there, p->blocks * p->blocks,
           duet_now(p->duet));
    if (verify) {
        error = residual(p, &error_of_result);
        printf("|A x - L U x| / |A x| = %.2g\n", error_of_result);
    }
    return error || !(error_of_result < 1e-12) ? DUET_ETASK : 0;
}

static int say(const char *program, const char *what)
{
    fprintf(stderr, "%s: %s\n", program, what);
    return 1;
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
    p.blocks = argc > 1 ? strtoul(argv[1], NULL, 10) : 16;
    p.edge = argc > 2 ? strtoul(argv[2], NULL, 10) : 64;
    if (!error && (p.blocks < 1 || p.blocks > 4096 || p.edge < 1 || p.edge > 4096))
        error = duet_fail(&message, DUET_EINVAL, "blocks and their edge are 1 to 4096");
    if (!error)
        error = duet_open(&p.duet, &config, &message);
    if (error) {
        (void)say(argv[0], *message.text ? message.text : duet_strerror(error));
        return 2;
    }
    p.a = calloc(p.blocks * p.blocks, sizeof(struct duet_handle *));
    int status = p.a ? 0 : say(argv[0], "no memory left");
    if (!status && run(&p, duet_computes(p.duet))) {
        const char *text = duet_last_message(p.duet);
        status = say(argv[0], *text ? text : "the result is wrong");
    }
    int closed = duet_close(p.duet);
    free(p.a);
    return status || closed;
}
