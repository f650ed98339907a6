/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A dot product as a reduction: a task for each piece of two vectors adds to the same sum. They run
 * at once, as each worker has a contribution of its own, and the first access of another kind finds
 * the contributions added up.
 *
 *     dot_product [n [pieces]]        1000000 numbers in 16 pieces
 *
 * Link with -lduet -lm.
 */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <duet/duet.h>

enum { PIECES_MAX = 1024 };

/* Sets a contribution to 0. */
static int run_clear(const struct duet_call *call)
{
    *(double *)call->buffers[0].data = 0;
    return DUET_OK;
}

/* Adds one contribution to another. */
static int run_add(const struct duet_call *call)
{
    *(double *)call->buffers[0].data += *(const double *)call->buffers[1].data;
    return DUET_OK;
}

/* Adds a piece of x'y to the sum: x R, y R, sum REDUCE. */
static int run_dot(const struct duet_call *call)
{
    const double *x = call->buffers[0].data, *y = call->buffers[1].data;
    double sum = 0;
    for (size_t i = 0; i < call->buffers[0].rows; i++)
        sum += x[i] * y[i];
    *(double *)call->buffers[2].data += sum;
    return DUET_OK;
}

/* For simulated machines: a microsecond, and one for each 1,000 numbers of a piece. */
static double seconds(const void *args, const char *arch)
{
    (void)arch;
    const size_t *numbers = duet_value(args, 0, sizeof *numbers); /* NULL in clear and add */
    return 1e-6 + (numbers ? 1e-9 * (double)*numbers : 0);
}

static int codelet(struct duet_runtime *duet, const char *name, duet_kernel_fn run,
                   struct duet_codelet **out)
{
    /* emulated GPUs run the CPUs' code, and simulated ones need none */
    const struct duet_implementation where[] = {{"cpu", run}, {"cuda", NULL}};
    const struct duet_codelet_desc desc = {.name = name,
                                           .implementations = where,
                                           .implementation_count = 2,
                                           .cost = seconds};
    return duet_register_codelet(duet, &desc, out);
}

/* Registers a vector, and cuts it into pieces. */
static int vector(struct duet_runtime *duet, double *data, size_t n, size_t pieces,
                  struct duet_handle **out)
{
    struct duet_handle *whole;
    int error = duet_register_vector(duet, data, n, sizeof *data, &whole);
    return error ? error : duet_cut_blocks(duet, whole, pieces, 1, out);
}

/* sum += x'y. Data that this registers is freed by duet_close. */
static int dot(struct duet_runtime *duet, double *x, double *y, size_t n, size_t pieces,
               double *sum)
{
    struct duet_codelet *clear, *add, *multiply;
    struct duet_handle *x_pieces[PIECES_MAX], *y_pieces[PIECES_MAX], *total;
    const size_t each = n / pieces;
    int error = codelet(duet, "clear", run_clear, &clear);
    if (!error)
        error = codelet(duet, "add", run_add, &add);
    if (!error)
        error = codelet(duet, "dot", run_dot, &multiply);
    if (!error)
        error = vector(duet, x, n, pieces, x_pieces);
    if (!error)
        error = vector(duet, y, n, pieces, y_pieces);
    if (!error)
        error = duet_register_vector(duet, sum, 1, sizeof *sum, &total);
    if (!error)
        error = duet_set_reduction(duet, total, clear, add);
    for (size_t i = 0; i < pieces && !error; i++)
        error = duet_insert(duet, multiply, DUET_R, x_pieces[i], DUET_R, y_pieces[i], DUET_REDUCE,
                            total, DUET_VALUE, &each, sizeof each, 0);
    return error ? error : duet_unregister(duet, total); /* waits; the result is then in *sum */
}

/* Fills both vectors, and returns their product, computed without tasks. */
static double fill(double *x, double *y, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++) {
        x[i] = 1 + cos((double)i);
        y[i] = 1 + sin((double)i);
        sum += x[i] * y[i];
    }
    return sum;
}

static int run(struct duet_runtime *duet, double *x, double *y, size_t n, size_t pieces)
{
    double sum = 0, expected = fill(x, y, n), start_s = duet_now(duet);
    int error = dot(duet, x, y, n, pieces, &sum);
    if (error)
        return error;
    printf("%zu numbers in %.6f s\n", n, duet_now(duet) - start_s);
    if (!duet_computes(duet)) /* for example in a simulation */
        return DUET_OK;
    double off = fabs(sum - expected) / expected;
    printf("|sum - x'y| / x'y = %.2g\n", off);
    return off < 1e-12 ? DUET_OK : DUET_ETASK;
}

int main(int argc, char **argv)
{
    struct duet_message message = {""};
    struct duet_config config;
    struct duet_runtime *duet = NULL;
    duet_config_init(&config);
    int error = duet_config_environment(&config, &message);
    if (!error)
        error = duet_config_arguments(&config, &argc, argv, &message);
    size_t n = argc > 1 ? strtoul(argv[1], NULL, 10) : 1000000;
    size_t pieces = argc > 2 ? strtoul(argv[2], NULL, 10) : 16;
    double *x = n && n <= SIZE_MAX / sizeof *x / 2 ? malloc(2 * n * sizeof *x) : NULL;
    if (!error && (!x || !pieces || pieces > PIECES_MAX || pieces > n)) {
        error = DUET_EINVAL;
        (void)duet_fail(&message, error,
                        "%zu numbers in %zu pieces: 1 to %d pieces, and numbers that fit into "
                        "memory",
                        n, pieces, PIECES_MAX);
    }
    if (!error)
        error = duet_open(&duet, &config, &message);
    if (error) {
        fprintf(stderr, "dot_product: %s\n", message.text);
        free(x);
        return 2;
    }
    error = run(duet, x, x + n, n, pieces);
    if (error)
        fprintf(stderr, "dot_product: %s: %s\n", duet_strerror(error), duet_last_message(duet));
    int closed = duet_close(duet); /* before the vectors are freed */
    free(x);
    return error || closed;
}
