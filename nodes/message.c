/* SPDX-License-Identifier: Apache-2.0 */
/* Messages: acquisitions that the transport ends. */
#include <stdlib.h>

#include "nodes/model.h"

static void end_message(struct duet__message *message, int status)
{
    struct duet__host *host =
        duet__host_of(message->nodes, message->arrives ? message->to : message->from);
    const struct duet__logged_message record = {.tag = message->tag,
                                                .turn = message->turn,
                                                .bytes = message->bytes,
                                                .from = message->from,
                                                .to = message->to,
                                                .arrives = message->arrives,
                                                .failed = status != DUET_OK,
                                                .ready_s = message->ready_s,
                                                .start_s = message->start_s,
                                                .end_s = message->end_s};
    duet__log_message(&host->log, &record);
    duet__acquisition_end(message->acquisition, duet_now(host->core), status);
    free(message);
}

/*
 * Called when the data is ready to be sent, or its place to be filled: gives the message to the
 * transport.
 */
static void message_granted(void *arg, struct duet__acquisition *acquisition, int status)
{
    struct duet__message *message = arg;
    const struct duet__nodes *nodes = message->nodes;
    message->acquisition = acquisition;
    message->ready_s = duet_now(message->core);
    if (status)
        end_message(message, status); /* the run has failed, and fails at the other end too */
    else
        nodes->transport->ready(nodes->transport_of, message);
}

void duet__message_done(struct duet__message *message, int status)
{
    if (status && status != DUET_ECANCELED)
        duet__fail_run(message->core, status, "a message from node %u to node %u was lost",
                       message->from, message->to);
    end_message(message, status);
}

int duet__message_make(struct duet__host *host, struct duet_handle *handle, uint64_t tag,
                       unsigned other, bool arrives, int priority)
{
    /* a node with few tasks of its own must not run ahead of the others for ever */
    int error = duet__window_here(host->core);
    struct duet__message *message = error ? NULL : malloc(sizeof *message);
    if (!message)
        return error ? error : DUET_ENOMEM;
    *message = (struct duet__message){.tag = tag,
                                      .turn = host->nodes->turn,
                                      .bytes = duet__handle_bytes(handle),
                                      .priority = priority,
                                      .from = arrives ? other : host->number,
                                      .to = arrives ? host->number : other,
                                      .arrives = arrives,
                                      .core = host->core,
                                      .handle = handle,
                                      .nodes = host->nodes};
    duet__touch(host);
    error = duet__acquire_submit(host->core, handle, arrives ? DUET_W : DUET_R, priority,
                                 message_granted, message);
    if (error)
        free(message);
    return error;
}

/* ------------------------------------------------------------------------------------------- */
/* Notes of a node's tasks, data and messages, for the records of the run. */

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
