/* SPDX-License-Identifier: Apache-2.0 */
/* Models of kernels that are compared: the product's, and versions without one of its parts. */
#ifndef DUET_BENCH_CANDIDATES_H
#define DUET_BENCH_CANDIDATES_H

#include "calibrate/model.h"

struct candidate {
    const char *name;                        /* bench/README.md describes them */
    duet__kernel_fit_fn *fit;                /* NULL: the product's */
    void (*adjust)(struct duet__point *out); /* removes parts; NULL: none */
    bool keep_states, keep_size, no_bandwidth;
    const char *costs;   /* the runtime's costs other than measured, as config.costs */
    const char *without; /* effects left out of simulations, as config.without */
};

extern const struct candidate candidates[]; /* ended by a NULL name; the product's is the first */

#endif
