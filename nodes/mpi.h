/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The transport over MPI. Between duet__mpi_start and closing, one thread of its own makes all
 * calls of MPI, so that a library that gives MPI_THREAD_SERIALIZED is enough. MPI itself stays open
 * until the process ends: it cannot be opened twice.
 */
#ifndef DUET_NODES_MPI_H
#define DUET_NODES_MPI_H

#include <stdbool.h>

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

/* Starts the thread, for the node of this core and its model. `calls` is constant. */
void duet__mpi_start(struct duet__mpi *mpi, struct duet_runtime *core, struct duet__nodes *nodes,
                     const struct duet__mpi_calls *calls);

/* Returns the transport's functions, whose `transport` is a struct duet__mpi. */
const struct duet__transport *duet__mpi_transport(void);

#endif
