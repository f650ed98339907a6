/* SPDX-License-Identifier: Apache-2.0 */
/* How long messages between processes take, over MPI as the transport uses it. */
#ifndef DUET_NODES_MPI_MEASURE_H
#define DUET_NODES_MPI_MEASURE_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <duet/error.h>

/* A message of node 0's to another one. */
struct duet__mpi_sample {
    unsigned node;  /* the other one */
    uint64_t bytes; /* at least 1 */
    /* How long after its sender gave it to MPI its receiver had it: half of what it took there and
       back. Or, of a stream, what each took of many that were given to MPI at once. */
    double seconds;
};

/* What was measured; lists are of node 0, elsewhere empty. duet__mpi_measured_free frees them. */
struct duet__mpi_measured {
    unsigned nodes, node;           /* how many there are; this process's number */
    struct duet__mpi_sample *pings; /* by node, then size */
    struct duet__mpi_sample *streams;
    size_t ping_count, stream_count;
    /* The largest message, of those tried, that MPI takes over before its receiver expects it: the
       least of all nodes; 0: none. By the byte. */
    uint64_t eager_bytes;
};

/*
 * Opens MPI and meets the other processes, with each of which node 0 exchanges messages in turn, of
 * sizes up to 8 MiB by powers of two, all in about so many seconds. Collective. DUET_EINVAL (there
 * is one process), DUET_EABSENT (a build without MPI), DUET_EIO, DUET_ENOMEM, with a message.
 */
DUET_MUST_CHECK int duet__mpi_measure(double seconds, struct duet__mpi_measured *out,
                                      struct duet_message *message);

static inline void duet__mpi_measured_free(struct duet__mpi_measured *measured)
{
    free(measured->pings);
    free(measured->streams);
    *measured = (struct duet__mpi_measured){0};
}

#endif
