/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Chooses the next message that a node sends: pairing heaps for each destination (Fredman,
 * Sedgewick, Sleator and Tarjan, Algorithmica 1986), whose links are in the messages; every
 * operation costs O(log n).
 */
#include "nodes/transport.h"

#include <stdlib.h>

#include <duet/error.h>

/* Heaps of a message: a waiting one is in both, one in flight in the second. */
enum order { BY_PRIORITY, BY_TURN };

/* Messages to one node. */
struct way {
    struct duet__message *waiting[2]; /* roots */
    struct duet__message *sent;       /* root of the messages in flight, by turn */
    struct way *next;                 /* next destination to check */
    uint64_t bytes;                   /* bytes of messages in flight, and their number */
    unsigned count;
    bool listed;
};

struct duet__outbox {
    struct way *first, *last; /* destinations to check: something has changed */
    struct way ways[];
};

int duet__outbox_new(struct duet__outbox **out, unsigned nodes)
{
    *out = calloc(1, sizeof **out + nodes * sizeof(struct way));
    if (!*out)
        return DUET_ENOMEM;
    return DUET_OK;
}

void duet__outbox_free(struct duet__outbox *outbox)
{
    free(outbox);
}

/* ------------------------------------------------------------------------------------------- */
/* Heaps                                                                                        */

static bool goes_before(const struct duet__message *a, const struct duet__message *b,
                        enum order order)
{
    if (order == BY_PRIORITY && a->priority != b->priority)
        return a->priority > b->priority;
    return a->turn < b->turn;
}

/* Melds two heaps, of which each may be NULL. Returns the root. */
static struct duet__message *meld(struct duet__message *a, struct duet__message *b,
                                  enum order order)
{
    if (!a || !b)
        return a ? a : b;
    if (goes_before(b, a, order)) {
        struct duet__message *other = a;
        a = b;
        b = other;
    }
    b->links[order].next = a->links[order].down;
    if (b->links[order].next)
        b->links[order].next->links[order].prev = b;
    b->links[order].prev = a;
    a->links[order].down = b;
    return a;
}

/* Makes the first of a list of siblings a heap of its own, and gives the rest of them. */
static struct duet__message *cut_off(struct duet__message *root, enum order order,
                                     struct duet__message **rest)
{
    *rest = root->links[order].next;
    root->links[order].next = root->links[order].prev = NULL;
    return root;
}

/* Melds the heaps below a root: in pairs from the first on, then these from the last. */
static struct duet__message *meld_all(struct duet__message *first, enum order order)
{
    struct duet__message *pairs = NULL, *root = NULL;
    while (first) {
        struct duet__message *pair = cut_off(first, order, &first);
        if (first) {
            struct duet__message *other = cut_off(first, order, &first);
            pair = meld(pair, other, order);
        }
        pair->links[order].next = pairs;
        pairs = pair;
    }
    while (pairs) {
        struct duet__message *pair = cut_off(pairs, order, &pairs);
        root = meld(root, pair, order);
    }
    return root;
}

static void heap_add(struct duet__message **root, struct duet__message *message, enum order order)
{
    message->links[order] = (struct duet__links){NULL, NULL, NULL};
    *root = meld(*root, message, order);
}

static void heap_remove(struct duet__message **root, struct duet__message *message,
                        enum order order)
{
    struct duet__links *links = &message->links[order];
    struct duet__message *below = meld_all(links->down, order);
    if (*root == message) {
        *root = below;
        return;
    }
    if (links->next)
        links->next->links[order].prev = links->prev;
    if (links->prev->links[order].down == message)
        links->prev->links[order].down = links->next;
    else
        links->prev->links[order].next = links->next;
    *root = meld(*root, below, order);
}

/* ------------------------------------------------------------------------------------------- */

static void list_way(struct duet__outbox *outbox, struct way *way)
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
    heap_add(&way->waiting[BY_PRIORITY], message, BY_PRIORITY);
    heap_add(&way->waiting[BY_TURN], message, BY_TURN);
    list_way(outbox, way);
}

/* Returns the message that may go now; NULL: none. */
static struct duet__message *choose_message(const struct way *way)
{
    struct duet__message *least = way->waiting[BY_TURN];
    if (way->count < DUET__OUT_MESSAGES && way->bytes < DUET__OUT_BYTES)
        return way->waiting[BY_PRIORITY];
    return least && (!way->sent || least->turn < way->sent->turn) ? least : NULL;
}

struct duet__message *duet__outbox_take(struct duet__outbox *outbox)
{
    while (outbox->first) {
        struct way *way = outbox->first;
        struct duet__message *message = choose_message(way);
        outbox->first = way->next;
        way->listed = false;
        if (!message)
            continue;
        heap_remove(&way->waiting[BY_PRIORITY], message, BY_PRIORITY);
        heap_remove(&way->waiting[BY_TURN], message, BY_TURN);
        heap_add(&way->sent, message, BY_TURN);
        way->count++;
        way->bytes += message->bytes;
        list_way(outbox, way); /* there may be more, after messages to others */
        return message;
    }
    return NULL;
}

void duet__outbox_gone(struct duet__outbox *outbox, struct duet__message *message)
{
    struct way *way = &outbox->ways[message->to];
    heap_remove(&way->sent, message, BY_TURN);
    way->count--;
    way->bytes -= message->bytes;
    list_way(outbox, way);
}
