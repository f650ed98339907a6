/* SPDX-License-Identifier: Apache-2.0 */
/* Who computed beside an execution. */
#include <math.h>
#include <stdlib.h>

#include <glib.h>

#include "calibrate/samples.h"

/* The beginning or end of an execution. */
struct edge {
    double at_s;
    size_t sample;
    bool begins;
};

/* One socket, up to a date. */
struct socket {
    double at_s, computed_s; /* by all its workers */
    unsigned running;
};

static int by_date(const void *a, const void *b)
{
    const struct edge *left = a, *right = b;
    if (left->at_s != right->at_s)
        return left->at_s < right->at_s ? -1 : 1;
    if (left->sample != right->sample)
        return left->sample < right->sample ? -1 : 1;
    return (int)right->begins - (int)left->begins;
}

/* The first CPU worker of the same socket stands for it. */
static unsigned socket_of(const struct duet_machine *machine, unsigned worker)
{
    for (unsigned w = 0; w < worker; w++)
        if (machine->workers[w].node == DUET_HOST &&
            machine->workers[w].socket == machine->workers[worker].socket)
            return w;
    return worker;
}

/* The socket's time goes on to the edge's date. `others` holds a difference on the way. */
static void pass(struct socket *socket, const struct edge *edge, struct duet__sample *sample)
{
    socket->computed_s += (edge->at_s - socket->at_s) * socket->running;
    socket->at_s = edge->at_s;
    if (edge->begins) {
        socket->running++;
        sample->others = -socket->computed_s;
    } else {
        socket->running--;
        sample->others += socket->computed_s;
    }
}

/* Writes the edges of executions on CPU workers; returns how many. */
static size_t fill(const struct duet_machine *machine, const struct duet_event *const *events,
                   const struct duet__sample *samples, size_t count, struct edge *edges)
{
    size_t filled = 0;
    for (size_t i = 0; i < count; i++) {
        if (machine->workers[samples[i].worker].node != DUET_HOST ||
            !(events[i]->end_s > events[i]->start_s))
            continue;
        edges[filled++] = (struct edge){.at_s = events[i]->start_s, .sample = i, .begins = true};
        edges[filled++] = (struct edge){.at_s = events[i]->end_s, .sample = i};
    }
    return filled;
}

void duet__samples_others(const struct duet_machine *machine,
                          const struct duet_event *const *events, struct duet__sample *samples,
                          size_t count)
{
    struct edge *edges = g_new0(struct edge, 2 * count + 1);
    struct socket *sockets = g_new0(struct socket, machine->worker_count + 1);
    unsigned *place = g_new0(unsigned, machine->worker_count + 1);
    unsigned *workers = g_new0(unsigned, machine->worker_count + 1);
    for (unsigned w = 0; w < machine->worker_count; w++) {
        place[w] = socket_of(machine, w);
        workers[place[w]] += machine->workers[w].node == DUET_HOST;
    }
    size_t filled = fill(machine, events, samples, count, edges);
    qsort(edges, filled, sizeof *edges, by_date);
    for (size_t i = 0; i < filled; i++) {
        struct duet__sample *sample = &samples[edges[i].sample];
        struct socket *socket = &sockets[place[sample->worker]];
        if (socket->running == 0)
            socket->at_s = edges[i].at_s;
        pass(socket, &edges[i], sample);
        if (edges[i].begins)
            continue;
        const struct duet_event *event = events[edges[i].sample];
        double own_s = event->end_s - event->start_s;
        sample->workers = workers[place[sample->worker]];
        sample->others = fmin(fmax(sample->others / own_s - 1, 0), sample->workers - 1);
    }
    g_free(workers);
    g_free(place);
    g_free(sockets);
    g_free(edges);
}
