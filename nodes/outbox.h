/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The outbox: chooses the next message that a node sends. Messages that are ready wait by
 * destination in order of priority, then of turn. A few are in flight to a destination at a time,
 * until the receiver has matched them, which bounds unexpected messages. But the one with the least
 * turn of all to that destination may always go: its receiver may be unable to continue without it.
 * Used by one thread at a time.
 */
#ifndef DUET_NODES_OUTBOX_H
#define DUET_NODES_OUTBOX_H

#include "nodes/transport.h"

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
