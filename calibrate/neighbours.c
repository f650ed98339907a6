/* SPDX-License-Identifier: Apache-2.0 */
/* Computes how many neighbours computed during an execution. */
#include <math.h>

#include "calibrate/executions.h"

/* The beginning or end of an execution. */
struct edge {
    double at_s;
    size_t of;
    bool begins;
};

/* The state of a socket at a date. */
struct socket {
    double at_s, computed_s;   /* date, and seconds computed by all its workers */
    unsigned workers, running; /* numbers of CPU workers */
};

static gint by_date(gconstpointer a, gconstpointer b)
{
    const struct edge *left = a, *right = b;
    if (left->at_s != right->at_s)
        return left->at_s < right->at_s ? -1 : 1;
    if (left->of != right->of)
        return left->of < right->of ? -1 : 1;
    return (int)right->begins - (int)left->begins;
}

/* Returns the beginnings and ends of executions on CPU workers, in order. */
static GArray *find_edges(const struct duet_machine *machine,
                          const struct duet_event *const *events, size_t count)
{
    GArray *edges = g_array_new(FALSE, FALSE, sizeof(struct edge));
    for (size_t i = 0; i < count; i++) {
        const struct edge both[] = {{events[i]->start_s, i, true}, {events[i]->end_s, i, false}};
        if (machine->workers[events[i]->worker].node == DUET_HOST &&
            events[i]->end_s > events[i]->start_s)
            g_array_append_vals(edges, both, 2);
    }
    g_array_sort(edges, by_date);
    return edges;
}

void duet__neighbours_find(const struct duet_machine *machine,
                           const struct duet_event *const *events,
                           struct duet__execution *executions, size_t count)
{
    g_autoptr(GArray) edges = find_edges(machine, events, count);
    struct socket *sockets;
    unsigned socket_count = 0;
    for (unsigned w = 0; w < machine->worker_count; w++)
        socket_count = MAX(socket_count, machine->workers[w].socket + 1);
    sockets = g_new0(struct socket, socket_count + 1);
    for (unsigned w = 0; w < machine->worker_count; w++)
        sockets[machine->workers[w].socket].workers += machine->workers[w].node == DUET_HOST;
    for (guint i = 0; i < edges->len; i++) {
        const struct edge *edge = &g_array_index(edges, struct edge, i);
        const struct duet_event *event = events[edge->of];
        struct duet__execution *e = &executions[edge->of];
        struct socket *socket = &sockets[machine->workers[event->worker].socket];
        if (socket->running)
            socket->computed_s += (edge->at_s - socket->at_s) * socket->running;
        socket->at_s = edge->at_s;
        if (edge->begins) {
            socket->running++;
            e->others = -socket->computed_s; /* becomes a difference at the end */
            continue;
        }
        socket->running--;
        e->others = (e->others + socket->computed_s) / (event->end_s - event->start_s) - 1;
        e->workers = socket->workers;
        e->others = fmin(fmax(e->others, 0), e->workers - 1);
    }
    g_free(sockets);
}
