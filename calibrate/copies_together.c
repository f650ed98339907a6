/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies of two pairs of memories at the same time: a task at each destination that reads several
 * handles, which are all fetched at once. What counts is copies that the other pair's copies have
 * surrounded.
 */
#include <math.h>
#include <stdlib.h>

#include <glib.h>

#include "calibrate/copying.h"

enum {
    COPIES = 5, /* of a pair */
    REPETITIONS = 2,
    ATTEMPTS = 6, /* where the two have missed each other */
    LARGEST = 1 << 24,
    PAGE = 4096,
};

static const double GOAL_S = 1.5e-3; /* of one copy alone: long beside its latency */

/* What one pair copies. */
struct side {
    const struct duet__pair *pair;
    struct duet_access accesses[COPIES];
    double begin_s, end_s; /* of all its copies */
    double bytes, seconds; /* of those that count */
};

struct beside {
    struct duet__copying *copying;
    struct side sides[2];
};

static size_t size_of(const struct duet__copying *copying, const struct duet__pair *pair)
{
    double bytes = fmin(GOAL_S * pair->bandwidth_Bps, LARGEST);
    bytes = fmin(bytes, (double)duet__copies_most(copying, COPIES));
    bytes = fmin(bytes, (double)copying->memory_bytes / (2 * COPIES));
    return bytes > PAGE ? (size_t)bytes / PAGE * PAGE : PAGE;
}

static int make_side(struct beside *beside, unsigned which)
{
    struct duet__copying *copying = beside->copying;
    struct side *side = &beside->sides[which];
    size_t bytes = size_of(copying, side->pair);
    char *memory = copying->memory + which * (copying->memory_bytes / 2);
    for (unsigned i = 0; i < COPIES; i++) {
        int error = duet_vector(copying->lab.runtime, memory + i * bytes, bytes, 1,
                                &side->accesses[i].handle);
        if (error)
            return duet__lab_fail(&copying->lab, error);
    }
    return DUET_OK;
}

static int submit(struct beside *beside, struct side *side, bool write)
{
    struct duet__copying *copying = beside->copying;
    unsigned node = write ? side->pair->source : side->pair->destination;
    for (unsigned i = 0; i < COPIES; i++)
        side->accesses[i].mode = write ? DUET_W : DUET_R;
    return duet__lab_submit(&copying->lab, write ? copying->lab.fill : copying->lab.empty,
                            duet__copies_worker(copying, node), side->accesses, COPIES, NULL, 0);
}

/* The host's worker is the application's thread: what it fetches begins with the wait, and both
   pairs to the host go into one task, since it takes one after the other. */
static int submit_reads(struct beside *beside)
{
    struct side *first = &beside->sides[0], *second = &beside->sides[1];
    struct duet__copying *copying = beside->copying;
    if (first->pair->destination == DUET_HOST && second->pair->destination == DUET_HOST) {
        struct duet_access both[2 * COPIES];
        for (unsigned i = 0; i < COPIES; i++) {
            both[2 * i] = (struct duet_access){first->accesses[i].handle, DUET_R};
            both[2 * i + 1] = (struct duet_access){second->accesses[i].handle, DUET_R};
        }
        return duet__lab_submit(&copying->lab, copying->lab.empty, 0, both, 2 * COPIES, NULL, 0);
    }
    int error = submit(beside, first, false);
    return error ? error : submit(beside, second, false);
}

static bool is_of(const struct side *side, const struct duet_event *event)
{
    return event->kind == DUET_EVENT_COPY && event->source == side->pair->source &&
           event->destination == side->pair->destination;
}

/* When this side copied. */
static void find_span(struct side *side, const struct duet_event *events, size_t count)
{
    side->begin_s = INFINITY;
    side->end_s = 0;
    for (size_t i = 0; i < count; i++) {
        if (!is_of(side, &events[i]))
            continue;
        side->begin_s = fmin(side->begin_s, events[i].start_s);
        side->end_s = fmax(side->end_s, events[i].end_s);
    }
}

/* Adds the copies that the other side has surrounded. */
static void add_surrounded(struct side *side, const struct side *other,
                           const struct duet_event *events, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const struct duet_event *copy = &events[i];
        if (!is_of(side, copy) || copy->start_s < other->begin_s || copy->end_s > other->end_s)
            continue;
        side->bytes += (double)copy->bytes;
        side->seconds += copy->end_s - copy->start_s - side->pair->latency_s;
    }
}

static int measure_once(struct beside *beside)
{
    struct duet__lab *lab = &beside->copying->lab;
    struct side *first = &beside->sides[0], *second = &beside->sides[1];
    struct duet_event *events = NULL;
    size_t count = 0;
    int error = duet__lab_stop(&beside->copying->budget, lab->message);
    if (!error)
        error = submit(beside, first, true);
    if (!error)
        error = submit(beside, second, true);
    int waited = duet__lab_wait(lab);
    error = error ? error : waited;
    if (error)
        return error;
    duet_stats_reset(lab->runtime);
    error = submit_reads(beside);
    waited = duet__lab_events(lab, &events, &count);
    error = error ? error : waited;
    if (!error) {
        find_span(first, events, count);
        find_span(second, events, count);
        add_surrounded(first, second, events, count);
        add_surrounded(second, first, events, count);
    }
    free(events);
    return error;
}

static int free_side(struct beside *beside, struct side *side)
{
    int error = DUET_OK;
    for (unsigned i = 0; i < COPIES; i++) {
        struct duet_handle *handle = side->accesses[i].handle;
        int freed = handle ? duet_unregister(beside->copying->lab.runtime, handle) : DUET_OK;
        if (freed && !error)
            error = duet__lab_fail(&beside->copying->lab, freed);
    }
    return error;
}

/* Bytes a second; where no copy was surrounded, one side had ended before the other began. */
static double rate(const struct side *side)
{
    return side->bytes > 0 && side->seconds > 0 ? side->bytes / side->seconds
                                                : side->pair->bandwidth_Bps;
}

static int measure_two(struct duet__copying *copying, size_t first, size_t second)
{
    struct duet__copies *out = copying->out;
    struct beside beside = {
        .copying = copying,
        .sides = {{.pair = &out->pairs[first]}, {.pair = &out->pairs[second]}},
    };
    int error = make_side(&beside, 0);
    if (!error)
        error = make_side(&beside, 1);
    for (unsigned i = 0; i < ATTEMPTS && !error; i++) {
        const struct side *sides = beside.sides;
        if (i >= REPETITIONS && sides[0].bytes > 0 && sides[1].bytes > 0)
            break;
        error = measure_once(&beside);
    }
    for (unsigned i = 0; i < 2; i++) {
        int freed = free_side(&beside, &beside.sides[i]);
        error = error ? error : freed;
    }
    if (!error)
        out->together[out->together_count++] =
            (struct duet__together){.first = first,
                                    .second = second,
                                    .first_Bps = rate(&beside.sides[0]),
                                    .second_Bps = rate(&beside.sides[1])};
    return error;
}

int duet__copies_beside(struct duet__copying *copying)
{
    struct duet__copies *out = copying->out;
    unsigned nodes = out->node_count;
    int error = DUET_OK;
    out->together = g_new0(struct duet__together, (gsize)nodes * nodes);
    for (unsigned a = 1; a < nodes && !error; a++) {
        size_t in = duet__copies_find(out, DUET_HOST, a),
               back = duet__copies_find(out, a, DUET_HOST);
        error = measure_two(copying, in, back);
        for (unsigned b = a + 1; b < nodes && !error; b++) {
            error = measure_two(copying, in, duet__copies_find(out, DUET_HOST, b));
            if (!error)
                error = measure_two(copying, back, duet__copies_find(out, b, DUET_HOST));
        }
    }
    return error;
}
