/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The transport over MPI. Between duet__mpi_start and closing, one thread of its own makes all
 * calls of MPI, so that a library that gives MPI_THREAD_SERIALIZED is enough. MPI itself stays open
 * until the process ends: it cannot be opened twice.
 */
#ifndef DUET_NODES_MPI_H
#define DUET_NODES_MPI_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <duet/error.h>

#include "core/engine.h"
#include "nodes/transport.h"

struct duet__mpi;

/* Place of this process among the others. */
struct duet__mpi_place {
    unsigned node;             /* number of this process's node */
    unsigned beside, position; /* number of processes on this machine, and this one's position among
                                  them, from 0 */
    /* Number of those that may use the same cores as this one, and this one's position among them:
       1 and 0 if the launcher gave each its own. */
    unsigned sharers, share;
};

/* Functions of the rest of duet that the transport calls: its module has no copy of them. */
struct duet__mpi_calls {
    void (*done)(struct duet__message *message, int status);
    void (*failed)(struct duet__nodes *nodes, int error, const char *why);
    int (*pieces)(const struct duet_handle *handle, duet__piece_fn give, void *arg);
    double (*now)(const struct duet_runtime *core);
};

/*
 * Opens MPI, unless the program has, and meets the other processes, of which there have to be
 * `nodes` in all (0: any number). Collective; *out is closed by duet__mpi_transport's `close`.
 * DUET_EINVAL (another number of processes, or the program opened MPI for fewer threads than
 * needed), DUET_EABSENT (a build without MPI), DUET_EIO, DUET_ENOMEM, with a message.
 */
DUET_MUST_CHECK int duet__mpi_meet(struct duet__mpi **out, unsigned nodes,
                                   struct duet__mpi_place *place, struct duet_message *message);

/*
 * Agrees on whether all processes can go on: before they meet, between that and duet__mpi_start,
 * and after a closing. Collective; opens MPI if needed; `error` and `message` are this process's.
 * Returns in all of them the error of the first that has one, with its message, which names the
 * node; a number above 0 is that of a signal, whose message is its name. If all have errors, each
 * keeps its own. After a process has declined it is no longer collective, and returns that one's
 * error.
 */
DUET_MUST_CHECK int duet__mpi_agree(int error, struct duet_message *message);

/*
 * Announces that this process is about to end, and not by agreement: if it has not met the others
 * yet, it does now, so that they learn the reason and end, too.
 */
void duet__mpi_decline(const char *why);

/*
 * Opens MPI in a process that uses it for nothing else, copies `data` of the first process to all,
 * counts them, and those on this machine (`near`), and closes MPI. Collective. DUET_EABSENT (a
 * build without MPI), with a message.
 */
DUET_MUST_CHECK int duet__mpi_spread(void *data, size_t bytes, unsigned *count, unsigned *near,
                                     struct duet_message *message);

/* Starts the thread, for the node of this core and its model. `calls` is constant. */
void duet__mpi_start(struct duet__mpi *mpi, struct duet_runtime *core, struct duet__nodes *nodes,
                     const struct duet__mpi_calls *calls);

/* Returns the transport's functions, whose `transport` is a struct duet__mpi. */
const struct duet__transport *duet__mpi_transport(void);

/* ------------------------------------------------------------------------------------------- */
/* Times of messages between processes, over MPI as the transport uses it. */

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
