/* SPDX-License-Identifier: Apache-2.0 */
/* Times of messages between processes, over MPI as the transport uses it. */
#ifndef DUET_NODES_MPI_MEASURE_H
#define DUET_NODES_MPI_MEASURE_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <duet/error.h>

enum { DUET__MPI_SIZES = 24 }; /* sizes of 1 byte, 2, 4 and so on, to 8 MiB */

/* Times of messages of one size between node 0 and each other one, in seconds. */
struct duet__mpi_times {
    /* From the call of MPI by the sender until the receiver has it: half of the round trip or, for
       more than 64 KiB, while another one goes the other way. */
    double *pings;
    double *streams; /* time of each of many that were given to MPI at once */
    size_t ping_count, stream_count;
};

/* Measured times, at node 0: elsewhere there are none. duet__mpi_measured_free frees it. */
struct duet__mpi_measured {
    unsigned nodes, node; /* number of nodes; this process's number */
    struct duet__mpi_times sizes[DUET__MPI_SIZES];
    /* Size of the largest message, of those tried, that MPI accepts before its receiver expects it,
       exact to the byte: the least of all nodes; 0: none. */
    uint64_t eager_bytes;
};

/*
 * Opens MPI and meets the other processes. Node 0 exchanges messages with each of them in turn, of
 * sizes up to 8 MiB by powers of two, all in about `seconds`. Collective. DUET_EINVAL (there is one
 * process), DUET_EABSENT (a build without MPI), DUET_EIO, DUET_ENOMEM, with a message.
 */
DUET_MUST_CHECK int duet__mpi_measure(double seconds, struct duet__mpi_measured *out,
                                      struct duet_message *message);

static inline void duet__mpi_measured_free(struct duet__mpi_measured *measured)
{
    for (unsigned i = 0; i < DUET__MPI_SIZES; i++) {
        free(measured->sizes[i].pings);
        free(measured->sizes[i].streams);
    }
    *measured = (struct duet__mpi_measured){0};
}

#endif
