/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which message a node sends next. Messages that are ready wait by destination in order of
 * priority, then of turn. A few are under way to a destination at a time, until the receiver has
 * matched them, which bounds what arrives before it is expected. But the one with the least turn of
 * all to that destination may always go: its receiver may be unable to go on before it comes. Used
 * by one thread at a time.
 */
#ifndef DUET_NODES_OUTBOX_H
#define DUET_NODES_OUTBOX_H

#include "nodes/transport.h"

enum {
    DUET__OUT_MESSAGES = 16,   /* under way to a node at most */
    DUET__OUT_BYTES = 4 << 20, /* no more goes when so much is */
};

struct duet__outbox;

/* Of a node that sends to `nodes` nodes. DUET_ENOMEM. */
int duet__outbox_new(struct duet__outbox **out, unsigned nodes);
/* Messages stay their owner's. NULL is fine. */
void duet__outbox_free(struct duet__outbox *outbox);

/* The message is ready to be sent. */
void duet__outbox_put(struct duet__outbox *outbox, struct duet__message *message);
/* One that may go now, and counts as under way from then on; NULL: there is none. */
struct duet__message *duet__outbox_take(struct duet__outbox *outbox);
/* The receiver has matched it, or it will never go. */
void duet__outbox_gone(struct duet__outbox *outbox, struct duet__message *message);

#endif
