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

static void make_side(struct beside *beside, unsigned which)
{
    struct duet__copying *copying = beside->copying;
    struct side *side = &beside->sides[which];
    size_t bytes = size_of(copying, side->pair);
    char *memory = copying->memory + which * (copying->memory_bytes / 2);
    for (unsigned i = 0; i < COPIES; i++)
        side->accesses[i].handle = duet__lab_vector(&copying->lab, memory + i * bytes, bytes);
}

static void submit(struct beside *beside, struct side *side, bool write)
{
    struct duet__copying *copying = beside->copying;
    unsigned node = write ? side->pair->source : side->pair->destination;
    for (unsigned i = 0; i < COPIES; i++)
        side->accesses[i].mode = write ? DUET_W : DUET_R;
    duet__lab_submit(&copying->lab, write ? copying->lab.fill : copying->lab.empty,
                     duet__copies_worker(copying, node), side->accesses, COPIES);
}

/* The host's worker is the application's thread: what it fetches begins with the wait, and both
   pairs to the host go into one task, since it takes one after the other. */
static void submit_reads(struct beside *beside)
{
    struct side *first = &beside->sides[0], *second = &beside->sides[1];
    struct duet__lab *lab = &beside->copying->lab;
    if (first->pair->destination == DUET_HOST && second->pair->destination == DUET_HOST) {
        struct duet_access both[2 * COPIES];
        for (unsigned i = 0; i < COPIES; i++) {
            both[2 * i] = (struct duet_access){first->accesses[i].handle, DUET_R};
            both[2 * i + 1] = (struct duet_access){second->accesses[i].handle, DUET_R};
        }
        duet__lab_submit(lab, lab->empty, 0, both, 2 * COPIES);
        return;
    }
    submit(beside, first, false);
    submit(beside, second, false);
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

static void measure_once(struct beside *beside)
{
    struct duet__lab *lab = &beside->copying->lab;
    struct side *first = &beside->sides[0], *second = &beside->sides[1];
    struct duet_event *events;
    size_t count;
    submit(beside, first, true);
    submit(beside, second, true);
    duet__lab_wait(lab);
    duet_stats_reset(lab->runtime);
    submit_reads(beside);
    count = duet__lab_events(lab, &events);
    find_span(first, events, count);
    find_span(second, events, count);
    add_surrounded(first, second, events, count);
    add_surrounded(second, first, events, count);
    free(events);
}

/* Bytes a second; where no copy was surrounded, one side had ended before the other began. */
static double rate(const struct side *side)
{
    return side->bytes > 0 && side->seconds > 0 ? side->bytes / side->seconds
                                                : side->pair->bandwidth_Bps;
}

static void measure_two(struct duet__copying *copying, size_t first, size_t second)
{
    struct duet__copies *out = copying->out;
    struct beside beside = {
        .copying = copying,
        .sides = {{.pair = &out->pairs[first]}, {.pair = &out->pairs[second]}},
    };
    const struct side *sides = beside.sides;
    make_side(&beside, 0);
    make_side(&beside, 1);
    for (unsigned i = 0; i < ATTEMPTS && duet__lab_goes_on(&copying->lab); i++) {
        if (i >= REPETITIONS && sides[0].bytes > 0 && sides[1].bytes > 0)
            break;
        measure_once(&beside);
    }
    for (unsigned i = 0; i < 2 * COPIES; i++)
        duet__lab_forget(&copying->lab, sides[i / COPIES].accesses[i % COPIES].handle);
    out->together[out->together_count++] = (struct duet__together){.first = first,
                                                                   .second = second,
                                                                   .first_Bps = rate(&sides[0]),
                                                                   .second_Bps = rate(&sides[1])};
}

void duet__copies_beside(struct duet__copying *copying)
{
    struct duet__copies *out = copying->out;
    unsigned nodes = out->node_count;
    out->together = g_new0(struct duet__together, (gsize)nodes * nodes);
    for (unsigned a = 1; a < nodes; a++) {
        size_t in = duet__copies_find(out, DUET_HOST, a),
               back = duet__copies_find(out, a, DUET_HOST);
        measure_two(copying, in, back);
        for (unsigned b = a + 1; b < nodes; b++) {
            measure_two(copying, in, duet__copies_find(out, DUET_HOST, b));
            measure_two(copying, back, duet__copies_find(out, b, DUET_HOST));
        }
    }
}
