/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Records of a run on several nodes beside those of each node's core: the task of the program for
 * each task there, the datum of the program for each handle, and the messages. One for each node of
 * this process.
 */
#ifndef DUET_NODES_LOG_H
#define DUET_NODES_LOG_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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

#endif
