/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs on several nodes: opening, and queries. A `struct duet__nodes` is behind the gate of the
 * application's runtime (the front). It does the same bookkeeping in every process, from the
 * sequence of calls alone, and acts for the nodes that are hosted here: one of them in reality, all
 * of them in a simulation, each with a core of its own.
 */
#ifndef DUET_NODES_NODES_H
#define DUET_NODES_NODES_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <duet/duet.h>

#include "nodes/transport.h"

/* ------------------------------------------------------------------------------------------- */
/*
 * Records of a run on several nodes beside those of each node's core: the task of the program for
 * each task there, the datum of the program for each handle, and the messages. One for each node of
 * this process.
 */

/* One end of a message that has ended. Dates are of this node's core. */
struct duet__logged_message {
    uint64_t tag, turn, bytes; /* number of the datum, turn of the task that needs it, size */
    unsigned from, to;
    bool arrives;   /* this is the receiving end */
    bool failed;    /* the message did not arrive */
    double ready_s; /* date when this end was ready for it */
    double start_s, end_s;
};

/* Tasks of the core with numbers above `after`, up to the next such record, are the task at `turn`
   in the sequence of the program's, or come from it. */
struct duet__logged_task {
    uint64_t after, turn;
};

/* The handle with that number in the core is the datum, or a replica of it. */
struct duet__logged_datum {
    uint64_t handle, tag;
};

struct duet__node_log {
    pthread_mutex_t lock; /* protects what messages change */
    bool records;         /* false: only the counters are kept */
    _Atomic(bool) lost;   /* a record is missing: there was no memory for it */
    /* counts since the last reset, of messages that have not failed */
    uint64_t messages_out, bytes_out; /* messages sent and their bytes */
    struct duet__logged_message *messages;
    struct duet__logged_task *tasks; /* ascending */
    struct duet__logged_datum *data;
    size_t message_count, task_count, datum_count;
    size_t message_room, task_room, datum_room;
};

/* `records`: duet__records of the node's core. */
void duet__log_init(struct duet__node_log *log, bool records);
void duet__log_fini(struct duet__node_log *log); /* for one that was initialised */

/* Forgets messages and tasks, not data. No message is under way. */
void duet__log_reset(struct duet__node_log *log);

/* Records that the task at `turn` is about to be submitted to the core, which has numbered
   `numbered` tasks (duet__numbered). */
void duet__log_task(struct duet__node_log *log, uint64_t numbered, uint64_t turn);

/*
 * Records the datum of a handle (duet__handle_number) that was just made, or is owned from now on.
 */
void duet__log_datum(struct duet__node_log *log, uint64_t handle, uint64_t tag);

/* Records a message. Any thread. */
void duet__log_message(struct duet__node_log *log, const struct duet__logged_message *message);

/* Returns the turn of a task by its number in the core; 0: it comes of none of the program's. */
uint64_t duet__log_turn(const struct duet__node_log *log, uint64_t task);

/* ------------------------------------------------------------------------------------------- */
/* Nodes                                                                                        */

struct duet__node_log;

struct duet__nodes_config {
    unsigned count;         /* number of nodes, more than 1 */
    unsigned first, hosted; /* first node of this process, and number of them: one, or all */
    struct duet_grid grid;  /* rows * cols is count */
    /* cores of the hosted nodes; the first is the front, through whose gate the application's calls
       come. Copied; the cores stay the caller's */
    struct duet_runtime *const *cores;
    const struct duet__transport *transport;
    void *transport_of; /* the transport's argument: duet__nodes_free closes it */
};

/*
 * Puts the nodes' model between the application and its runtime, before anything is registered. On
 * success *out is the caller's. DUET_EINVAL with a message, DUET_ENOMEM.
 */
DUET_MUST_CHECK int duet__nodes_new(struct duet__nodes **out,
                                    const struct duet__nodes_config *config,
                                    struct duet_message *message);

/* Frees the model, and closes the transport first. Before the cores are freed. NULL is fine. */
void duet__nodes_free(struct duet__nodes *nodes);

/* Returns the model in front of this runtime; NULL: it is one node alone. */
struct duet__nodes *duet__nodes_of(const struct duet_runtime *front);

/* Returns the core of a node; NULL: it is not hosted here. */
struct duet_runtime *duet__nodes_core(const struct duet__nodes *nodes, unsigned node);

/* Returns a node's records beside those of its core; NULL: it is not hosted here. */
const struct duet__node_log *duet__nodes_log(const struct duet__nodes *nodes, unsigned node);

/*
 * Keeps (duet__nodes_keep_path) and returns the longest path in seconds through the tasks on data
 * with owners, over all nodes and since the last reset. Each task counts with the time expected
 * here when it was submitted, where it is fastest (none if that was not known). Costs some 40 ns a
 * task; the length is 0 if it was not kept.
 */
void duet__nodes_keep_path(struct duet__nodes *nodes);
double duet__nodes_path_s(const struct duet__nodes *nodes);

/* Call `gather` and `ahead` of the front's transport. */
DUET_MUST_CHECK int duet__nodes_gather(struct duet__nodes *nodes, const void *mine, size_t bytes,
                                       void **all, size_t *sizes);
double duet__nodes_ahead(const struct duet__nodes *nodes);

/*
 * Fails the run in all cores that are hosted here, as it has failed elsewhere, with this error and
 * message, which names the node. Any thread; only the first failure counts.
 */
void duet__nodes_failed(struct duet__nodes *nodes, int error, const char *why);

/* Returns the most square grid of `count` nodes, rows <= cols. */
struct duet_grid duet__grid_square(unsigned count);

#endif
