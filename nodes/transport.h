/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Transports carry data between nodes: over MPI, the simulated network, or the memory of one
 * process in tests. The model (nodes/nodes.h) tells the transport of each end of a message when
 * that is ready; the transport tells the model when the message is done. Nothing is negotiated:
 * both ends make theirs from the same sequence of tasks, and ends with the same (from, to, tag,
 * turn) belong together. Between processes that host one node each, the order in which ends with
 * the same (from, to, tag) were given is enough: if that differs, they carry the same version.
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

/*
 * One end of a datum's transfer from a node to another. Owned by the model, valid until it is done.
 */
struct duet__message {
    /* used by the transport, from when it is given to it until it is done */
    struct duet__message *next;
    void *transport;
    double start_s, end_s; /* dates of the transfer, on the core's clock: for traces */
    /* read by the transport */
    uint64_t tag;  /* number of the datum, the same in all processes, never used again */
    uint64_t turn; /* position in the program's sequence, from 1, of the task that needs it */
    uint64_t bytes;
    int priority; /* priority of that task */
    unsigned from, to;
    bool arrives;                /* this is the receiving end */
    struct duet_runtime *core;   /* core of the node at this end */
    struct duet_handle *handle;  /* handle there: duet__handle_pieces may be read, or written if it
                                    arrives (not in simulations) */
    struct duet__links links[2]; /* the outbox's, from when it is put there until it is gone */
    /* used by the model */
    struct duet__nodes *nodes;
    struct duet__acquisition *acquisition;
    double ready_s;
};

/*
 * Ends a message that the transport has done, or could not, which fails the run: status is a
 * negative duet_error (DUET_ECANCELED: since the run has failed anyway). The message is not to be
 * used any more. Any thread, with no lock held that `ready` takes; in simulations inside an event
 * of the engine.
 */
void duet__message_done(struct duet__message *message, int status);

/*
 * A transport's functions. Once `fail` was called, or the transport has called duet__nodes_failed,
 * it ends every message that it has, or is given, by duet__message_done with DUET_ECANCELED, soon:
 * that is how waits end after a failure. (From inside `ready` it may not do so, but on a thread of
 * its own, or in an event.)
 */
struct duet__transport {
    /* Gives an end of a message that is ready. Any thread, with no lock held; never blocks. */
    void (*ready)(void *transport, struct duet__message *message);
    /*
     * Charges the application's thread of a node that is hosted here for `tasks` tasks that it
     * passed over, since they run on other nodes, before its next submission. May be NULL.
     */
    void (*passed)(void *transport, unsigned node, uint64_t tasks);
    /*
     * Announces that the run has failed on this node, which is hosted here: it is to fail in the
     * processes of all others by duet__nodes_failed with the same error and message. Called once a
     * node, on any thread; never blocks.
     */
    void (*fail)(void *transport, unsigned node, int error, const char *why);
    /*
     * Blocks the application's thread until all processes are here. Returns 0, or the error of the
     * first failure anywhere, before or meanwhile: then it waits for nobody.
     */
    int (*barrier)(void *transport);
    /*
     * Gathers bytes of every process at node 0. Collective. There *all is malloc'ed, node after
     * node, and sizes[node] is the size of each part; elsewhere *all is NULL. 0 or an error.
     */
    int (*gather)(void *transport, const void *mine, size_t bytes, void **all, size_t *sizes);
    /*
     * Returns the lead in seconds of the clock of this process's core over that of node 0, to
     * compare their dates. May be NULL: all have one clock.
     */
    double (*ahead)(void *transport);
    /*
     * Ends the remaining messages, and frees the transport, which is given nothing any more. When
     * it returns no call of duet__message_done is in progress on a thread of the transport: an idle
     * run does not guarantee that, and the cores are freed next. May be NULL.
     */
    void (*close)(void *transport);
};

/* ------------------------------------------------------------------------------------------- */
/*
 * Waiting of the thread that makes progress over MPI: it spins at first, then sleeps and polls in
 * turn, in reality and in simulations.
 */

static const double DUET__REST_AFTER_S = 20e-6; /* time for which it spins */
static const double DUET__REST_MOST_S = 100e-6; /* longest sleep at a time */

/* Returns how long it sleeps after it has waited for waited_s; 0: it spins. No wait gets longer by
   more than an eighth. */
static inline double duet__rest_s(double waited_s)
{
    if (waited_s < DUET__REST_AFTER_S)
        return 0;
    return waited_s / 8 < DUET__REST_MOST_S ? waited_s / 8 : DUET__REST_MOST_S;
}

/* ------------------------------------------------------------------------------------------- */
/*
 * The outbox: chooses the next message that a node sends. Messages that are ready wait by
 * destination in order of priority, then of turn. A few are in flight to a destination at a time,
 * until the receiver has matched them, which bounds unexpected messages. But the one with the least
 * turn of all to that destination may always go: its receiver may be unable to continue without it.
 * Used by one thread at a time.
 */

enum {
    DUET__OUT_MESSAGES = 16,   /* messages in flight to a node at most */
    DUET__OUT_BYTES = 4 << 20, /* no further message goes when so many bytes are in flight */
};

struct duet__outbox;

/* Creates the outbox of a node that sends to `nodes` nodes. DUET_ENOMEM. */
int duet__outbox_new(struct duet__outbox **out, unsigned nodes);
/* Frees the outbox; messages stay their owner's. NULL is fine. */
void duet__outbox_free(struct duet__outbox *outbox);

/* Adds a message that is ready to be sent. */
void duet__outbox_put(struct duet__outbox *outbox, struct duet__message *message);
/*
 * Returns a message that may go now, and counts it as in flight from then on; NULL: there is none.
 */
struct duet__message *duet__outbox_take(struct duet__outbox *outbox);
/* Ends a message in flight: the receiver has matched it, or it will never go. */
void duet__outbox_gone(struct duet__outbox *outbox, struct duet__message *message);

#endif
