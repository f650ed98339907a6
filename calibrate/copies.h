/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies between memories: latency and bandwidth of each pair and direction, alone and at the same
 * time, and which devices share a link, as these figures tell.
 */
#ifndef DUET_CALIBRATE_COPIES_H
#define DUET_CALIBRATE_COPIES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "calibrate/costs.h"

/* Copies of one pair of memory nodes, alone. */
struct duet__copy_pair {
    unsigned source, destination; /* memory nodes */
    uint64_t samples;
    double latency_s, bandwidth_Bps; /* t = latency + bytes / bandwidth, robust fit */
    double error;                    /* median relative error of that fit */
    bool direct;                     /* false: copies went through the host */
};

/* Copies of two directed pairs at the same time. */
struct duet__together {
    size_t first, second;         /* indices into pairs */
    double first_Bps, second_Bps; /* bandwidth of each at the same time */
};

struct duet__copies {
    unsigned node_count;
    struct duet__copy_pair *pairs;
    size_t pair_count;
    struct duet__together *together;
    size_t together_count;
    /* inferred: by device (memory node - 1), the number of its switch; devices of one switch share
     * its link to the host */
    unsigned *switches;
    unsigned switch_count;
    double *to_device_Bps, *to_host_Bps; /* link of each switch, shared by its devices */
};

/*
 * Measures copies by tasks that need data elsewhere. Sizes go from 4 KiB to copies of some
 * milliseconds. In the host's memory copies move on from place to place, and begin again once all
 * of it was used, so that no cache has their data. Without devices, and after an error, *out is
 * empty. The caller owns *out (duet__copies_fini).
 */
DUET_MUST_CHECK int duet__copies_measure(const struct duet__measurement *given,
                                         struct duet__copies *out);

/*
 * Infers switches and the links' bandwidths from pairs and together: devices whose copies from the
 * host slow each other down by more than a tenth share a link (transitively), unless all devices
 * share the host's memory.
 */
void duet__copies_infer(struct duet__copies *copies);

/* One copy without others beside it. */
struct duet__copy_sample {
    double bytes, seconds;
};

/*
 * Fits latency_s >= 0 and bandwidth_Bps > 0 of t = latency + bytes / bandwidth so that the sum of
 * absolute relative errors is smallest: iteratively reweighted least squares (Holland, Welsch,
 * Communications in Statistics A6, 1977). `error` becomes the median relative error. Without
 * samples, or only such that take no time, all is 0.
 */
void duet__copies_fit(const struct duet__copy_sample *samples, size_t count,
                      struct duet__copy_pair *out);

void duet__copies_fini(struct duet__copies *copies); /* safe on a zeroed one, and twice */

#endif
