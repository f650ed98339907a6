/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of duet__copies_measure. */
#ifndef DUET_CALIBRATE_COPIES_FIT_H
#define DUET_CALIBRATE_COPIES_FIT_H

#include "calibrate/copies.h"
#include "calibrate/costs_lab.h"

/* One copy that was alone. */
struct duet__copy_sample {
    double bytes, seconds;
};

/*
 * Fits latency_s >= 0 and bandwidth_Bps > 0 of t = latency + bytes / bandwidth so that the sum of
 * absolute relative errors is smallest: iteratively reweighted least squares (Holland, Welsch,
 * Communications in Statistics A6, 1977). `error` becomes the median relative error. Without
 * samples, or only such that take no time, all is 0.
 */
DUET_MUST_CHECK int duet__copies_fit(const struct duet__copy_sample *samples, size_t count,
                                     struct duet__pair *out);

/* A measurement of copies that is under way. */
struct duet__copying {
    struct duet__lab lab;
    struct duet__budget budget;
    struct duet__copies *out;
    char *memory; /* of the host */
    size_t memory_bytes;
    size_t used_bytes; /* of it, from its beginning on, for the last copies */
};

/* The pair from node `source` to node `destination`, which must be there, as index. */
size_t duet__copies_find(const struct duet__copies *copies, unsigned source, unsigned destination);

/* The worker that works on a node. The host's: the first one. */
unsigned duet__copies_worker(const struct duet__copying *copying, unsigned node);

/* The most bytes of one handle of which `count` are on a device at once. */
size_t duet__copies_most(const struct duet__copying *copying, unsigned count);

/* Measures every pair alone, until about `end_s` for all of them. copies_alone.c */
DUET_MUST_CHECK int duet__copies_alone(struct duet__copying *copying);

/* Measures pairs at the same time. copies_together.c */
DUET_MUST_CHECK int duet__copies_beside(struct duet__copying *copying);

#endif
