/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Support for tests: several runtimes in one process, each a node of its own with a thread of its
 * own that submits. A thread carries messages by copies of memory, in a random order where several
 * could be next, and counts them.
 */
#ifndef DUET_NODES_TESTING_TRANSPORT_H
#define DUET_NODES_TESTING_TRANSPORT_H

#include <pthread.h>
#include <sched.h>
#include <string.h>

#include <glib.h>

#include <duet/random.h>

#include "core/engine.h"
#include "nodes/nodes.h"
#include "nodes/transport.h"

enum { FABRIC_NODES = 16 };

struct fabric;

/* A node's end of it: the argument of its transport. */
struct port {
    struct fabric *fabric;
    unsigned node;
    struct duet__nodes *nodes;
    struct duet_runtime *duet;
    struct duet__outbox *outbox;
};

struct fabric {
    unsigned count, threads; /* nodes, and processes they stand for: as many, or one */
    struct port ports[FABRIC_NODES];
    pthread_t carrier;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    GPtrArray *sending, *arriving; /* lock, as all of the rest: ends, in order */
    bool over, failed, told;
    bool calling; /* the carrier's thread is in calls of the library */
    bool changes; /* there may be something that a failed run is to end */
    int error;
    unsigned failed_node, failures;
    struct duet_message why;
    unsigned meeting, round; /* nodes at the barrier; barriers that were left */
    uint64_t rng;
    size_t window; /* window of run_nodes */
    /* that have arrived */
    uint64_t messages, bytes;
    unsigned received[FABRIC_NODES][FABRIC_NODES]; /* from, to */
};

/* ------------------------------------------------------------------------------------------- */
/* A message                                                                                    */

static inline int keep_piece(void *arg, const struct duet__piece *piece)
{
    g_array_append_val((GArray *)arg, *piece);
    return DUET_OK;
}

/* All bytes one after another; into memory, or out of it. */
static inline void stream(const struct duet_handle *handle, char *memory, bool into)
{
    GArray *pieces = g_array_new(false, false, sizeof(struct duet__piece));
    g_assert_cmpint(duet__handle_pieces(handle, keep_piece, pieces), ==, DUET_OK);
    for (unsigned i = 0; i < pieces->len; i++) {
        const struct duet__piece *piece = &g_array_index(pieces, struct duet__piece, i);
        for (size_t col = 0; col < piece->cols; col++, memory += piece->column_bytes) {
            char *at = (char *)piece->to + col * piece->to_pitch;
            memcpy(into ? memory : at, into ? at : memory, piece->column_bytes);
        }
    }
    g_array_free(pieces, true);
}

static inline void carry_bytes(struct duet__message *from, struct duet__message *to)
{
    g_assert_cmpuint(from->bytes, ==, to->bytes);
    g_assert_cmpint(from->priority, ==, to->priority);
    char *memory = g_malloc(from->bytes);
    from->start_s = to->start_s = duet_now(to->core);
    stream(from->handle, memory, true);
    stream(to->handle, memory, false);
    from->end_s = to->end_s = duet_now(to->core);
    g_free(memory);
}

/* ------------------------------------------------------------------------------------------- */
/* The thread that carries                                                                      */

static inline bool same_way(const struct duet__message *a, const struct duet__message *b)
{
    return a->from == b->from && a->to == b->to && a->tag == b->tag && a->turn == b->turn;
}

/* The first end of that way in order; UINT_MAX: none. */
static inline unsigned first_of_way(const GPtrArray *ends, const struct duet__message *way)
{
    for (unsigned i = 0; i < ends->len; i++)
        if (same_way(g_ptr_array_index(ends, i), way))
            return i;
    return UINT_MAX;
}

/* Lets go what may go. */
static inline void send_ready(struct fabric *fabric)
{
    for (unsigned n = 0; n < fabric->count; n++) {
        struct duet__message *message;
        while ((message = duet__outbox_take(fabric->ports[n].outbox)))
            g_ptr_array_add(fabric->sending, message);
    }
}

/* Picks two ends that belong together. false: there are none. */
static inline bool pick(struct fabric *fabric, struct duet__message **from,
                        struct duet__message **to)
{
    send_ready(fabric);
    unsigned start = duet_random_below(&fabric->rng, fabric->arriving->len + 1);
    for (unsigned i = 0; i < fabric->arriving->len; i++) {
        struct duet__message *end =
            g_ptr_array_index(fabric->arriving, (start + i) % fabric->arriving->len);
        unsigned other = first_of_way(fabric->sending, end);
        if (other == UINT_MAX)
            continue;
        *from = g_ptr_array_index(fabric->sending, other);
        *to = g_ptr_array_index(fabric->arriving, first_of_way(fabric->arriving, end));
        g_ptr_array_remove_index(fabric->sending, other);
        g_ptr_array_remove(fabric->arriving, *to);
        return true;
    }
    return false;
}

/* Called and left with the lock. */
static inline void carry_one(struct fabric *fabric, struct duet__message *from,
                             struct duet__message *to)
{
    bool first = duet_random_below(&fabric->rng, 2);
    fabric->messages++;
    fabric->bytes += to->bytes;
    fabric->received[to->from][to->to]++;
    duet__outbox_gone(fabric->ports[from->from].outbox, from);
    fabric->calling = true;
    pthread_mutex_unlock(&fabric->lock);
    carry_bytes(from, to);
    duet__message_done(first ? from : to, DUET_OK);
    duet__message_done(first ? to : from, DUET_OK);
    pthread_mutex_lock(&fabric->lock);
    fabric->calling = false;
    pthread_cond_broadcast(&fabric->changed);
    for (unsigned i = duet_random_below(&fabric->rng, 4); i > 0; i--) { /* others may come */
        pthread_mutex_unlock(&fabric->lock);
        (void)sched_yield();
        pthread_mutex_lock(&fabric->lock);
    }
}

/* The run has failed: everybody is told, and all messages end. Likewise. */
static inline void carry_none(struct fabric *fabric)
{
    struct duet__message *message;
    GPtrArray *ended = g_ptr_array_new();
    while (fabric->arriving->len)
        g_ptr_array_add(ended, g_ptr_array_steal_index_fast(fabric->arriving, 0));
    do { /* those under way make room for others */
        for (; fabric->sending->len; g_ptr_array_add(ended, message)) {
            message = g_ptr_array_steal_index_fast(fabric->sending, 0);
            duet__outbox_gone(fabric->ports[message->from].outbox, message);
        }
        send_ready(fabric);
    } while (fabric->sending->len);
    bool told = fabric->told;
    fabric->changes = false;
    fabric->calling = true;
    pthread_mutex_unlock(&fabric->lock);
    for (unsigned n = 0; n < fabric->count && !told; n++)
        if (n != fabric->failed_node || fabric->threads == 1)
            duet__nodes_failed(fabric->ports[n].nodes, fabric->error, fabric->why.text);
    for (unsigned i = 0; i < ended->len; i++)
        duet__message_done(g_ptr_array_index(ended, i), DUET_ECANCELED);
    g_ptr_array_free(ended, true);
    pthread_mutex_lock(&fabric->lock);
    fabric->told = true;
    fabric->calling = false;
    pthread_cond_broadcast(&fabric->changed);
}

static inline void *carry_all(void *arg)
{
    struct fabric *fabric = arg;
    struct duet__message *from, *to;
    pthread_mutex_lock(&fabric->lock);
    while (!fabric->over) {
        if (fabric->failed && fabric->changes)
            carry_none(fabric);
        else if (!fabric->failed && pick(fabric, &from, &to))
            carry_one(fabric, from, to);
        else
            pthread_cond_wait(&fabric->changed, &fabric->lock);
    }
    pthread_mutex_unlock(&fabric->lock);
    return NULL;
}

/* ------------------------------------------------------------------------------------------- */
/* The transport                                                                                */

static inline void fabric_ready(void *transport, struct duet__message *message)
{
    struct fabric *fabric = ((struct port *)transport)->fabric;
    const struct port *port = &fabric->ports[message->arrives ? message->to : message->from];
    g_assert_true(message->core == port->duet);
    pthread_mutex_lock(&fabric->lock);
    if (message->arrives)
        g_ptr_array_add(fabric->arriving, message);
    else
        duet__outbox_put(port->outbox, message);
    fabric->changes = true;
    pthread_cond_broadcast(&fabric->changed);
    pthread_mutex_unlock(&fabric->lock);
}

static inline void fabric_fail(void *transport, unsigned node, int error, const char *why)
{
    struct fabric *fabric = ((struct port *)transport)->fabric;
    pthread_mutex_lock(&fabric->lock);
    fabric->failures++;
    fabric->changes = true;
    if (!fabric->failed) {
        fabric->failed = true;
        fabric->failed_node = node;
        fabric->error = duet_fail(&fabric->why, error, "%s", why);
    }
    pthread_cond_broadcast(&fabric->changed);
    pthread_mutex_unlock(&fabric->lock);
}

static inline int fabric_barrier(void *transport)
{
    struct fabric *fabric = ((struct port *)transport)->fabric;
    pthread_mutex_lock(&fabric->lock);
    const unsigned round = fabric->round;
    if (++fabric->meeting == fabric->threads) {
        fabric->meeting = 0;
        fabric->round++;
        pthread_cond_broadcast(&fabric->changed);
    }
    while ((fabric->round == round || fabric->failed) && !fabric->told)
        pthread_cond_wait(&fabric->changed, &fabric->lock);
    int error = fabric->told ? fabric->error : DUET_OK;
    pthread_mutex_unlock(&fabric->lock);
    return error;
}

static const struct duet__transport fabric_transport = {.ready = fabric_ready,
                                                        .fail = fabric_fail,
                                                        .barrier = fabric_barrier};

/* ------------------------------------------------------------------------------------------- */

static inline struct fabric *fabric_new(unsigned count, uint64_t seed)
{
    struct fabric *fabric = g_new0(struct fabric, 1);
    g_assert_cmpuint(count, <=, FABRIC_NODES);
    fabric->count = fabric->threads = count;
    fabric->rng = seed;
    fabric->sending = g_ptr_array_new();
    fabric->arriving = g_ptr_array_new();
    pthread_mutex_init(&fabric->lock, NULL);
    pthread_cond_init(&fabric->changed, NULL);
    for (unsigned n = 0; n < count; n++) {
        fabric->ports[n] = (struct port){.fabric = fabric, .node = n};
        g_assert_cmpint(duet__outbox_new(&fabric->ports[n].outbox, count), ==, DUET_OK);
    }
    g_assert_cmpint(pthread_create(&fabric->carrier, NULL, carry_all, fabric), ==, 0);
    return fabric;
}

/* Puts runtimes that are open into the place of that node, or (node 0) of all of them. */
static inline void fabric_join(struct fabric *fabric, unsigned node, struct duet_runtime **duet,
                               unsigned hosted, struct duet_grid grid)
{
    struct duet__nodes *nodes;
    struct duet_message message = {""};
    const struct duet__nodes_config config = {.count = fabric->count,
                                              .first = node,
                                              .hosted = hosted,
                                              .grid = grid,
                                              .cores = duet,
                                              .transport = &fabric_transport,
                                              .transport_of = &fabric->ports[node]};
    int error = duet__nodes_new(&nodes, &config, &message);
    if (error)
        g_error("%s", message.text);
    pthread_mutex_lock(&fabric->lock);
    for (unsigned h = 0; h < hosted; h++) {
        fabric->ports[node + h].duet = duet[h];
        fabric->ports[node + h].nodes = nodes;
    }
    fabric->threads = fabric->count / hosted;
    pthread_mutex_unlock(&fabric->lock);
}

/* A thread of the application, which is one node. */
struct node {
    struct fabric *fabric;
    unsigned number;
    struct duet_config config;
    struct duet_runtime *duet;
    void (*body)(struct node *node);
    void *data;
    pthread_t thread;
    int closed; /* what duet_close has returned */
};

static inline void node_open(struct node *node, struct duet_grid grid)
{
    struct duet_message message = {""};
    if (duet_open(&node->duet, &node->config, &message))
        g_error("%s", message.text);
    fabric_join(node->fabric, node->number, &node->duet, 1, grid);
}

/* Collective. */
static inline void node_close(struct node *node)
{
    struct fabric *fabric = node->fabric;
    g_assert_true(!duet_wait(node->duet) == !fabric->error);
    /* all messages have ended, but the call that has told of the last one may not have returned */
    pthread_mutex_lock(&fabric->lock);
    while (fabric->calling)
        pthread_cond_wait(&fabric->changed, &fabric->lock);
    pthread_mutex_unlock(&fabric->lock);
    duet__nodes_free(node->fabric->ports[node->number].nodes);
    node->closed = duet_close(node->duet);
}

static inline void *node_thread(void *arg)
{
    struct node *node = arg;
    node->body(node);
    node_close(node);
    return NULL;
}

/* Runs the body on all nodes, each with a CPU and the given number of emulated GPUs. */
static inline void run_nodes(struct fabric *fabric, struct duet_grid grid, int gpus,
                             void (*body)(struct node *node), void *data)
{
    struct node nodes[FABRIC_NODES];
    for (unsigned n = 0; n < fabric->count; n++) {
        nodes[n] = (struct node){.fabric = fabric, .number = n, .body = body, .data = data};
        duet_config_init(&nodes[n].config);
        nodes[n].config.cpus = 1;
        nodes[n].config.gpus = gpus;
        nodes[n].config.window = fabric->window;
        nodes[n].config.emulate = "free";
        nodes[n].config.no_bind = nodes[n].config.quiet = true;
        node_open(&nodes[n], grid);
    }
    for (unsigned n = 0; n < fabric->count; n++)
        g_assert_cmpint(pthread_create(&nodes[n].thread, NULL, node_thread, &nodes[n]), ==, 0);
    for (unsigned n = 0; n < fabric->count; n++) {
        (void)pthread_join(nodes[n].thread, NULL);
        g_assert_true(!nodes[n].closed == !fabric->error);
    }
}

/* Frees the fabric, when all of its nodes have closed: no message is left. */
static inline void fabric_free(struct fabric **owned)
{
    struct fabric *fabric = *owned;
    pthread_mutex_lock(&fabric->lock);
    fabric->over = true;
    pthread_cond_broadcast(&fabric->changed);
    pthread_mutex_unlock(&fabric->lock);
    (void)pthread_join(fabric->carrier, NULL);
    g_assert_cmpuint(fabric->sending->len + fabric->arriving->len, ==, 0);
    for (unsigned n = 0; n < fabric->count; n++) {
        g_assert_null(duet__outbox_take(fabric->ports[n].outbox));
        duet__outbox_free(fabric->ports[n].outbox);
    }
    g_ptr_array_free(fabric->sending, true);
    g_ptr_array_free(fabric->arriving, true);
    pthread_mutex_destroy(&fabric->lock);
    pthread_cond_destroy(&fabric->changed);
    g_free(fabric);
}

#endif
