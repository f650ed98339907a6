/* SPDX-License-Identifier: Apache-2.0 */
/* Notes of a node's tasks, data and messages, for the records of the run. */
#include "nodes/log.h"

#include <stdlib.h>

void duet__log_init(struct duet__node_log *log, bool records)
{
    *log = (struct duet__node_log){.records = records};
    pthread_mutex_init(&log->lock, NULL);
}

void duet__log_fini(struct duet__node_log *log)
{
    pthread_mutex_destroy(&log->lock);
    free(log->messages);
    free(log->tasks);
    free(log->data);
}

void duet__log_reset(struct duet__node_log *log)
{
    log->message_count = log->task_count = 0;
    log->messages_out = log->bytes_out = 0;
    log->lost = false;
}

/* Returns the place behind the last element of an array; NULL: there is no memory for it. */
static void *place_after(struct duet__node_log *log, void **array, size_t count, size_t *room,
                         size_t bytes)
{
    if (count == *room) {
        const size_t more = 2 * *room + 64;
        void *larger = more < SIZE_MAX / bytes ? realloc(*array, more * bytes) : NULL;

        if (!larger) {
            atomic_store(&log->lost, true);
            return NULL;
        }
        *array = larger;
        *room = more;
    }
    return (char *)*array + count * bytes;
}

#define PLACE(log, array, count, room)                                                             \
    place_after(log, (void **)&(log)->array, (log)->count, &(log)->room, sizeof *(log)->array)

void duet__log_task(struct duet__node_log *log, uint64_t numbered, uint64_t turn)
{
    struct duet__logged_task *last = log->task_count ? &log->tasks[log->task_count - 1] : NULL;

    if (!log->records)
        return;
    if (!last || last->after != numbered) { /* otherwise no task came of the one before */
        last = PLACE(log, tasks, task_count, task_room);
        log->task_count += last != NULL;
    }
    if (last)
        *last = (struct duet__logged_task){numbered, turn};
}

void duet__log_datum(struct duet__node_log *log, uint64_t handle, uint64_t tag)
{
    struct duet__logged_datum *datum =
        log->records ? PLACE(log, data, datum_count, datum_room) : NULL;

    if (!datum)
        return;
    *datum = (struct duet__logged_datum){handle, tag};
    log->datum_count++;
}

void duet__log_message(struct duet__node_log *log, const struct duet__logged_message *message)
{
    struct duet__logged_message *own;

    pthread_mutex_lock(&log->lock);
    if (!message->failed && !message->arrives) {
        log->messages_out++;
        log->bytes_out += message->bytes;
    }
    own = log->records ? PLACE(log, messages, message_count, message_room) : NULL;
    if (own)
        *own = *message;
    log->message_count += own != NULL;
    pthread_mutex_unlock(&log->lock);
}

uint64_t duet__log_turn(const struct duet__node_log *log, uint64_t task)
{
    size_t low = 0, high = log->task_count;

    while (low < high) {
        const size_t middle = low + (high - low) / 2;

        if (log->tasks[middle].after < task)
            low = middle + 1;
        else
            high = middle;
    }
    return low ? log->tasks[low - 1].turn : 0;
}
