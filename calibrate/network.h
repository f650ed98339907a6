/* SPDX-License-Identifier: Apache-2.0 */
/* The network between processes of MPI: from measured messages to figures. */
#ifndef DUET_CALIBRATE_NETWORK_H
#define DUET_CALIBRATE_NETWORK_H

#include "calibrate/costs.h"
#include "nodes/mpi_measure.h"
#include "platforms/model/network.h"
#include "base/stats.h"

/* Messages of one size. */
struct duet__network_size {
    uint64_t bytes;
    struct duet__summary ping; /* seconds of one, of which outliers are no part */
    size_t rejected;           /* these */
    double stream_s;           /* of each of many at once, the median; 0: not measured */
    double predicted_s;        /* duet__network_message_s */
};

struct duet__network_fit {
    struct duet__network network; /* a switch */
    struct duet__network_size sizes[DUET__MPI_SIZES];
    size_t count;
};

/*
 * Overhead: what each of many small messages takes, given to MPI at once, in the median, since all
 * that they share is processors (the gap of LogP, Culler et al., PPoPP 1993); but no more than half
 * of a small message's time, as both ends have one. Latency, bandwidth and rendezvous by least
 * absolute relative errors of the medians of all sizes, none of them negative: so that each size is
 * predicted, not only the largest. DUET_EINVAL with a message where nothing was measured.
 */
DUET_MUST_CHECK int duet__network_fit(const struct duet__mpi_measured *measured,
                                      struct duet__network_fit *out, struct duet_message *message);

/*
 * What the submission of a task that runs on node 1 alone takes on another one, with three
 * accesses. In every process, of which config->nodes says how many there are. Errors as
 * duet__costs_measure.
 */
DUET_MUST_CHECK int duet__foreign_measure(const struct duet__measurement *given,
                                          struct duet__measured *out);

#endif
