/* SPDX-License-Identifier: Apache-2.0 */
/* The heap of dated events. */
#include "sim/events.h"

#include <stdlib.h>

static bool is_earlier(const struct event *a, const struct event *b)
{
    return a->date < b->date || (a->date == b->date && a->order < b->order);
}

bool duet__events_add(struct events *events, double date, enum event_kind kind, unsigned worker,
                      void *what)
{
    if (events->count == events->capacity) {
        size_t capacity = events->capacity ? 2 * events->capacity : 64;
        struct event *heap = realloc(events->heap, capacity * sizeof *heap);
        if (!heap)
            return false;
        events->heap = heap;
        events->capacity = capacity;
    }
    struct event event = {date, event_order(events, kind, worker), what};
    events->sequence++;
    size_t i = events->count++;
    for (; i > 0 && is_earlier(&event, &events->heap[(i - 1) / 2]); i = (i - 1) / 2)
        events->heap[i] = events->heap[(i - 1) / 2];
    events->heap[i] = event;
    return true;
}

struct event duet__events_take(struct events *events)
{
    struct event *heap = events->heap;
    struct event first = heap[0], last = heap[--events->count];
    size_t i = 0, count = events->count;
    for (size_t child = 1; child < count; child = 2 * i + 1) {
        if (child + 1 < count && is_earlier(&heap[child + 1], &heap[child]))
            child++;
        if (!is_earlier(&heap[child], &last))
            break;
        heap[i] = heap[child];
        i = child;
    }
    heap[i] = last;
    return first;
}
