/* SPDX-License-Identifier: Apache-2.0 */
/* The reference kernel: products of matrices that stay in a core's caches, in plain C. */
#include "cli/probe.h"

#include <stdlib.h>
#include <time.h>

#include <glib.h>

#include "validate/stats.h"

enum {
    EDGE = 96,
    PRODUCTS = 20, /* of one repetition: some milliseconds */
    REPETITIONS = 15,
};

struct prober {
    GThread *thread;
    double a[EDGE][EDGE], b[EDGE][EDGE], c[EDGE][EDGE];
    double *seconds; /* REPETITIONS of them */
};

static double wall_clock(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* C := C / 2 + A B: stays finite, however often. */
static void multiply(struct prober *self)
{
    for (int i = 0; i < EDGE; i++) {
        for (int j = 0; j < EDGE; j++)
            self->c[i][j] *= 0.5;
        for (int k = 0; k < EDGE; k++)
            for (int j = 0; j < EDGE; j++)
                self->c[i][j] += self->a[i][k] * self->b[k][j];
    }
}

static void *probe(void *argument)
{
    struct prober *self = argument;

    for (int i = 0; i < EDGE; i++) {
        for (int j = 0; j < EDGE; j++) {
            self->a[i][j] = 1.0 / (1 + i + j);
            self->b[i][j] = 1.0 / (1 + i + 2 * j);
        }
    }
    multiply(self); /* its data is in the caches from here on */
    for (int r = 0; r < REPETITIONS; r++) {
        double start = wall_clock();

        for (int i = 0; i < PRODUCTS; i++)
            multiply(self);
        self->seconds[r] = wall_clock() - start;
    }
    return NULL;
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

double duet__probe_seconds(unsigned threads)
{
    unsigned count = MAX(threads, 1);
    struct prober *probers = g_new0(struct prober, count);
    double *seconds = g_new0(double, (size_t)count *REPETITIONS), quartile;

    for (unsigned i = 0; i < count; i++)
        probers[i].seconds = seconds + (size_t)i * REPETITIONS;
    for (unsigned i = 1; i < count; i++)
        probers[i].thread = g_thread_new("probe", probe, &probers[i]);
    probe(&probers[0]);
    for (unsigned i = 1; i < count; i++)
        g_thread_join(probers[i].thread);
    qsort(seconds, (size_t)count * REPETITIONS, sizeof *seconds, ascending);
    /* not the median: threads that are not bound may share a core at first */
    quartile = duet_quantile(seconds, (size_t)count * REPETITIONS, 0.25);
    g_free(seconds);
    g_free(probers);
    return quartile;
}
