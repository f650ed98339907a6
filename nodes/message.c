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
