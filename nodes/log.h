/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the records of a run on several nodes need beside those of each node's core: which task of
 * the program a task there is, which datum of the program a handle, and the messages. One a node of
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
    uint64_t tag, turn, bytes; /* of the datum, and of the task that needs it */
    unsigned from, to;
    bool arrives;   /* this is the receiving end */
    bool failed;    /* it did not arrive */
    double ready_s; /* this end was ready for it */
    double start_s, end_s;
};

/* Tasks of the core with numbers above `after`, up to the next one of these, are those at `turn` in
   the sequence of the program's tasks, or come from that one. */
struct duet__logged_task {
    uint64_t after, turn;
};

/* The handle of that number in the core is the datum, or a replica of it. */
struct duet__logged_datum {
    uint64_t handle, tag;
};

struct duet__node_log {
    pthread_mutex_t lock; /* of what messages change */
    bool records;         /* else the counters are all that is kept */
    _Atomic(bool) lost;   /* there was no memory for something */
    /* since the last reset; of messages that have not failed */
    uint64_t messages_out, bytes_out; /* that were sent */
    struct duet__logged_message *messages;
    struct duet__logged_task *tasks; /* ascending */
    struct duet__logged_datum *data;
    size_t message_count, task_count, datum_count;
    size_t message_room, task_room, datum_room;
};

/* `records`: duet__records of the node's core. */
void duet__log_init(struct duet__node_log *log, bool records);
void duet__log_fini(struct duet__node_log *log); /* of one that was initialised */

/* Forgets messages and tasks, not data. No message is under way. */
void duet__log_reset(struct duet__node_log *log);

/* Before the task at `turn` is submitted to the core, which has numbered so many (duet__numbered).
 */
void duet__log_task(struct duet__node_log *log, uint64_t numbered, uint64_t turn);

/* `handle`: duet__handle_number of one that has just been made, or is owned from now on. */
void duet__log_datum(struct duet__node_log *log, uint64_t handle, uint64_t tag);

/* Any thread. */
void duet__log_message(struct duet__node_log *log, const struct duet__logged_message *message);

/* The turn of a task by its number in the core; 0: it is of none of the program's. */
uint64_t duet__log_turn(const struct duet__node_log *log, uint64_t task);

#endif
