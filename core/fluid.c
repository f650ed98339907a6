/* SPDX-License-Identifier: Apache-2.0 */
/* Flows that share links. */
#include "core/fluid.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

static const double PRECISION_S = 1e-12; /* ends that are so near are one */

enum { POOLS = 16 /* the memory of ended flows over fewer links is used again */ };
static const size_t NOWHERE = SIZE_MAX; /* place of a flow that has not begun */

/* A flow on one of its links. */
struct hop {
    struct duet__fluid_flow *flow;
    struct link *link;
    struct hop *next, *prev; /* others on the link */
};

struct link {
    double bandwidth_Bps;
    struct hop *hops;
    unsigned count; /* flows on it */
    bool dirty;     /* is in fluid->dirty */
    uint64_t pass;  /* last pass that has found it */
    /* during a pass, which sets rates: bandwidth that no flow has yet, what each flow without a
       rate would get of it (to be computed anew if `moved`), number of such flows */
    double left_Bps, share_Bps;
    unsigned open;
    bool moved;
};

struct duet__fluid_flow {
    void *tag;
    double limit_Bps, rate_Bps; /* rate 0: not known yet */
    double bytes, since_s;      /* bytes that were left at a date */
    double end_s;
    size_t place;    /* in the heap, or NOWHERE */
    uint64_t number; /* order of their beginning */
    uint64_t pass;
    bool shared;                   /* during a pass: its rate is known */
    unsigned count;                /* hops */
    struct duet__fluid_flow *next; /* in a pool, or in the list of those with limits */
    struct hop hops[];
};

struct duet__fluid {
    struct link *links;
    size_t link_count;
    struct link **dirty; /* links with flows that have begun or ended since the last pass; during
                            a pass: narrow ones */
    size_t dirty_count;
    struct link **found; /* links of a pass */
    size_t found_count;
    struct duet__fluid_flow *limited; /* flows of a pass that have limits */
    struct duet__fluid_flow **heap;   /* by end */
    size_t count, capacity, made;     /* flows in the heap, its room, flows in it or not begun */
    /* flows that have ended, by number of links; the last ones are freed when another is made */
    struct duet__fluid_flow *pools[POOLS + 1];
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

static void empty_pool(struct duet__fluid *fluid, unsigned pool)
{
    while (fluid->pools[pool]) {
        struct duet__fluid_flow *next = fluid->pools[pool]->next;
        free(fluid->pools[pool]);
        fluid->pools[pool] = next;
    }
}

void duet__fluid_free(struct duet__fluid *fluid)
{
    if (!fluid)
        return;
    for (size_t i = 0; i < fluid->count; i++)
        free(fluid->heap[i]);
    for (unsigned i = 0; i <= POOLS; i++)
        empty_pool(fluid, i);
    free(fluid->heap);
    free(fluid->links);
    free(fluid->dirty);
    free(fluid->found);
    free(fluid);
}

/* ------------------------------------------------------------------------------------------- */
/* The heap of ends                                                                             */

static bool ends_before(const struct duet__fluid_flow *a, const struct duet__fluid_flow *b)
{
    return a->end_s < b->end_s || (a->end_s == b->end_s && a->number < b->number);
}

static void put(struct duet__fluid *fluid, struct duet__fluid_flow *flow, size_t place)
{
    fluid->heap[place] = flow;
    flow->place = place;
}

static void sift_up(struct duet__fluid *fluid, struct duet__fluid_flow *flow)
{
    size_t place = flow->place;
    for (; place && ends_before(flow, fluid->heap[(place - 1) / 2]); place = (place - 1) / 2)
        put(fluid, fluid->heap[(place - 1) / 2], place);
    put(fluid, flow, place);
}

static void sift_down(struct duet__fluid *fluid, struct duet__fluid_flow *flow)
{
    size_t place = flow->place;
    for (size_t child; (child = 2 * place + 1) < fluid->count; place = child) {
        if (child + 1 < fluid->count && ends_before(fluid->heap[child + 1], fluid->heap[child]))
            child++;
        if (!ends_before(fluid->heap[child], flow))
            break;
        put(fluid, fluid->heap[child], place);
    }
    put(fluid, flow, place);
}

static void set_end(struct duet__fluid *fluid, struct duet__fluid_flow *flow, double end_s)
{
    bool earlier = end_s < flow->end_s;
    flow->end_s = end_s;
    if (earlier)
        sift_up(fluid, flow);
    else
        sift_down(fluid, flow);
}

static void take_off(struct duet__fluid *fluid, struct duet__fluid_flow *flow)
{
    struct duet__fluid_flow *last = fluid->heap[--fluid->count];
    if (last == flow)
        return;
    put(fluid, last, flow->place);
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

unsigned duet__fluid_route(const struct duet_machine *machine, const struct duet_route *route,
                           unsigned *links, double *limit_Bps)
{
    unsigned count = 0;
    *limit_Bps = INFINITY;
    for (unsigned i = 0; i < route->count; i++) {
        const struct duet_link *link = &machine->links[route->links[i]];
        if (!link->per_copy)
            links[count++] = route->links[i];
        else if (link->bandwidth_Bps < *limit_Bps)
            *limit_Bps = link->bandwidth_Bps;
    }
    return count;
}

struct duet__fluid_flow *duet__fluid_flow_new(struct duet__fluid *fluid, const unsigned *links,
                                              unsigned count, double limit_Bps, void *tag)
{
    struct duet__fluid_flow *flow = count < POOLS ? fluid->pools[count] : NULL;
    empty_pool(fluid, POOLS);
    if (fluid->made == fluid->capacity) {
        size_t capacity = 2 * fluid->capacity + 64;
        struct duet__fluid_flow **heap = realloc(fluid->heap, capacity * sizeof *heap);
        if (!heap)
            return NULL;
        fluid->heap = heap;
        fluid->capacity = capacity;
    }
    if (flow)
        fluid->pools[count] = flow->next;
    else if (!(flow = malloc(sizeof *flow + count * sizeof(struct hop))))
        return NULL;
    *flow = (struct duet__fluid_flow){.tag = tag,
                                      .limit_Bps = limit_Bps,
                                      .end_s = INFINITY,
                                      .place = NOWHERE,
                                      .count = count};
    for (unsigned i = 0; i < count; i++)
        flow->hops[i] = (struct hop){.flow = flow, .link = &fluid->links[links[i]]};
    fluid->made++;
    return flow;
}

void duet__fluid_begin(struct duet__fluid *fluid, struct duet__fluid_flow *flow, double bytes,
                       double date)
{
    flow->bytes = bytes;
    flow->since_s = fluid->now_s = date;
    flow->number = fluid->number++;
    flow->place = fluid->count;
    fluid->heap[fluid->count++] = flow; /* without an end yet: it is the last one */
    for (struct hop *hop = flow->hops; hop < flow->hops + flow->count; hop++) {
        hop->next = hop->link->hops;
        if (hop->next)
            hop->next->prev = hop;
        hop->link->hops = hop;
        hop->link->count++;
        mark(fluid, hop->link);
    }
    if (!flow->count)
        set_end(fluid, flow, date + bytes / flow->limit_Bps);
}

void duet__fluid_drop(struct duet__fluid *fluid, struct duet__fluid_flow *flow, double date)
{
    if (flow->place != NOWHERE) {
        take_off(fluid, flow);
        fluid->now_s = date;
        for (struct hop *hop = flow->hops; hop < flow->hops + flow->count; hop++) {
            if (hop->next)
                hop->next->prev = hop->prev;
            if (hop->prev)
                hop->prev->next = hop->next;
            else
                hop->link->hops = hop->next;
            if (--hop->link->count)
                mark(fluid, hop->link);
        }
    }
    fluid->made--;
    const unsigned pool = flow->count < POOLS ? flow->count : POOLS;
    flow->next = fluid->pools[pool];
    fluid->pools[pool] = flow;
}

struct duet__fluid_flow *duet__fluid_end(struct duet__fluid *fluid, double date)
{
    struct duet__fluid_flow *flow = fluid->count ? fluid->heap[0] : NULL;
    if (!flow || !(flow->end_s <= date || flow->end_s < date + PRECISION_S))
        return NULL;
    duet__fluid_drop(fluid, flow, date);
    return flow;
}

void *duet__fluid_flow_tag(const struct duet__fluid_flow *flow)
{
    return flow->tag;
}

double duet__fluid_flow_end_s(const struct duet__fluid_flow *flow)
{
    return flow->end_s;
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
    link->moved = true;
    fluid->found[fluid->found_count++] = link;
}

/*
 * Finds the links of a flow. Links that it has for itself are left out if another one is no wider:
 * what others take of that leaves less than these have.
 */
static void find_links(struct duet__fluid *fluid, const struct duet__fluid_flow *flow)
{
    double own_Bps = INFINITY, common_Bps = INFINITY;
    for (const struct hop *hop = flow->hops; hop < flow->hops + flow->count; hop++) {
        double *least_Bps = hop->link->count == 1 ? &own_Bps : &common_Bps;
        *least_Bps = hop->link->bandwidth_Bps < *least_Bps ? hop->link->bandwidth_Bps : *least_Bps;
    }
    for (const struct hop *hop = flow->hops; hop < flow->hops + flow->count; hop++)
        if (hop->link->count > 1 || own_Bps < common_Bps)
            find_link(fluid, hop->link);
}

/* Finds the links and flows that hang together with the changed links. Returns the number of flows;
 * those with limits are fluid->limited. */
static size_t find_changed(struct duet__fluid *fluid)
{
    size_t flows = 0;
    fluid->pass++;
    fluid->found_count = 0;
    fluid->limited = NULL;
    for (size_t i = 0; i < fluid->dirty_count; i++) {
        fluid->dirty[i]->dirty = false;
        find_link(fluid, fluid->dirty[i]);
    }
    fluid->dirty_count = 0;
    for (size_t i = 0; i < fluid->found_count; i++)
        for (struct hop *hop = fluid->found[i]->hops; hop; hop = hop->next) {
            struct duet__fluid_flow *flow = hop->flow;
            if (flow->pass == fluid->pass)
                continue;
            flow->pass = fluid->pass;
            flow->shared = false;
            flows++;
            if (flow->limit_Bps < INFINITY) {
                flow->next = fluid->limited;
                fluid->limited = flow;
            }
            find_links(fluid, flow);
        }
    return flows;
}

/* Gives a flow its rate, from now on, and takes it off its links. */
static void set_rate(struct duet__fluid *fluid, struct duet__fluid_flow *flow, double rate_Bps)
{
    flow->shared = true;
    for (unsigned i = 0; i < flow->count; i++) {
        struct link *link = flow->hops[i].link;
        link->left_Bps -= rate_Bps;
        link->open--;
        link->moved = true;
    }
    if (rate_Bps == flow->rate_Bps)
        return;
    flow->bytes -= (fluid->now_s - flow->since_s) * flow->rate_Bps;
    flow->since_s = fluid->now_s;
    flow->rate_Bps = rate_Bps;
    set_end(fluid, flow, fluid->now_s + fmax(0, flow->bytes / rate_Bps));
}

/* Returns the highest share that counts as equal to this one. */
static double most_of(double share_Bps)
{
    return share_Bps + fabs(share_Bps) * 1e-12;
}

/*
 * Returns the least of the equal shares that links and limits give to flows without a rate. Links
 * without such flows are left out from now on. *narrow: the number of links, in fluid->dirty, of
 * which some give no more than that.
 */
static double least_share(struct duet__fluid *fluid, size_t *narrow)
{
    double least_Bps = INFINITY, most_Bps = INFINITY;
    *narrow = 0;
    for (size_t i = 0; i < fluid->found_count;) {
        struct link *link = fluid->found[i];
        if (!link->open) {
            fluid->found[i] = fluid->found[--fluid->found_count];
            continue;
        }
        if (link->moved)
            link->share_Bps = link->left_Bps / link->open;
        link->moved = false;
        i++;
        if (link->share_Bps > most_Bps)
            continue;
        if (link->share_Bps < least_Bps) {
            most_Bps = most_of(link->share_Bps);
            *narrow = most_Bps < least_Bps ? 0 : *narrow;
            least_Bps = link->share_Bps;
        }
        fluid->dirty[(*narrow)++] = link;
    }
    for (const struct duet__fluid_flow *flow = fluid->limited; flow; flow = flow->next)
        if (!flow->shared && flow->limit_Bps < least_Bps)
            least_Bps = flow->limit_Bps;
    return least_Bps;
}

/*
 * Sets the rate of a flow that shares no link, if all changed links are its links. Returns false if
 * there is none.
 */
static bool set_alone(struct duet__fluid *fluid)
{
    struct duet__fluid_flow *flow = fluid->dirty[0]->hops ? fluid->dirty[0]->hops->flow : NULL;
    double rate_Bps = flow ? flow->limit_Bps : 0;
    size_t dirty = 0;
    for (unsigned i = 0; flow && i < flow->count; i++) {
        const struct link *link = flow->hops[i].link;
        if (link->count > 1)
            return false;
        dirty += link->dirty;
        rate_Bps = link->bandwidth_Bps < rate_Bps ? link->bandwidth_Bps : rate_Bps;
    }
    if (dirty != fluid->dirty_count)
        return false;
    while (fluid->dirty_count)
        fluid->dirty[--fluid->dirty_count]->dirty = false;
    set_rate(fluid, flow, rate_Bps);
    return true;
}

/*
 * Sets the rates of the flows that share links, also through other flows, with one that has begun
 * or ended. The flows on the link with the least bandwidth for each get equal shares of it first;
 * then what is left of the others is shared in the same way.
 */
static __attribute__((noinline)) void share_links(struct duet__fluid *fluid)
{
    if (set_alone(fluid))
        return;
    for (size_t open = find_changed(fluid), narrow; open;) {
        const double level_Bps = least_share(fluid, &narrow), most_Bps = most_of(level_Bps);
        for (struct duet__fluid_flow *flow = fluid->limited; flow; flow = flow->next)
            if (!flow->shared && flow->limit_Bps <= most_Bps) {
                set_rate(fluid, flow, level_Bps);
                open--;
            }
        for (size_t i = 0; i < narrow; i++) {
            if (fluid->dirty[i]->share_Bps > most_Bps)
                continue;
            for (struct hop *hop = fluid->dirty[i]->hops; hop; hop = hop->next)
                if (!hop->flow->shared) {
                    set_rate(fluid, hop->flow, level_Bps);
                    open--;
                }
        }
    }
}

double duet__fluid_next(struct duet__fluid *fluid)
{
    if (fluid->dirty_count)
        share_links(fluid);
    return fluid->count ? fluid->heap[0]->end_s : INFINITY;
}
