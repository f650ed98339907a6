/* SPDX-License-Identifier: Apache-2.0 */
/* The reference kernel: products of matrices that stay in a core's caches, in plain C. */
#include "runs/rounds.h"

#include <stdlib.h>

#include <glib.h>

#include "base/stats.h"
#include "base/clock.h"

enum {
    EDGE = 96,
    CACHE_LINE = 64,
    ROW = 104,     /* elements of a row: 13 cache lines, so that a column spreads over all sets */
    PANEL = 8,     /* columns computed together: a cache line of each row */
    PRODUCTS = 30, /* of one repetition, which takes some milliseconds */
    REPETITIONS = 15,
};

struct prober {
    _Alignas(CACHE_LINE) double a[EDGE][ROW];
    double b[EDGE][ROW], c[EDGE][ROW];
    GThread *thread;
    double *seconds; /* REPETITIONS of them */
};

/*
 * C := C / 2 + A B, which stays finite. The sums are variables, one for each column of a panel, so
 * that nothing is stored while B is loaded: a load after a store at the same offset of another page
 * may have to wait, and the addresses of pages differ from process to process.
 */
static void multiply(struct prober *self)
{
    for (int j = 0; j < EDGE; j += PANEL) {
        for (int i = 0; i < EDGE; i++) {
            double *c = &self->c[i][j];
            double s0 = c[0] / 2, s1 = c[1] / 2, s2 = c[2] / 2, s3 = c[3] / 2;
            double s4 = c[4] / 2, s5 = c[5] / 2, s6 = c[6] / 2, s7 = c[7] / 2;
            for (int k = 0; k < EDGE; k++) {
                const double *b = &self->b[k][j], a = self->a[i][k];
                s0 += a * b[0], s1 += a * b[1], s2 += a * b[2], s3 += a * b[3];
                s4 += a * b[4], s5 += a * b[5], s6 += a * b[6], s7 += a * b[7];
            }
            c[0] = s0, c[1] = s1, c[2] = s2, c[3] = s3;
            c[4] = s4, c[5] = s5, c[6] = s6, c[7] = s7;
        }
    }
}

static void *probe(void *argument)
{
    struct prober *self = argument;
    for (int i = 0; i < EDGE; i++) {
        for (int j = 0; j < EDGE; j++) {
            self->a[i][j] = 1.0 / (1 + i + j);
            self->b[i][j] = 1.0 / (1 + i + 2 * j);
            self->c[i][j] = 0;
        }
    }
    multiply(self); /* the first multiplication brings its data into the caches */
    for (int r = 0; r < REPETITIONS; r++) {
        double start = duet__clock_s();
        for (int i = 0; i < PRODUCTS; i++)
            multiply(self);
        self->seconds[r] = duet__clock_s() - start;
    }
    return NULL;
}

double duet__probe_seconds(unsigned threads)
{
    size_t count = MAX(threads, 1), values = count * REPETITIONS;
    struct prober *probers = aligned_alloc(CACHE_LINE, count * sizeof *probers);
    g_autofree double *seconds = g_new0(double, values);
    if (!probers)
        g_error("out of memory for the reference kernel on %zu threads", count);
    for (size_t i = 0; i < count; i++)
        probers[i].seconds = seconds + i * REPETITIONS;
    for (size_t i = 1; i < count; i++)
        probers[i].thread = g_thread_new("probe", probe, &probers[i]);
    probe(&probers[0]);
    for (size_t i = 1; i < count; i++)
        g_thread_join(probers[i].thread);
    free(probers);
    duet__sort(seconds, values);
    /* the lower quartile: threads that are not bound may share a core at first */
    return duet__quantile(seconds, values, 0.25);
}
