/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Measures one operation of a library with which duet is compared: --help lists those of this
 * program. Prints a JSON object a line, with the value of every repeat after one that warms up: for
 * a GPU one line for the computation alone, and one with the copies from the host's memory and
 * back. The result is checked; a wrong one is status 1. Without a GPU, or with too small a one: one
 * line and status 77.
 */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cblas.h>
#include <glib.h>

#include "bench/peers/peers.h"
#include "bench/timing.h"

enum { ORDERS_MAX = 16 };

/* The command line's request beside the problem. */
struct request {
    size_t orders[ORDERS_MAX], order_count;
    unsigned repeats;
    double limit_s; /* no further repeat begins after this long; one is always made */
};

void peer_end(int status, const char *format, ...)
{
    va_list arguments;
    fflush(stdout);
    fprintf(stderr, "%s: %s", g_get_prgname(), status == PEER_SKIPPED ? "skipped: " : "");
    va_start(arguments, format);
    /* NOLINTNEXTLINE(clang-analyzer-valist.Uninitialized): it was started a line above */
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
    exit(status);
}

/* ------------------------------------------------------------------------------------------- */

/* Kinds of operations; flops are the leading terms, as LAPACK's working note 41 counts them. */
static const struct {
    unsigned arrays;
    bool vectors;
    double amount; /* flops / n^3, or elements read and written / n */
} kinds[] = {[PRODUCT] = {3, false, 2},
             [CHOLESKY] = {1, false, 1.0 / 3},
             [LU] = {1, false, 2.0 / 3},
             [AXPY] = {2, true, 3}};

/* Fills the arrays, and returns the expected result: the vector itself, or the matrix's product
 * with x. */
static void *prepare_arrays(struct problem *p, const void *x)
{
    size_t n = p->n;
    bool vectors = kinds[p->operation->kind].vectors;
    void *right = zeroed(n * element_bytes(p->precision));
    for (unsigned i = 0; i < p->arrays; i++)
        fill_values(p->given[i], p->precision, vectors ? n : n * n, i);
    if (p->operation->kind == CHOLESKY)
        fill_positive(p->last, p->precision, n, 0);
    if (vectors) {
        memcpy(right, p->last, p->array_bytes);
        add(p->precision, n, ALPHA, p->given[0], right);
    } else {
        multiply(p->last, p->precision, n, x, 0, right);
    }
    if (p->operation->kind == PRODUCT) {
        void *between = zeroed(n * element_bytes(p->precision));
        multiply(p->given[1], p->precision, n, x, 0, between);
        multiply(p->given[0], p->precision, n, between, 1, right);
        free(between);
    }
    return right;
}

static bool is_right(const struct problem *p, const void *x, const void *right)
{
    size_t n = p->n;
    enum kind kind = p->operation->kind;
    if (kinds[kind].vectors)
        return almost_equal(p->precision, n, 1, p->result, right);
    void *found = zeroed(n * element_bytes(p->precision));
    if (kind == PRODUCT) {
        multiply(p->result, p->precision, n, x, 0, found);
    } else {
        memcpy(found, x, n * element_bytes(p->precision));
        multiply_factors(p->result, p->precision, n, kind == LU ? p->pivots : NULL, found);
    }
    bool same = almost_equal(p->precision, n, n, found, right);
    free(found);
    return same;
}

/* Appends ", X" for a repeat of so many seconds, where X is 10^9 units a second. */
static void append_rate(GString *values, const struct problem *p, double elapsed_s)
{
    double n = (double)p->n, amount = kinds[p->operation->kind].amount;
    amount *= kinds[p->operation->kind].vectors ? (double)p->array_bytes : n * n * n;
    g_string_append_printf(values, ", %.9g", 1e-9 * amount / elapsed_s);
}

static void print(const struct problem *p, bool copies, bool right, const GString *values)
{
    printf("{\"peer\": \"%s\", \"workload\": \"%s\", \"precision\": \"%c\", \"n\": %zu, "
           "\"copies\": %s, \"verified\": %s, \"unit\": \"%s\", \"values\": [%s]}\n",
           p->operation->peer, p->operation->name, p->precision, p->n, copies ? "true" : "false",
           right ? "true" : "false", kinds[p->operation->kind].vectors ? "GB/s" : "Gflop/s",
           values->str + strlen(", "));
}

static void measure(struct problem *p, const struct request *request)
{
    const struct operation *operation = p->operation;
    void *x = zeroed(p->n * element_bytes(p->precision));
    fill_values(x, p->precision, p->n, ARRAYS_MAX);
    void *right = prepare_arrays(p, x);
    g_autoptr(GString) alone = g_string_new(NULL), with_copies = g_string_new(NULL);
    double begin = seconds();
    for (unsigned made = 0;
         made < 2 || (made <= request->repeats && seconds() - begin < request->limit_s); made++) {
        if (!operation->in)
            memcpy(p->result, p->last, p->array_bytes);
        double start = seconds();
        if (operation->in)
            operation->in(p);
        double there = seconds();
        operation->compute(p);
        double computed = seconds();
        if (operation->out)
            operation->out(p);
        if (made > 0) {
            append_rate(alone, p, computed - there);
            append_rate(with_copies, p, seconds() - start);
        }
    }
    bool same = is_right(p, x, right);
    if (operation->in)
        print(p, false, same, alone);
    print(p, true, same, with_copies);
    free(x);
    free(right);
    fflush(stdout); /* keeps these figures if the program is killed later */
    if (!same)
        peer_end(1, "a wrong result");
}

/* ------------------------------------------------------------------------------------------- */

/* Reads "N,N,...", none larger than the one before. false: the text is invalid. */
static bool read_orders(struct request *request, const char *text)
{
    g_auto(GStrv) words = g_strsplit(text ? text : "", ",", -1);
    guint64 n, most = G_MAXINT;
    for (size_t i = 0; words[i]; i++, most = n) {
        if (i == ORDERS_MAX || !g_ascii_string_to_unsigned(words[i], 10, 1, most, &n, NULL))
            return false;
        request->orders[request->order_count++] = n;
    }
    return request->order_count > 0;
}

/* Sets the order, and the sizes that depend on it. */
static void set_order(struct problem *p, size_t n)
{
    size_t count = kinds[p->operation->kind].vectors ? n : n * n;
    p->n = n;
    p->array_bytes = count * element_bytes(p->precision);
}

/* Ends the program with status 2 if something is wrong. */
static void parse(struct problem *p, struct request *request, int argc, char **argv)
{
    int repeats = 3, threads = 1, block = 0;
    g_autofree char *precision = NULL, *orders = NULL;
    request->limit_s = G_MAXDOUBLE;
    const GOptionEntry entries[] =
        {{"n", 'n', 0, G_OPTION_ARG_STRING, &orders,
          "Order of the matrices, elements of vectors; or several, the largest first", "N,..."},
         {"precision", 0, 0, G_OPTION_ARG_STRING, &precision, "s or d (default)", "P"},
         {"repeats", 0, 0, G_OPTION_ARG_INT, &repeats, "After one that warms up; default: 3", "R"},
         {"limit", 0, 0, G_OPTION_ARG_DOUBLE, &request->limit_s, "No further repeat then",
          "SECONDS"},
         {"threads", 0, 0, G_OPTION_ARG_INT, &threads, "Of the CPUs' library; default: 1", "T"},
         {"block", 0, 0, G_OPTION_ARG_INT, &block, "Of cuBLASXt; default: its own", "B"},
         {0}};
    g_autoptr(GOptionContext) context = g_option_context_new("OPERATION");
    g_autoptr(GString) names = g_string_new("Operations:");
    for (const struct operation *each = peer_operations; each->name; each++) {
        g_string_append_printf(names, " %s (%s)", each->name, each->peer);
        if (argc > 1 && !strcmp(each->name, argv[1]))
            p->operation = each;
    }
    g_option_context_set_summary(context, names->str);
    g_option_context_add_main_entries(context, entries, NULL);
    g_autoptr(GError) error = NULL;
    bool parsed = g_option_context_parse(context, &argc, &argv, &error);
    p->precision = precision ? *precision : 'd';
    if (!parsed || argc != 2 || !p->operation || !read_orders(request, orders) || repeats < 1 ||
        threads < 1 || block < 0 ||
        (precision && strcmp(precision, "s") != 0 && strcmp(precision, "d") != 0)) {
        g_autofree char *help = g_option_context_get_help(context, true, NULL);
        fprintf(stderr, "%s%s%s", error ? error->message : "", error ? "\n" : "", help);
        exit(2);
    }
    p->threads = (unsigned)threads;
    p->block = (unsigned)block;
    request->repeats = (unsigned)repeats;
}

int main(int argc, char **argv)
{
    struct problem problem = {0};
    struct request request = {.order_count = 0};
    parse(&problem, &request, argc, argv);
    set_order(&problem, request.orders[0]);
    problem.arrays = kinds[problem.operation->kind].arrays;
    for (unsigned i = 0; i < problem.arrays; i++)
        problem.last = problem.given[i] = peer_allocate(problem.array_bytes);
    g_assert(problem.last); /* every kind has an array */
    problem.result = peer_allocate(problem.array_bytes);
    problem.pivots = zeroed(problem.n * sizeof *problem.pivots);
    for (size_t i = 0; i < request.order_count; i++) {
        set_order(&problem, request.orders[i]);
        peer_open(&problem);
        measure(&problem, &request);
    }
    return 0; /* the process's memory goes with it */
}

/* ------------------------------------------------------------------------------------------- */
/* Random matrices, filled by a function of the place, and their products with vectors. */

static double element(const void *values, char precision, size_t i)
{
    return precision == 's' ? (double)((const float *)values)[i] : ((const double *)values)[i];
}

static void set_element(void *values, char precision, size_t i, double value)
{
    if (precision == 's')
        ((float *)values)[i] = (float)value;
    else
        ((double *)values)[i] = value;
}

/* Returns the index-th number of a sequence, by Steele, Lea, Flood, "Fast splittable pseudorandom
 * number generators", OOPSLA 2014. */
static double draw(uint64_t seed, uint64_t index)
{
    uint64_t z = (seed << 32) + (index + 1) * UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return (double)((z ^ (z >> 31)) >> 11) * 0x1p-53 - 0.5;
}

void fill_values(void *values, char precision, size_t count, uint64_t seed)
{
#ifdef _OPENMP
#pragma omp parallel for
#endif
    for (size_t i = 0; i < count; i++)
        set_element(values, precision, i, draw(seed, i));
}

void fill_positive(void *matrix, char precision, size_t n, uint64_t seed)
{
#ifdef _OPENMP
#pragma omp parallel for
#endif
    for (size_t j = 0; j < n; j++)
        for (size_t i = 0; i < n; i++) {
            double value = draw(seed, i > j ? j * n + i : i * n + j);
            set_element(matrix, precision, j * n + i, value + (i == j ? (double)n : 0));
        }
}

void multiply(const void *matrix, char precision, size_t n, const void *x, double beta, void *y)
{
    int size = (int)n;
    if (precision == 's')
        cblas_sgemv(CblasColMajor, CblasNoTrans, size, size, 1, matrix, size, x, 1, (float)beta, y,
                    1);
    else
        cblas_dgemv(CblasColMajor, CblasNoTrans, size, size, 1, matrix, size, x, 1, beta, y, 1);
}

void add(char precision, size_t n, double alpha, const void *x, void *y)
{
    if (precision == 's')
        cblas_saxpy((int)n, (float)alpha, x, 1, y, 1);
    else
        cblas_daxpy((int)n, alpha, x, 1, y, 1);
}

/* x := T x for a triangle T of the matrix, or T' x */
static void multiply_triangle(const void *matrix, char precision, size_t n, CBLAS_UPLO triangle,
                              CBLAS_TRANSPOSE transposed, CBLAS_DIAG diagonal, void *x)
{
    int size = (int)n;
    if (precision == 's')
        cblas_strmv(CblasColMajor, triangle, transposed, diagonal, size, matrix, size, x, 1);
    else
        cblas_dtrmv(CblasColMajor, triangle, transposed, diagonal, size, matrix, size, x, 1);
}

void multiply_factors(const void *factors, char precision, size_t n, const int64_t *pivots, void *x)
{
    if (!pivots) {
        multiply_triangle(factors, precision, n, CblasLower, CblasTrans, CblasNonUnit, x);
        multiply_triangle(factors, precision, n, CblasLower, CblasNoTrans, CblasNonUnit, x);
        return;
    }
    multiply_triangle(factors, precision, n, CblasUpper, CblasNoTrans, CblasNonUnit, x);
    multiply_triangle(factors, precision, n, CblasLower, CblasNoTrans, CblasUnit, x);
    for (size_t i = n; i-- > 0;) {
        double value = element(x, precision, i);
        size_t other = (size_t)pivots[i] - 1;
        if (other >= n) { /* an invalid pivot: no result is right */
            set_element(x, precision, i, NAN);
            return;
        }
        set_element(x, precision, i, element(x, precision, other));
        set_element(x, precision, other, value);
    }
}

bool almost_equal(char precision, size_t n, size_t terms, const void *found, const void *right)
{
    const double roundoffs_most = 30;
    /* half of the distance from 1 to the next number: the largest relative error of rounding */
    const double roundoff = precision == 's' ? 0x1p-24 : 0x1p-53;
    double difference = 0, scale = 0;
    for (size_t i = 0; i < n; i++) {
        double error = fabs(element(found, precision, i) - element(right, precision, i));
        if (isnan(error))
            return false;
        difference = fmax(difference, error);
        scale = fmax(scale, fabs(element(right, precision, i)));
    }
    return difference < roundoffs_most * roundoff * (double)terms * scale;
}
