/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which message a node sends next: a pairing heap for each destination (Fredman, Sedgewick, Sleator
 * and Tarjan, Algorithmica 1986), whose links are in the messages.
 */
#include "nodes/outbox.h"

#include <stdlib.h>

#include <duet/error.h>

/* To one node. */
struct way {
    struct duet__message *waiting; /* root of the heap */
    struct duet__message *sent;    /* under way, by `next` */
    struct way *next;              /* of those to look at */
    uint64_t bytes;
    unsigned count;
    bool listed;
};

struct duet__outbox {
    struct way *first, *last; /* to look at: something has changed */
    unsigned nodes;
    struct way ways[];
};

int duet__outbox_new(struct duet__outbox **out, unsigned nodes)
{
    *out = calloc(1, sizeof **out + nodes * sizeof(struct way));
    if (!*out)
        return DUET_ENOMEM;
    (*out)->nodes = nodes;
    return DUET_OK;
}

void duet__outbox_free(struct duet__outbox *outbox)
{
    free(outbox);
}

static bool before(const struct duet__message *a, const struct duet__message *b)
{
    return a->priority != b->priority ? a->priority > b->priority : a->turn < b->turn;
}

/* The root of two heaps, of which each may be NULL. */
static struct duet__message *meld(struct duet__message *a, struct duet__message *b)
{
    if (!a || !b)
        return a ? a : b;
    if (before(b, a)) {
        struct duet__message *other = a;
        a = b;
        b = other;
    }
    b->next = a->down;
    a->down = b;
    return a;
}

/* The heap of what was below a root: in pairs from the first on, these from the last. */
static struct duet__message *meld_all(struct duet__message *first)
{
    struct duet__message *pairs = NULL, *root = NULL;
    while (first) {
        struct duet__message *a = first, *b = a->next;
        first = b ? b->next : NULL;
        a->next = NULL;
        if (b)
            b->next = NULL;
        a = meld(a, b);
        a->next = pairs;
        pairs = a;
    }
    while (pairs) {
        struct duet__message *a = pairs;
        pairs = a->next;
        a->next = NULL;
        root = meld(root, a);
    }
    return root;
}

static void look_at(struct duet__outbox *outbox, struct way *way)
{
    if (way->listed)
        return;
    way->listed = true;
    way->next = NULL;
    if (outbox->first)
        outbox->last->next = way;
    else
        outbox->first = way;
    outbox->last = way;
}

void duet__outbox_put(struct duet__outbox *outbox, struct duet__message *message)
{
    struct way *way = &outbox->ways[message->to];
    message->next = message->down = NULL;
    way->waiting = meld(way->waiting, message);
    look_at(outbox, way);
}

/* The one with the least turn of a heap, and what points to it; of its first message, or below. */
static void find_least(struct duet__message **at, struct duet__message ***least)
{
    for (; *at; at = &(*at)->next) {
        if (!*least || (*at)->turn < (**least)->turn)
            *least = at;
        find_least(&(*at)->down, least);
    }
}

/* Takes the message that `at` points to out of the heap. */
static struct duet__message *take_at(struct way *way, struct duet__message **at)
{
    struct duet__message *message = *at;
    *at = message->next;
    way->waiting = meld(way->waiting, meld_all(message->down));
    return message;
}

/* The least turn of all to that node may go whatever is under way; NULL: that is under way. */
static struct duet__message *take_least(struct way *way)
{
    struct duet__message **least = NULL;
    find_least(&way->waiting, &least);
    for (const struct duet__message *sent = way->sent; sent && least; sent = sent->next)
        if (sent->turn <= (*least)->turn)
            return NULL;
    return least ? take_at(way, least) : NULL;
}

struct duet__message *duet__outbox_take(struct duet__outbox *outbox)
{
    while (outbox->first) {
        struct way *way = outbox->first;
        struct duet__message *message = NULL;
        if (way->waiting && way->count < DUET__OUT_MESSAGES && way->bytes < DUET__OUT_BYTES)
            message = take_at(way, &way->waiting);
        else
            message = take_least(way);
        outbox->first = way->next;
        way->listed = false;
        if (!message)
            continue;
        look_at(outbox, way); /* there may be more, after those to others */
        message->down = NULL;
        message->next = way->sent;
        way->sent = message;
        way->count++;
        way->bytes += message->bytes;
        return message;
    }
    return NULL;
}

void duet__outbox_gone(struct duet__outbox *outbox, struct duet__message *message)
{
    struct way *way = &outbox->ways[message->to];
    struct duet__message **at = &way->sent;
    while (*at != message)
        at = &(*at)->next;
    *at = message->next;
    way->count--;
    way->bytes -= message->bytes;
    look_at(outbox, way);
}

struct duet__message *duet__outbox_empty(struct duet__outbox *outbox)
{
    for (unsigned to = 0; to < outbox->nodes; to++) {
        struct way *way = &outbox->ways[to];
        struct duet__message *message = way->sent;
        if (way->waiting)
            return take_at(way, &way->waiting);
        if (message) {
            duet__outbox_gone(outbox, message);
            return message;
        }
    }
    return NULL;
}
