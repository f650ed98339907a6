/* SPDX-License-Identifier: Apache-2.0 */
/* Flows that share links. */
#include "core/fluid.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

static const double PRECISION_S = 1e-12; /* ends that are so near are one */

enum { POOLS = 16 /* flows of fewer links are kept for reuse */ };

/* A flow on one of its links. */
struct hop {
    struct duet__stream *stream;
    struct link *link;
    struct hop *next, *prev; /* others on the link */
};

struct link {
    double bandwidth_Bps;
    struct hop *hops;
    unsigned count; /* flows on it */
    bool dirty;     /* is in fluid->dirty */
    uint64_t pass;  /* last pass that has found it */
    /* scratch of a pass: bandwidth that is not given away, flows without a rate */
    double left_Bps;
    unsigned open;
};

struct duet__stream {
    void *tag;
    double limit_Bps, rate_Bps; /* rate 0: not known yet */
    double bytes, since_s;      /* bytes that were left at a date */
    double end_s;
    size_t place;    /* in the heap */
    uint64_t number; /* order of their beginning */
    uint64_t pass;
    double share_Bps; /* scratch of a pass */
    unsigned count;
    struct duet__stream *next; /* of the pool, of the pass */
    struct hop hops[];
};

struct duet__fluid {
    struct link *links;
    size_t link_count;
    struct link **dirty; /* links with flows that have begun or ended since the last pass */
    size_t dirty_count;
    struct link **found; /* links of a pass */
    size_t found_count;
    struct duet__stream *met, **met_end; /* flows of a pass */
    struct duet__stream **heap;          /* by end */
    size_t count, capacity;
    struct duet__stream *pools[POOLS]; /* by number of links */
    uint64_t pass, number;
    double now_s; /* date of the last change */
};

int duet__fluid_new(struct duet__fluid **out, const double *bandwidth_Bps, size_t count)
{
    struct duet__fluid *fluid = *out = calloc(1, sizeof *fluid);
    if (!fluid)
        return DUET_ENOMEM;
    fluid->links = calloc(count + 1, sizeof *fluid->links);
    fluid->dirty = calloc(count + 1, sizeof(struct link *));
    fluid->found = calloc(count + 1, sizeof(struct link *));
    if (!fluid->links || !fluid->dirty || !fluid->found) {
        duet__fluid_free(fluid);
        *out = NULL;
        return DUET_ENOMEM;
    }
    fluid->link_count = count;
    for (size_t i = 0; i < count; i++)
        fluid->links[i].bandwidth_Bps = bandwidth_Bps[i];
    return DUET_OK;
}

void duet__fluid_free(struct duet__fluid *fluid)
{
    if (!fluid)
        return;
    for (size_t i = 0; i < fluid->count; i++)
        free(fluid->heap[i]);
    for (size_t i = 0; i < POOLS; i++)
        while (fluid->pools[i]) {
            struct duet__stream *next = fluid->pools[i]->next;
            free(fluid->pools[i]);
            fluid->pools[i] = next;
        }
    free(fluid->heap);
    free(fluid->links);
    free(fluid->dirty);
    free(fluid->found);
    free(fluid);
}

/* ------------------------------------------------------------------------------------------- */
/* The heap of ends                                                                             */

static bool ends_before(const struct duet__stream *a, const struct duet__stream *b)
{
    return a->end_s < b->end_s || (a->end_s == b->end_s && a->number < b->number);
}

static void put(struct duet__fluid *fluid, struct duet__stream *stream, size_t place)
{
    fluid->heap[place] = stream;
    stream->place = place;
}

static void sift_up(struct duet__fluid *fluid, struct duet__stream *stream)
{
    size_t place = stream->place;
    for (; place && ends_before(stream, fluid->heap[(place - 1) / 2]); place = (place - 1) / 2)
        put(fluid, fluid->heap[(place - 1) / 2], place);
    put(fluid, stream, place);
}

static void sift_down(struct duet__fluid *fluid, struct duet__stream *stream)
{
    size_t place = stream->place;
    for (size_t child; (child = 2 * place + 1) < fluid->count; place = child) {
        if (child + 1 < fluid->count && ends_before(fluid->heap[child + 1], fluid->heap[child]))
            child++;
        if (!ends_before(fluid->heap[child], stream))
            break;
        put(fluid, fluid->heap[child], place);
    }
    put(fluid, stream, place);
}

static void set_end(struct duet__fluid *fluid, struct duet__stream *stream, double end_s)
{
    bool earlier = end_s < stream->end_s;
    stream->end_s = end_s;
    if (earlier)
        sift_up(fluid, stream);
    else
        sift_down(fluid, stream);
}

static void take_off(struct duet__fluid *fluid, struct duet__stream *stream)
{
    struct duet__stream *last = fluid->heap[--fluid->count];
    if (last == stream)
        return;
    put(fluid, last, stream->place);
    sift_up(fluid, last);
    sift_down(fluid, last);
}

/* ------------------------------------------------------------------------------------------- */
/* Flows begin and end                                                                          */

static void mark(struct duet__fluid *fluid, struct link *link)
{
    if (!link->dirty)
        fluid->dirty[fluid->dirty_count++] = link;
    link->dirty = true;
}

static struct duet__stream *new_stream(struct duet__fluid *fluid, unsigned count)
{
    struct duet__stream *stream = count < POOLS ? fluid->pools[count] : NULL;
    if (fluid->count == fluid->capacity) {
        size_t capacity = 2 * fluid->capacity + 64;
        struct duet__stream **heap = realloc(fluid->heap, capacity * sizeof *heap);
        if (!heap)
            return NULL;
        fluid->heap = heap;
        fluid->capacity = capacity;
    }
    if (stream)
        fluid->pools[count] = stream->next;
    else
        stream = malloc(sizeof *stream + count * sizeof(struct hop));
    return stream;
}

struct duet__stream *duet__fluid_begin(struct duet__fluid *fluid, const unsigned *links,
                                       unsigned count, double limit_Bps, double bytes, double date,
                                       void *tag)
{
    struct duet__stream *stream = new_stream(fluid, count);
    if (!stream)
        return NULL;
    *stream = (struct duet__stream){.tag = tag,
                                    .limit_Bps = limit_Bps,
                                    .bytes = bytes,
                                    .since_s = date,
                                    .end_s = INFINITY,
                                    .number = fluid->number++,
                                    .place = fluid->count,
                                    .count = count};
    for (unsigned i = 0; i < count; i++) {
        struct link *link = &fluid->links[links[i]];
        struct hop *hop = &stream->hops[i];
        *hop = (struct hop){.stream = stream, .link = link, .next = link->hops};
        if (link->hops)
            link->hops->prev = hop;
        link->hops = hop;
        link->count++;
        mark(fluid, link);
    }
    fluid->now_s = date;
    fluid->heap[fluid->count++] = stream; /* INFINITY: it stays last */
    if (!count)
        set_end(fluid, stream, date + bytes / limit_Bps);
    return stream;
}

void *duet__fluid_end(struct duet__fluid *fluid, double date)
{
    struct duet__stream *stream = fluid->count ? fluid->heap[0] : NULL;
    if (!stream || !(stream->end_s < date + PRECISION_S))
        return NULL;
    take_off(fluid, stream);
    fluid->now_s = date;
    for (unsigned i = 0; i < stream->count; i++) {
        struct hop *hop = &stream->hops[i];
        if (hop->next)
            hop->next->prev = hop->prev;
        if (hop->prev)
            hop->prev->next = hop->next;
        else
            hop->link->hops = hop->next;
        hop->link->count--;
        mark(fluid, hop->link);
    }
    void *tag = stream->tag;
    if (stream->count < POOLS) {
        stream->next = fluid->pools[stream->count];
        fluid->pools[stream->count] = stream;
    } else {
        free(stream);
    }
    return tag;
}

/* ------------------------------------------------------------------------------------------- */
/* Rates                                                                                        */

static void find_link(struct duet__fluid *fluid, struct link *link)
{
    if (link->pass == fluid->pass)
        return;
    link->pass = fluid->pass;
    link->left_Bps = link->bandwidth_Bps;
    link->open = link->count;
    fluid->found[fluid->found_count++] = link;
}

/* Finds the links and flows that hang together with the changed links. */
static void find_changed(struct duet__fluid *fluid)
{
    fluid->pass++;
    fluid->found_count = 0;
    fluid->met_end = &fluid->met;
    for (size_t i = 0; i < fluid->dirty_count; i++) {
        fluid->dirty[i]->dirty = false;
        find_link(fluid, fluid->dirty[i]);
    }
    fluid->dirty_count = 0;
    for (size_t i = 0; i < fluid->found_count; i++)
        for (struct hop *hop = fluid->found[i]->hops; hop; hop = hop->next) {
            struct duet__stream *stream = hop->stream;
            if (stream->pass == fluid->pass)
                continue;
            stream->pass = fluid->pass;
            *fluid->met_end = stream;
            fluid->met_end = &stream->next;
            for (unsigned k = 0; k < stream->count; k++)
                find_link(fluid, stream->hops[k].link);
        }
    *fluid->met_end = NULL;
}

/* Gives a flow its rate, from now on, and takes it off its links. */
static void set_rate(struct duet__fluid *fluid, struct duet__stream *stream, double rate_Bps)
{
    for (unsigned i = 0; i < stream->count; i++) {
        stream->hops[i].link->left_Bps -= rate_Bps;
        stream->hops[i].link->open--;
    }
    if (rate_Bps == stream->rate_Bps)
        return;
    stream->bytes -= (fluid->now_s - stream->since_s) * stream->rate_Bps;
    stream->since_s = fluid->now_s;
    stream->rate_Bps = rate_Bps;
    set_end(fluid, stream, fluid->now_s + fmax(0, stream->bytes / rate_Bps));
}

/* Returns the share of a flow: that of its narrowest link, if all flows there get equal ones. */
static double share_of(const struct duet__stream *stream)
{
    double share = stream->limit_Bps;
    for (unsigned i = 0; i < stream->count; i++) {
        const struct link *link = stream->hops[i].link;
        share = fmin(share, link->left_Bps / link->open);
    }
    return share;
}

/*
 * Sets the rates of the flows that hang together with what has changed: the narrowest links give
 * equal shares first, then the rest is shared in the same way.
 */
static void share_links(struct duet__fluid *fluid)
{
    find_changed(fluid);
    while (fluid->met) {
        double level_Bps = INFINITY;
        for (struct duet__stream *stream = fluid->met; stream; stream = stream->next) {
            stream->share_Bps = share_of(stream);
            level_Bps = fmin(level_Bps, stream->share_Bps);
        }
        for (struct duet__stream **at = &fluid->met; *at;) {
            struct duet__stream *stream = *at;
            if (stream->share_Bps > level_Bps * (1 + 1e-12)) {
                at = &stream->next;
                continue;
            }
            *at = stream->next;
            set_rate(fluid, stream, level_Bps);
        }
    }
}

double duet__fluid_next(struct duet__fluid *fluid)
{
    if (fluid->dirty_count)
        share_links(fluid);
    return fluid->count ? fluid->heap[0]->end_s : INFINITY;
}
