/* SPDX-License-Identifier: Apache-2.0 */
/* The account's first half: when each worker runs kernels, and when its next task is ready. */
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#include "validate/account_sweep.h"

/* A kernel starts or ends. */
struct edge {
    double date_s;
    int worker;
    bool end;
    size_t event;
};

/*
 * By worker, then date. What starts comes before what ends then: between kernels that follow each
 * other closely there is no gap, and a kernel without any length starts before it ends.
 */
static int by_date(const void *left, const void *right)
{
    const struct edge *a = left, *b = right;

    if (a->worker != b->worker)
        return a->worker < b->worker ? -1 : 1;
    if (a->date_s != b->date_s)
        return a->date_s < b->date_s ? -1 : 1;
    if (a->end != b->end)
        return a->end ? 1 : -1;
    return (a->event > b->event) - (a->event < b->event);
}

static double within(double date_s, double low_s, double high_s)
{
    return fmin(fmax(date_s, low_s), high_s);
}

/* The edges of all kernels, sorted, within the run. */
static size_t collect(const struct duet_recording *recording, struct edge *edges)
{
    size_t count = 0;

    for (size_t i = 0; i < recording->event_count; i++) {
        const struct duet_event *event = &recording->events[i];
        double start_s = within(event->start_s, 0, recording->makespan_s);

        if (event->kind != DUET_EVENT_TASK)
            continue;
        edges[count++] = (struct edge){.date_s = start_s, .worker = event->worker, .event = i};
        edges[count++] =
            (struct edge){.date_s = within(event->end_s, start_s, recording->makespan_s),
                          .worker = event->worker,
                          .end = true,
                          .event = i};
    }
    qsort(edges, count, sizeof(*edges), by_date);
    return count;
}

/* The worker ran nothing from `start_s` until `next` started. */
static void add_gap(struct duet__sweep *sweep, double start_s, const struct edge *next)
{
    const struct duet_recording *recording = sweep->recording;
    double ready_s = within(recording->events[next->event].ready_s, start_s, next->date_s);

    sweep->parts_s[DUET_PART_IDLE] += ready_s - start_s;
    if (ready_s < next->date_s)
        sweep->gaps[sweep->gap_count++] =
            (struct duet__gap){.node = recording->machine->workers[next->worker].node,
                               .start_s = ready_s,
                               .end_s = next->date_s};
}

static void add_share(struct duet__sweep *sweep, const struct edge *edge, double seconds)
{
    const struct duet_recording *recording = sweep->recording;
    size_t kernel = recording->events[edge->event].kernel;

    sweep->shares[sweep->share_count++] = (struct duet__share){
        .kernel = kernel < recording->kernel_count ? kernel : recording->kernel_count,
        .arch = recording->machine->workers[edge->worker].arch,
        .seconds = seconds,
    };
}

/*
 * One worker. Kernels that run at once share each moment, so `own_s` is what a kernel that ran all
 * the time would have had; what it has shown when a kernel starts is kept by event in `began_s`.
 */
static void add_worker(struct duet__sweep *sweep, const struct edge *edges, size_t count,
                       double *began_s)
{
    double own_s = 0, date_s = 0;
    size_t running = 0;

    for (size_t i = 0; i < count; i++) {
        const struct edge *edge = &edges[i];
        double length_s = edge->date_s - date_s;

        if (running) {
            own_s += length_s / (double)running;
            sweep->parts_s[DUET_PART_KERNEL] += length_s;
        } else if (length_s > 0) {
            add_gap(sweep, date_s, edge);
        }
        date_s = edge->date_s;
        if (edge->end) {
            running--;
            add_share(sweep, edge, own_s - began_s[edge->event]);
        } else {
            running++;
            began_s[edge->event] = own_s;
        }
    }
    sweep->parts_s[DUET_PART_IDLE] += sweep->recording->makespan_s - date_s;
}

int duet__account_kernels(struct duet__sweep *sweep)
{
    const struct duet_recording *recording = sweep->recording;
    struct edge *edges = calloc(2 * recording->event_count + 1, sizeof(*edges));
    double *began_s = calloc(recording->event_count + 1, sizeof(*began_s));
    size_t count, at = 0;

    if (!edges || !began_s) {
        free(edges);
        free(began_s);
        return DUET_ENOMEM;
    }
    count = collect(recording, edges);
    for (unsigned worker = 0; worker < recording->machine->worker_count; worker++) {
        size_t first = at;

        while (at < count && edges[at].worker == (int)worker)
            at++;
        add_worker(sweep, edges + first, at - first, began_s);
    }
    free(edges);
    free(began_s);
    return 0;
}
