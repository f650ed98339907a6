/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What carries data between nodes: MPI, the simulated network, or the memory of one process in
 * tests. The model (nodes/nodes.h) tells it of either end of a message when that is ready; it
 * tells the model when the message is done. Nothing is negotiated: both ends make theirs from the
 * same sequence of tasks, and those with the same (from, to, tag, turn) belong to each other.
 * Between processes that host one node each, the order is enough in which ends with the same
 * (from, to, tag) were given here: where that differs, they carry the same version.
 */
#ifndef DUET_NODES_TRANSPORT_H
#define DUET_NODES_TRANSPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct duet__nodes;
struct duet__acquisition;
struct duet_handle;
struct duet_runtime;

struct duet__message;
struct duet__links {
    struct duet__message *down, *next, *prev;
};

/* One end of a datum's way from a node to another. The model's, valid until it is done. */
struct duet__message {
    /* the transport's, from when it is given to it until it is done */
    struct duet__message *next;
    void *transport;
    double start_s, end_s; /* of the transfer, on the core's clock: for traces */
    /* for the transport to read */
    uint64_t tag;  /* the datum's number, the same in all processes, never used again */
    uint64_t turn; /* in the sequence of the program, from 1: of the task that needs it */
    uint64_t bytes;
    int priority; /* of that task */
    unsigned from, to;
    bool arrives;                /* this is the receiving end */
    struct duet_runtime *core;   /* of the node at this end */
    struct duet_handle *handle;  /* there: duet__handle_pieces may be read, or written if it arrives
                                    (not in simulations) */
    struct duet__links links[2]; /* the outbox's, from when it is put there until it is gone */
    /* the model's */
    struct duet__nodes *nodes;
    struct duet__acquisition *acquisition;
    double ready_s;
};

/*
 * The transport has done it, or could not, which fails the run: status is a negative duet_error
 * (DUET_ECANCELED: since the run has failed anyway). The message is not to be used any more. Any
 * thread, with no lock held that `ready` takes; in simulations inside an event of the engine.
 */
void duet__message_done(struct duet__message *message, int status);

/*
 * A transport's functions. Once `fail` was called, or the transport has called duet__nodes_failed,
 * it ends every message that it has, or is given, by duet__message_done with DUET_ECANCELED, soon:
 * that is how waits end after a failure. (From inside `ready` it may not do so, but on a thread of
 * its own, or in an event.)
 */
struct duet__transport {
    /* This end is ready. Any thread, with no lock held; never blocks. */
    void (*ready)(void *transport, struct duet__message *message);
    /*
     * So many tasks were passed over on a node that is hosted here, since they run on others: what
     * this costs its application's thread before what it submits next. May be NULL.
     */
    void (*passed)(void *transport, unsigned node, uint64_t tasks);
    /*
     * The run has failed on this node, which is hosted here: it is to fail in the processes of all
     * others by duet__nodes_failed with the same error and message. Called once a node, on any
     * thread; never blocks.
     */
    void (*fail)(void *transport, unsigned node, int error, const char *why);
    /*
     * Blocks the application's thread until all processes are here: 0, or the error of the first
     * failure, if there was one before or meanwhile anywhere: then it waits for nobody.
     */
    int (*barrier)(void *transport);
    /*
     * Collective: bytes of every process at node 0. There *all is malloc'ed, node after node, and
     * sizes[node] says how many there are of each; elsewhere *all is NULL. 0 or an error.
     */
    int (*gather)(void *transport, const void *mine, size_t bytes, void **all, size_t *sizes);
    /*
     * By how much the clock of this process's core is ahead of that of node 0, in seconds: what
     * their dates are compared by. May be NULL: all have one clock.
     */
    double (*ahead)(void *transport);
    /*
     * Ends what is left, and frees it: nothing is given to it any more. When it returns no call of
     * duet__message_done is under way on a thread of the transport: that the run has nothing left
     * does not say so, and the cores are freed next. May be NULL.
     */
    void (*close)(void *transport);
};

#endif
