/* SPDX-License-Identifier: Apache-2.0 */
/* Copies that queue at devices and share links. */
#include "core/flows.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Bandwidth of a link that no copy has yet, and how many have no rate yet: 0 between changes. */
struct duet__link_load {
    double left_Bps;
    unsigned open;
};

int duet__flows_init(struct duet__flows *flows, const struct duet_machine *machine, double scale)
{
    *flows = (struct duet__flows){.machine = machine, .scale = scale, .next_s = INFINITY};
    flows->loads = calloc(machine->link_count + 1, sizeof *flows->loads);
    flows->taken = calloc(machine->node_count, sizeof *flows->taken);
    return flows->loads && flows->taken ? DUET_OK : DUET_ENOMEM;
}

void duet__flows_fini(struct duet__flows *flows)
{
    free(flows->flows);
    free(flows->loads);
    free(flows->taken);
    *flows = (struct duet__flows){.count = 0};
}

static const struct duet_route *route_of(const struct duet__flows *flows,
                                         const struct duet__flow *flow)
{
    return duet_machine_route(flows->machine, flow->source, flow->destination);
}

/* ------------------------------------------------------------------------------------------- */
/* Queues                                                                                       */

/* Returns true if no earlier copy of this pass needs the direction; the host has no queues. */
static bool take_direction(struct duet__flows *flows, unsigned node, bool out)
{
    bool first = node == DUET_HOST || flows->taken[node][out] != flows->pass;
    flows->taken[node][out] = flows->pass;
    return first;
}

/* Begins the copies that are the first in both directions. */
static void begin_flows(struct duet__flows *flows, double date)
{
    flows->pass++;
    for (size_t f = 0; f < flows->count; f++) {
        struct duet__flow *flow = &flows->flows[f];
        if (flow->state == DUET__ENDED)
            continue;
        bool out = take_direction(flows, flow->source, true);
        bool in = take_direction(flows, flow->destination, false);
        if (flow->state != DUET__QUEUED || !out || !in)
            continue;
        flow->state = DUET__LATENT;
        flow->start_s = fmax(flow->start_s, date);
        flow->date_s =
            flow->start_s + (flow->cancelled ? 0 : route_of(flows, flow)->latency_s * flows->scale);
        flows->next_s = fmin(flows->next_s, flow->date_s);
    }
}

int duet__flows_add(struct duet__flows *flows, const struct duet__flow *flow)
{
    if (flows->count == flows->capacity) {
        size_t capacity = 2 * flows->capacity + 64;
        struct duet__flow *grown = realloc(flows->flows, capacity * sizeof *grown);
        if (!grown)
            return DUET_ENOMEM;
        flows->flows = grown;
        flows->capacity = capacity;
    }
    flows->flows[flows->count] = *flow;
    flows->flows[flows->count++].date_s = INFINITY;
    begin_flows(flows, flow->start_s);
    return DUET_OK;
}

struct duet__flow duet__flows_remove(struct duet__flows *flows, size_t index)
{
    struct duet__flow *flow = &flows->flows[index], removed = *flow;
    memmove(flow, flow + 1, (--flows->count - index) * sizeof *flow);
    return removed;
}

void duet__flows_cancel(struct duet__flows *flows, struct duet__flow *flow, double date)
{
    flow->cancelled = true;
    if (flow->destination != DUET_HOST)
        flow->source = DUET_HOST;
    if (flow->state != DUET__QUEUED) {
        flow->state = DUET__LATENT;
        flow->date_s = flows->next_s = date;
    }
    begin_flows(flows, date);
}

/* ------------------------------------------------------------------------------------------- */
/* Links                                                                                        */

/* Gives a copy an equal share of what its links have left, as its rate, and returns that. */
static double equal_share(const struct duet__flows *flows, struct duet__flow *flow)
{
    const struct duet_route *route = route_of(flows, flow);
    flow->rate_Bps = INFINITY;
    for (unsigned i = 0; i < route->count; i++) {
        const struct duet_link *link = &flows->machine->links[route->links[i]];
        const struct duet__link_load *load = &flows->loads[route->links[i]];
        double share = link->per_copy ? link->bandwidth_Bps : load->left_Bps / load->open;
        flow->rate_Bps = share < flow->rate_Bps ? share : flow->rate_Bps;
    }
    return flow->rate_Bps;
}

/* Counts the flowing copies on the links that they cross. Returns their number. */
static size_t load_links(struct duet__flows *flows)
{
    size_t open = 0;
    for (size_t f = 0; f < flows->count; f++) {
        struct duet__flow *flow = &flows->flows[f];
        if (flow->state != DUET__FLOWING)
            continue;
        const struct duet_route *route = route_of(flows, flow);
        for (unsigned i = 0; i < route->count; i++) {
            struct duet__link_load *load = &flows->loads[route->links[i]];
            if (load->open++ == 0)
                load->left_Bps = flows->machine->links[route->links[i]].bandwidth_Bps;
        }
        flow->shared = false;
        open++;
    }
    return open;
}

/* Takes a copy's rate off the links that it crosses. */
static void unload_links(struct duet__flows *flows, const struct duet__flow *flow)
{
    const struct duet_route *route = route_of(flows, flow);
    for (unsigned i = 0; i < route->count; i++) {
        flows->loads[route->links[i]].left_Bps -= flow->rate_Bps;
        flows->loads[route->links[i]].open--;
    }
}

/*
 * Sets all rates anew: the narrowest links give equal shares first, then the rest is shared in the
 * same way.
 */
static void share_links(struct duet__flows *flows)
{
    size_t open = load_links(flows);
    while (open) {
        double level = INFINITY;
        for (size_t f = 0; f < flows->count; f++) {
            struct duet__flow *flow = &flows->flows[f];
            if (flow->state == DUET__FLOWING && !flow->shared)
                level = fmin(level, equal_share(flows, flow));
        }
        for (size_t f = 0; f < flows->count; f++) {
            struct duet__flow *flow = &flows->flows[f];
            if (flow->state != DUET__FLOWING || flow->shared ||
                flow->rate_Bps > level * (1 + 1e-12))
                continue;
            flow->rate_Bps = level;
            flow->shared = true;
            unload_links(flows, flow);
            open--;
        }
    }
}

/* ------------------------------------------------------------------------------------------- */
/* Time                                                                                         */

/* Moves the bytes of all copies up to the next change, and makes those changes that are due. */
static void flows_change(struct duet__flows *flows)
{
    double seconds = (flows->next_s - flows->now_s) / flows->scale;
    flows->now_s = flows->next_s;
    for (size_t f = 0; f < flows->count; f++) {
        struct duet__flow *flow = &flows->flows[f];
        if (flow->state == DUET__FLOWING)
            flow->bytes -= seconds * flow->rate_Bps;
        if (flow->state != DUET__ENDED && flow->date_s <= flows->now_s)
            flow->state =
                flow->state == DUET__LATENT && !flow->cancelled ? DUET__FLOWING : DUET__ENDED;
    }
}

void duet__flows_advance(struct duet__flows *flows, double date)
{
    while (flows->next_s <= date && flows->next_s < INFINITY) {
        flows_change(flows);
        begin_flows(flows, flows->now_s);
        share_links(flows);
        flows->next_s = INFINITY;
        for (size_t f = 0; f < flows->count; f++) {
            struct duet__flow *flow = &flows->flows[f];
            if (flow->state == DUET__FLOWING)
                flow->date_s = flows->now_s + fmax(0, flow->bytes / flow->rate_Bps * flows->scale);
            if (flow->state != DUET__ENDED)
                flows->next_s = fmin(flows->next_s, flow->date_s);
        }
    }
}
