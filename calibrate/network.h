/* SPDX-License-Identifier: Apache-2.0 */
/* The network between processes of MPI: figures from measured messages. */
#ifndef DUET_CALIBRATE_NETWORK_H
#define DUET_CALIBRATE_NETWORK_H

#include "calibrate/costs.h"
#include "nodes/mpi_measure.h"
#include "platforms/model/network.h"
#include "base/stats.h"

/* Messages of one size. */
struct duet__network_size {
    uint64_t bytes;
    struct duet__summary ping; /* seconds of one, without outliers */
    size_t rejected;           /* number of outliers */
    double stream_s;           /* median seconds of each of many at once; 0: not measured */
    double predicted_s;        /* duet__network_message_s */
};

struct duet__network_fit {
    struct duet__network network; /* a switch */
    struct duet__network_size sizes[DUET__MPI_SIZES];
    size_t count;
};

/*
 * Fits figures to measured messages. Overhead: the median time of each of many small messages given
 * to MPI at once, since all that they share is processors (the gap of LogP, Culler et al., PPoPP
 * 1993); but at most half of a small message's time, as both ends have one. Latency, bandwidth and
 * rendezvous: by least absolute relative errors of the medians of all sizes, none of them negative,
 * so that each size is predicted, not only the largest. DUET_EINVAL with a message if nothing was
 * measured.
 */
DUET_MUST_CHECK int duet__network_fit(const struct duet__mpi_measured *measured,
                                      struct duet__network_fit *out, struct duet_message *message);

/*
 * Measures the submission on one node of a task, with three accesses, that runs on another node
 * alone. Called in every process, of which config->nodes is the number. Errors as
 * duet__costs_measure.
 */
DUET_MUST_CHECK int duet__foreign_measure(const struct duet__measurement *given,
                                          struct duet__measured *out);

#endif
