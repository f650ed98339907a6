/* SPDX-License-Identifier: Apache-2.0 */
/* Flows that share links. */
#include "core/fluid.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

static const double PRECISION_S = 1e-12; /* ends that are so near are one */

enum {
    POOLS = 16, /* memory of ended flows that cross fewer links is used again */
    FEW = 48,   /* with so many flows or fewer, a change sets the rates of all that hang together */
    TRIES = 8,  /* most tries to set only a part of the rates */
    PART = 8,   /* that part is below 1/PART of the flows: else setting all costs less than tries */
};
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
    size_t place;                  /* in the heap, or NOWHERE */
    uint64_t number;               /* order of their beginning */
    struct link *narrow;           /* the full link that limits the flow; NULL: limit_Bps does */
    uint64_t pass;                 /* last pass that sets its rate */
    double new_Bps;                /* during a pass: the rate that it sets */
    bool shared;                   /* during a pass: new_Bps is set */
    unsigned count;                /* hops */
    struct duet__fluid_flow *next; /* in a pool, or in the list of a pass */
    struct duet__fluid_flow *next_limited; /* in fluid->limited */
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
    struct duet__fluid_flow *flows;   /* flows of a pass */
    struct duet__fluid_flow *limited; /* flows of the pass that have limits */
    size_t flow_count;                /* length of `flows` */
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

/* Adds a flow, with its links, to those whose rates the pass sets. */
static void find_flow(struct duet__fluid *fluid, struct duet__fluid_flow *flow)
{
    if (flow->pass == fluid->pass)
        return;
    flow->pass = fluid->pass;
    flow->shared = false;
    flow->next = fluid->flows;
    fluid->flows = flow;
    fluid->flow_count++;
    if (flow->limit_Bps < INFINITY) {
        flow->next_limited = fluid->limited;
        fluid->limited = flow;
    }
    find_links(fluid, flow);
}

static void find_flows(struct duet__fluid *fluid, const struct link *link)
{
    for (const struct hop *hop = link->hops; hop; hop = hop->next)
        find_flow(fluid, hop->flow);
}

/* Begins a pass of the flows of a list. */
static void begin_pass(struct duet__fluid *fluid, struct duet__fluid_flow *flows)
{
    fluid->pass++;
    fluid->flows = fluid->limited = NULL;
    fluid->flow_count = fluid->found_count = 0;
    for (struct duet__fluid_flow *next; flows; flows = next) {
        next = flows->next;
        find_flow(fluid, flows);
    }
}

/* Gives a flow of the pass its new rate, and takes that from what its links have left. `narrow` is
 * the link that limits it; NULL: its own limit does. */
static void share(struct duet__fluid_flow *flow, struct link *narrow, double rate_Bps)
{
    flow->shared = true;
    flow->new_Bps = rate_Bps;
    flow->narrow = narrow;
    for (unsigned i = 0; i < flow->count; i++) {
        struct link *link = flow->hops[i].link;
        link->left_Bps -= rate_Bps;
        link->open--;
        link->moved = true;
    }
}

/* Lets a flow go on at its new rate. */
static void set_rate(struct duet__fluid *fluid, struct duet__fluid_flow *flow)
{
    if (flow->new_Bps == flow->rate_Bps)
        return;
    flow->bytes -= (fluid->now_s - flow->since_s) * flow->rate_Bps;
    flow->since_s = fluid->now_s;
    flow->rate_Bps = flow->new_Bps;
    set_end(fluid, flow, fluid->now_s + fmax(0, flow->bytes / flow->rate_Bps));
}

/* Returns the highest share that counts as equal to this one. */
static double most_of(double share_Bps)
{
    return share_Bps + fabs(share_Bps) * 1e-12;
}

/*
 * Returns the least of the equal shares that links and limits give to flows without a rate. The
 * first `*open` of the links found have such flows. fluid->dirty gets all links that give no more
 * than that, and perhaps others; *narrow is their number.
 */
static double least_share(struct duet__fluid *fluid, size_t *open, size_t *narrow)
{
    double least_Bps = INFINITY, most_Bps = INFINITY;
    *narrow = 0;
    for (size_t i = 0; i < *open;) {
        struct link *link = fluid->found[i];
        if (!link->open) {
            fluid->found[i] = fluid->found[--*open];
            fluid->found[*open] = link;
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
    for (const struct duet__fluid_flow *flow = fluid->limited; flow; flow = flow->next_limited)
        if (!flow->shared && flow->limit_Bps < least_Bps)
            least_Bps = flow->limit_Bps;
    return least_Bps;
}

/*
 * Sets the rate of a flow that shares no link, if all changed links are its links. Returns false if
 * there is none; new_Bps and `narrow` of a flow on the changed links may have changed then.
 */
static bool set_alone(struct duet__fluid *fluid)
{
    struct duet__fluid_flow *flow = fluid->dirty[0]->hops ? fluid->dirty[0]->hops->flow : NULL;
    size_t dirty = 0;
    if (!flow)
        return false;
    flow->new_Bps = flow->limit_Bps;
    flow->narrow = NULL;
    for (struct hop *hop = flow->hops; hop < flow->hops + flow->count; hop++) {
        if (hop->link->count > 1)
            return false;
        dirty += hop->link->dirty;
        if (hop->link->bandwidth_Bps < flow->new_Bps) {
            flow->narrow = hop->link;
            flow->new_Bps = hop->link->bandwidth_Bps;
        }
    }
    if (dirty != fluid->dirty_count)
        return false;
    set_rate(fluid, flow);
    return true;
}

/*
 * Shares the links found among the flows of the pass. The flows on the link with the least
 * bandwidth for each get equal shares of it first; then what is left of the others is shared in the
 * same way.
 */
static void share_links(struct duet__fluid *fluid)
{
    size_t links = fluid->found_count, narrow;
    for (size_t open = fluid->flow_count; open;) {
        const double level_Bps = least_share(fluid, &links, &narrow);
        const double most_Bps = most_of(level_Bps);
        for (struct duet__fluid_flow *flow = fluid->limited; flow; flow = flow->next_limited)
            if (!flow->shared && flow->limit_Bps <= most_Bps) {
                share(flow, NULL, level_Bps);
                open--;
            }
        for (size_t i = 0; i < narrow; i++) {
            struct link *link = fluid->dirty[i];
            if (link->share_Bps > most_Bps)
                continue;
            for (struct hop *hop = link->hops; hop; hop = hop->next)
                if (hop->flow->pass == fluid->pass && !hop->flow->shared) {
                    share(hop->flow, link, level_Bps);
                    open--;
                }
        }
    }
}

/*
 * Adds to the pass each other flow on the link whose rate is no longer fair: it gets more than a
 * flow of the pass that this link limits; or this link limited it, and is no longer full, or gives
 * a flow of the pass more.
 */
static void check_link(struct duet__fluid *fluid, const struct link *link)
{
    double narrow_Bps = INFINITY, most_Bps = 0;
    for (const struct hop *hop = link->hops; hop; hop = hop->next) {
        const struct duet__fluid_flow *flow = hop->flow;
        if (flow->pass != fluid->pass)
            continue;
        most_Bps = fmax(most_Bps, flow->new_Bps);
        if (flow->narrow == link)
            narrow_Bps = fmin(narrow_Bps, flow->new_Bps);
    }
    const bool full = narrow_Bps < INFINITY || link->left_Bps <= link->bandwidth_Bps * 1e-12;
    for (const struct hop *hop = link->hops; hop; hop = hop->next) {
        struct duet__fluid_flow *flow = hop->flow;
        if (flow->pass == fluid->pass)
            continue;
        if (flow->rate_Bps > most_of(narrow_Bps) ||
            (flow->narrow == link && (!full || most_Bps > most_of(flow->rate_Bps)))) {
            flow->new_Bps = flow->rate_Bps;
            find_flow(fluid, flow);
        }
    }
}

/*
 * Shares links among the flows of the pass alone, beside the others, which keep their rates. Rates
 * are max-min fair if each flow has a link that is full and gives no other more (Bertsekas,
 * Gallager, section 6.5.2). Adds to the pass the other flows that lose such a link; returns false
 * if there are any.
 */
static bool share_beside(struct duet__fluid *fluid)
{
    const size_t flows = fluid->flow_count, links = fluid->found_count;
    for (size_t i = 0; i < links; i++) {
        struct link *link = fluid->found[i];
        for (const struct hop *hop = link->hops; hop; hop = hop->next)
            if (hop->flow->pass != fluid->pass) {
                link->left_Bps -= hop->flow->rate_Bps;
                link->open--;
            }
        link->left_Bps = fmax(0, link->left_Bps);
    }
    share_links(fluid);
    for (size_t i = 0; i < links; i++)
        check_link(fluid, fluid->found[i]);
    return fluid->flow_count == flows;
}

/*
 * Sets rates after flows have begun or ended. With more than FEW flows, first only those on changed
 * links get new rates; others join where their rates would be unfair.
 */
static __attribute__((noinline)) void set_rates(struct duet__fluid *fluid)
{
    bool set = set_alone(fluid);
    begin_pass(fluid, NULL);
    for (size_t i = 0; i < fluid->dirty_count; i++) {
        fluid->dirty[i]->dirty = false;
        if (!set)
            find_flows(fluid, fluid->dirty[i]);
    }
    fluid->dirty_count = 0;
    for (unsigned tries = fluid->count > FEW ? TRIES : 0;
         tries && !set && PART * fluid->flow_count < fluid->count; tries--) {
        set = share_beside(fluid);
        if (!set)
            begin_pass(fluid, fluid->flows);
    }
    if (!set) {
        for (size_t i = 0; i < fluid->found_count; i++)
            find_flows(fluid, fluid->found[i]);
        share_links(fluid);
    }
    for (struct duet__fluid_flow *flow = fluid->flows; flow; flow = flow->next)
        set_rate(fluid, flow);
}

double duet__fluid_next(struct duet__fluid *fluid)
{
    if (fluid->dirty_count)
        set_rates(fluid);
    return fluid->count ? fluid->heap[0]->end_s : INFINITY;
}
