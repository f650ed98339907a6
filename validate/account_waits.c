/* SPDX-License-Identifier: Apache-2.0 */
/* The account's second half: which copies a worker waits for while its next task is ready. */
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#include "validate/account_sweep.h"

/*
 * A copy that ends later than a kernel starts is not waited for by it, but for the resolution of
 * the dates: that of CUDA's events is about half a microsecond.
 */
static const double resolution_s = 1e-6;

/*
 * A copy through the host continues when the end of its first half has been noticed, which takes a
 * thread that is not kept from it much less. What begins later has another reason.
 */
static const double notice_s = 1e-3;

enum { DIRECTIONS = 3, FIRST = DUET_PART_TO_DEVICE }; /* parts that are directions of copies */

/* From when to when somebody who works in the memory `node` may wait for a copy. */
struct wait {
    unsigned node;
    enum duet_part part;
    double start_s, end_s;
    double last_s; /* end of the copy that goes on from it, or its own */
};

/* Stretches that do not overlap, in order of time, and the seconds up to the end of each. */
struct line {
    struct stretch {
        double start_s, end_s;
        enum duet_part part;
        double before_s[DIRECTIONS]; /* of all stretches before this one */
    } * stretches;
    size_t count;
};

static int by_end(const void *left, const void *right)
{
    const struct wait *a = left, *b = right;

    if (a->node != b->node)
        return a->node < b->node ? -1 : 1;
    if (a->last_s != b->last_s)
        return a->last_s < b->last_s ? -1 : 1;
    if (a->end_s != b->end_s)
        return a->end_s < b->end_s ? -1 : 1;
    if (a->start_s != b->start_s)
        return a->start_s < b->start_s ? -1 : 1;
    return (a->part > b->part) - (a->part < b->part);
}

static int by_gap_end(const void *left, const void *right)
{
    const struct duet__gap *a = left, *b = right;

    if (a->node != b->node)
        return a->node < b->node ? -1 : 1;
    return (a->end_s > b->end_s) - (a->end_s < b->end_s);
}

static int by_handle(const void *left, const void *right)
{
    const struct duet_event *a = *(const struct duet_event *const *)left;
    const struct duet_event *b = *(const struct duet_event *const *)right;

    if (a->id != b->id)
        return a->id < b->id ? -1 : 1;
    return (a->end_s > b->end_s) - (a->end_s < b->end_s);
}

/* The copies to the host, by handle, then end. */
static size_t collect_to_host(const struct duet_recording *recording,
                              const struct duet_event **copies)
{
    size_t count = 0;

    for (size_t i = 0; i < recording->event_count; i++)
        if (recording->events[i].kind == DUET_EVENT_COPY &&
            recording->events[i].destination == DUET_HOST)
            copies[count++] = &recording->events[i];
    qsort(copies, count, sizeof(const struct duet_event *), by_handle);
    return count;
}

/* The copy to the host from which `copy`, to a device, goes on; NULL: it was there before. */
static const struct duet_event *first_half(const struct duet_event *copy,
                                           const struct duet_event *const *to_host, size_t count)
{
    size_t low = 0, high = count;

    /* the last one of this handle that has ended when the second half is decided */
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const struct duet_event *other = to_host[middle];

        if (other->id < copy->id ||
            (other->id == copy->id && other->end_s <= copy->ready_s + resolution_s))
            low = middle + 1;
        else
            high = middle;
    }
    if (!low || to_host[low - 1]->id != copy->id ||
        to_host[low - 1]->end_s < copy->ready_s - notice_s)
        return NULL;
    return to_host[low - 1];
}

/* What may be waited for because of one copy: by those who work where it arrives or comes from. */
static size_t add_waits(const struct duet_event *copy, const struct duet_event *const *to_host,
                        size_t to_host_count, struct wait *waits)
{
    struct wait wait = {.node = copy->destination,
                        .part = DUET_PART_TO_DEVICE,
                        .start_s = copy->ready_s,
                        .end_s = copy->end_s,
                        .last_s = copy->end_s};
    const struct duet_event *before;

    if (copy->destination == DUET_HOST) {
        /* a device waits for the room that it makes, the host for the data that it was asked for */
        wait.part = DUET_PART_TO_HOST;
        wait.node = copy->write_back ? copy->source : DUET_HOST;
        waits[0] = wait;
        return 1;
    }
    if (copy->source != DUET_HOST)
        wait.part = DUET_PART_BETWEEN;
    waits[0] = wait;
    before = copy->source == DUET_HOST ? first_half(copy, to_host, to_host_count) : NULL;
    if (!before || before->ready_s >= copy->ready_s)
        return 1;
    wait.part = DUET_PART_TO_HOST;
    wait.start_s = before->ready_s;
    wait.end_s = copy->ready_s;
    waits[1] = wait;
    return 2;
}

static size_t collect_waits(const struct duet_recording *recording, struct wait *waits,
                            const struct duet_event **to_host)
{
    size_t to_host_count = collect_to_host(recording, to_host), count = 0;

    for (size_t i = 0; i < recording->event_count; i++)
        if (recording->events[i].kind == DUET_EVENT_COPY)
            count += add_waits(&recording->events[i], to_host, to_host_count, waits + count);
    qsort(waits, count, sizeof(*waits), by_end);
    return count;
}

/* Adds a stretch behind the others; one without length is nothing. */
static void push(struct line *line, enum duet_part part, double start_s, double end_s)
{
    struct stretch *stretch = &line->stretches[line->count];

    if (!(end_s > start_s))
        return;
    *stretch = (struct stretch){.start_s = start_s, .end_s = end_s, .part = part};
    if (line->count) {
        const struct stretch *before = stretch - 1;

        for (unsigned i = 0; i < DIRECTIONS; i++)
            stretch->before_s[i] = before->before_s[i];
        stretch->before_s[before->part - FIRST] += before->end_s - before->start_s;
    }
    line->count++;
}

/*
 * Of several copies that are waited for at once, the one that ends last is what keeps the kernel
 * waiting. They come in this order, so that each takes what it covers from those before it.
 */
static void paint(struct line *line, const struct wait *wait)
{
    while (line->count && line->stretches[line->count - 1].start_s >= wait->start_s)
        line->count--;
    if (line->count) {
        struct stretch *last = &line->stretches[line->count - 1];

        last->end_s = fmin(last->end_s, wait->start_s);
    }
    push(line, wait->part, wait->start_s, wait->end_s);
}

/* Seconds of each direction from the beginning to `date_s`. */
static void seconds_until(const struct line *line, double date_s, double seconds[DIRECTIONS])
{
    size_t low = 0, high = line->count;
    const struct stretch *last;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (line->stretches[middle].start_s < date_s)
            low = middle + 1;
        else
            high = middle;
    }
    for (unsigned i = 0; i < DIRECTIONS; i++)
        seconds[i] = 0;
    if (!low)
        return;
    last = &line->stretches[low - 1];
    for (unsigned i = 0; i < DIRECTIONS; i++)
        seconds[i] = last->before_s[i];
    seconds[last->part - FIRST] += fmin(date_s, last->end_s) - last->start_s;
}

static void divide(struct duet__sweep *sweep, const struct duet__gap *gap, const struct line *line)
{
    double before[DIRECTIONS], until[DIRECTIONS], left_s = gap->end_s - gap->start_s;

    seconds_until(line, gap->start_s, before);
    seconds_until(line, gap->end_s, until);
    for (unsigned i = 0; i < DIRECTIONS; i++) {
        double seconds = fmin(fmax(until[i] - before[i], 0), left_s);

        sweep->parts_s[FIRST + i] += seconds;
        left_s -= seconds;
    }
    sweep->parts_s[DUET_PART_OVERHEAD] += left_s;
}

/* All gaps, memory by memory in order of their ends, beside the copies that have ended by then. */
static void divide_all(struct duet__sweep *sweep, const struct wait *waits, size_t wait_count,
                       struct line *line)
{
    size_t next = 0;

    for (size_t i = 0; i < sweep->gap_count; i++) {
        const struct duet__gap *gap = &sweep->gaps[i];

        if (!i || gap->node != gap[-1].node)
            line->count = 0;
        while (next < wait_count && waits[next].node < gap->node)
            next++;
        while (next < wait_count && waits[next].node == gap->node &&
               waits[next].last_s <= gap->end_s + resolution_s)
            paint(line, &waits[next++]);
        divide(sweep, gap, line);
    }
}

int duet__account_waits(struct duet__sweep *sweep)
{
    const struct duet_recording *recording = sweep->recording;
    size_t most = recording->event_count + 1;
    const struct duet_event **to_host = calloc(most, sizeof(*to_host));
    struct wait *waits = calloc(2 * most, sizeof(*waits));
    struct line line = {.stretches = calloc(2 * most, sizeof(*line.stretches))};
    int error = DUET_ENOMEM;

    if (to_host && waits && line.stretches) {
        size_t count = collect_waits(recording, waits, to_host);

        qsort(sweep->gaps, sweep->gap_count, sizeof(*sweep->gaps), by_gap_end);
        divide_all(sweep, waits, count, &line);
        error = 0;
    }
    free((void *)to_host);
    free(waits);
    free(line.stretches);
    return error;
}
