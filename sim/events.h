/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Dated events in canonical order: date, kind, worker, sequence. They are in a binary heap, but for
 * one that was earlier than all others when it was added, as ends of copies are.
 */
#ifndef DUET_SIM_EVENTS_H
#define DUET_SIM_EVENTS_H

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Kinds, in the order in which events of one date are handled. */
enum event_kind {
    EVENT_KERNEL_END,
    EVENT_KERNEL_NOTICED, /* its device's thread has seen the end of a kernel */
    EVENT_COPY_END,
    EVENT_COPY_NOTICED,
    EVENT_FAILED, /* messages between nodes end, since the run has failed */
    EVENT_MESSAGE_ARRIVED,
    EVENT_MESSAGE_SENT, /* a message has arrived, and the receiver is ready */
    EVENT_PROGRESS,     /* a progress thread has spent the overhead of a message */
    EVENT_FLOW_START,   /* the latency of a copy has passed, its bytes start to flow */
    EVENT_MESSAGE_FLOW, /* the latency of a message has passed, its bytes start to flow */
    EVENT_SUBMIT,       /* the application submits */
    EVENT_SERVE,        /* workers that were woken ahead of the clock are asked */
    EVENT_AWAKE,        /* a worker that slept asks for work */
    EVENT_WAIT,         /* the application waits, its thread may work */
    EVENT_KERNEL_BEGIN, /* last: a kernel that ends at this date does not run beside it */
};

struct event {
    double date;
    uint64_t order; /* kind, worker, sequence packed */
    void *what;
};

struct events {
    struct event *heap, first;
    size_t count, heaped, capacity; /* events in all, in `heap` (the other is `first`); room */
    uint64_t sequence;
};

/* Adds an event. False: out of memory. worker < 2^20. */
bool duet__events_add(struct events *events, double date, enum event_kind kind, unsigned worker,
                      void *what);

/* Removes the first event and returns it; there must be one. */
struct event duet__events_take(struct events *events);

/* Returns the date of the first event; INFINITY: there is none. */
static inline double duet__events_first_s(const struct events *events)
{
    if (events->count > events->heaped)
        return events->first.date;
    return events->heaped ? events->heap[0].date : INFINITY;
}

/* Returns the `order` that the next added event will have. */
static inline uint64_t event_order(const struct events *events, enum event_kind kind,
                                   unsigned worker)
{
    uint64_t sequence = events->sequence & ((UINT64_C(1) << 40) - 1);
    return (uint64_t)kind << 60 | (uint64_t)worker << 40 | sequence;
}

static inline enum event_kind event_kind(const struct event *event)
{
    return (enum event_kind)(event->order >> 60);
}

static inline unsigned event_worker(const struct event *event)
{
    return (unsigned)(event->order >> 40 & 0xfffff);
}

#endif
