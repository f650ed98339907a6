/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Matrices of the peers in the host's memory: filled by a function of the place, so that all cores
 * can, and multiplied with a vector in double precision, to check what a GPU computed.
 */
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "bench/cuda/peers.h"
#include "bench/timing.h"

enum { THREADS_MAX = 64 };

/* Work on [0, count), of which a thread gets a slice. */
struct work {
    void (*run)(const struct work *work, size_t first, size_t end);
    size_t count;
    /* of the functions below */
    void *matrix;
    const double *x;
    double *y;
    size_t n, element;
    enum peers_shape shape;
    bool transposed;
    uint64_t seed;
    bool *wrong; /* set by whoever finds a difference */
};

struct slice {
    const struct work *work;
    size_t first, end;
};

static void *run_slice(void *opaque)
{
    const struct slice *slice = opaque;
    slice->work->run(slice->work, slice->first, slice->end);
    return NULL;
}

/* Runs the work on all cores and waits for it. */
static void run(const struct work *work)
{
    struct slice slices[THREADS_MAX];
    pthread_t threads[THREADS_MAX];
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    size_t count = cores < 1 ? 1 : cores > THREADS_MAX ? THREADS_MAX : (size_t)cores;
    for (size_t i = 0; i < count; i++) {
        slices[i] = (struct slice){work, work->count * i / count, work->count * (i + 1) / count};
        if (pthread_create(&threads[i], NULL, run_slice, &slices[i]) != 0)
            peers_fail("pthread_create: no thread");
    }
    for (size_t i = 0; i < count; i++)
        pthread_join(threads[i], NULL);
}

/* ------------------------------------------------------------------------------------------- */
/* Filling                                                                                      */

/* The index-th number of a sequence, by Steele, Lea, Flood, "Fast splittable pseudorandom number
 * generators", OOPSLA 2014. */
static uint64_t mix(uint64_t seed, uint64_t index)
{
    uint64_t z = seed + (index + 1) * UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

static double draw(uint64_t seed, uint64_t index)
{
    return (double)(mix(seed, index) >> 11) * 0x1p-53 - 0.5;
}

static double initial(const struct work *work, size_t i, size_t j)
{
    if (work->shape != PEERS_SYMMETRIC)
        return draw(work->seed, j * work->n + i);
    size_t row = i > j ? i : j, column = i > j ? j : i;
    return draw(work->seed, column * work->n + row) + (i == j ? (double)work->n : 0);
}

static void fill_columns(const struct work *work, size_t first, size_t end)
{
    for (size_t j = first; j < end; j++)
        for (size_t i = 0; i < work->n; i++)
            if (work->element == sizeof(float))
                ((float *)work->matrix)[j * work->n + i] = (float)initial(work, i, j);
            else
                ((double *)work->matrix)[j * work->n + i] = initial(work, i, j);
}

void peers_fill(void *matrix, size_t element, size_t n, enum peers_shape shape, uint64_t seed)
{
    run(&(struct work){.run = fill_columns,
                       .count = n,
                       .matrix = matrix,
                       .n = n,
                       .element = element,
                       .shape = shape,
                       .seed = seed});
}

double *peers_vector(size_t n, uint64_t seed)
{
    double *x = zeroed(n * sizeof *x);
    for (size_t i = 0; i < n; i++)
        x[i] = draw(seed, i) < 0 ? -1 - draw(seed, n + i) : 1 + draw(seed, n + i);
    return x;
}

/* ------------------------------------------------------------------------------------------- */
/* Multiplying                                                                                  */

/* Rows [*first, *end) of column j that belong to the shape, without a diagonal of ones. */
static void column_rows(const struct work *work, size_t j, size_t *first, size_t *end)
{
    *first = work->shape == PEERS_LOWER ? j : work->shape == PEERS_UNIT_LOWER ? j + 1 : 0;
    *end = work->shape == PEERS_UPPER ? j + 1 : work->n;
}

/* Rows [first, end) of M x, column by column. */
static void multiply_rows(const struct work *work, size_t first, size_t end)
{
    double *y = work->y;
    for (size_t i = first; i < end; i++)
        y[i] = work->shape == PEERS_UNIT_LOWER ? work->x[i] : 0;
    for (size_t j = 0; j < work->n; j++) {
        double x = work->x[j];
        size_t from, to;
        column_rows(work, j, &from, &to);
        from = from > first ? from : first;
        to = to < end ? to : end;
        if (work->element == sizeof(float)) {
            const float *column = (const float *)work->matrix + j * work->n;
            for (size_t i = from; i < to; i++)
                y[i] += (double)column[i] * x;
        } else {
            const double *column = (const double *)work->matrix + j * work->n;
            for (size_t i = from; i < to; i++)
                y[i] += column[i] * x;
        }
    }
}

/* Elements [first, end) of M' x. */
static void multiply_columns(const struct work *work, size_t first, size_t end)
{
    for (size_t j = first; j < end; j++) {
        double sum = work->shape == PEERS_UNIT_LOWER ? work->x[j] : 0;
        size_t from, to;
        column_rows(work, j, &from, &to);
        if (work->element == sizeof(float)) {
            const float *column = (const float *)work->matrix + j * work->n;
            for (size_t i = from; i < to; i++)
                sum += (double)column[i] * work->x[i];
        } else {
            const double *column = (const double *)work->matrix + j * work->n;
            for (size_t i = from; i < to; i++)
                sum += column[i] * work->x[i];
        }
        work->y[j] = sum;
    }
}

void peers_multiply(const void *matrix, size_t element, size_t n, enum peers_shape shape,
                    bool transposed, const double *x, double *y)
{
    run(&(struct work){.run = transposed ? multiply_columns : multiply_rows,
                       .count = n,
                       .matrix = (void *)(uintptr_t)matrix, /* only read */
                       .x = x,
                       .y = y,
                       .n = n,
                       .element = element,
                       .shape = shape});
}

double peers_residual(size_t element, size_t n, const double *found, const double *right)
{
    double epsilon = element == sizeof(float) ? 0x1p-24 : 0x1p-53, difference = 0, scale = 0;
    for (size_t i = 0; i < n; i++) {
        double here = fabs(found[i] - right[i]);
        if (isnan(here))
            return here;
        difference = fmax(difference, here);
        scale = fmax(scale, fabs(right[i]));
    }
    return difference / (epsilon * (double)n * scale);
}

/* ------------------------------------------------------------------------------------------- */
/* Bytes                                                                                        */

static void fill_words(const struct work *work, size_t first, size_t end)
{
    for (size_t i = first; i < end; i++)
        ((uint64_t *)work->matrix)[i] = mix(work->seed, i);
}

static void check_words(const struct work *work, size_t first, size_t end)
{
    for (size_t i = first; i < end; i++)
        if (((const uint64_t *)work->matrix)[i] != mix(work->seed, i))
            *work->wrong = true;
}

void peers_fill_bytes(void *memory, size_t bytes, uint64_t seed)
{
    run(&(struct work){.run = fill_words,
                       .count = bytes / sizeof(uint64_t),
                       .matrix = memory,
                       .seed = seed});
}

bool peers_check_bytes(const void *memory, size_t bytes, uint64_t seed)
{
    bool wrong = false;
    check_words(&(struct work){.matrix = (void *)(uintptr_t)memory, .seed = seed, .wrong = &wrong},
                0, bytes / sizeof(uint64_t));
    return !wrong;
}
