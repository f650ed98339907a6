/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The transport over MPI. Between duet__mpi_start and the closing one thread of its own makes all
 * calls of MPI, so that a library that gives MPI_THREAD_SERIALIZED is enough. MPI itself stays open
 * until the process ends: it cannot be opened twice.
 */
#ifndef DUET_NODES_MPI_H
#define DUET_NODES_MPI_H

#include <stdbool.h>

#include "core/engine.h"
#include "nodes/transport.h"

struct duet__mpi;

/* Where this process is among the others. */
struct duet__mpi_place {
    unsigned node;             /* this one's number */
    unsigned beside, position; /* processes on this machine, and which of them this is, from 0 */
    /* Of those, how many may use the same cores as this one, and which of them this is: 1 and 0
       where the launcher gave each its own. */
    unsigned sharers, share;
};

/* What it calls of the rest of duet, which its module has no copy of. */
struct duet__mpi_calls {
    void (*done)(struct duet__message *message, int status);
    void (*failed)(struct duet__nodes *nodes, int error, const char *why);
    int (*pieces)(const struct duet_handle *handle, duet__piece_fn give, void *arg);
    double (*now)(const struct duet_runtime *core);
};

/*
 * Opens MPI, where the program has not, and meets the processes, of which there have to be `nodes`
 * (0: any number). Collective; *out is closed by duet__mpi_transport's `close`. DUET_EINVAL
 * (another number of processes, or the program opened MPI for fewer threads than this needs),
 * DUET_EABSENT (a build without MPI), DUET_EIO, DUET_ENOMEM, with a message.
 */
DUET_MUST_CHECK int duet__mpi_meet(struct duet__mpi **out, unsigned nodes,
                                   struct duet__mpi_place *place, struct duet_message *message);

/*
 * Whether all processes can go on: before they meet, between that and duet__mpi_start, and after a
 * closing. Collective; opens MPI, where nobody has; `error` and `message` are this one's. Returns
 * in all of them the error of the first that has one, with its message, which says which node it
 * was; a number above 0 is that of a signal, whose message is its name. Where all have errors, each
 * has its own. After one has declined it is no longer collective, and returns what that one has
 * said.
 */
DUET_MUST_CHECK int duet__mpi_agree(int error, struct duet_message *message);

/*
 * This process is about to end, and not by what all agreed on: where it has not met the others yet,
 * it does now, so that they learn why and end, too.
 */
void duet__mpi_decline(const char *why);

/*
 * Starts the thread, for the node of this core and what stands before it. `calls` is constant.
 */
void duet__mpi_start(struct duet__mpi *mpi, struct duet_runtime *core, struct duet__nodes *nodes,
                     const struct duet__mpi_calls *calls);

/* The slots, whose `transport` is a struct duet__mpi. */
const struct duet__transport *duet__mpi_transport(void);

#endif
