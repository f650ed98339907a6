/* SPDX-License-Identifier: Apache-2.0 */
/* Copies that queue at devices and share links. */
#include "core/flows.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

int duet__flows_init(struct duet__flows *flows, const struct duet_machine *machine, double scale)
{
    *flows = (struct duet__flows){.machine = machine, .scale = scale, .next_s = INFINITY};
    double *bandwidth_Bps = calloc(machine->link_count + 1, sizeof *bandwidth_Bps);
    int error = bandwidth_Bps ? DUET_OK : DUET_ENOMEM;
    for (unsigned i = 0; !error && i < machine->link_count; i++)
        bandwidth_Bps[i] = machine->links[i].bandwidth_Bps / scale;
    if (!error)
        error = duet__fluid_new(&flows->fluid, bandwidth_Bps, machine->link_count);
    free(bandwidth_Bps);
    flows->taken = calloc(machine->node_count, sizeof *flows->taken);
    return flows->taken ? error : DUET_ENOMEM;
}

void duet__flows_fini(struct duet__flows *flows)
{
    for (size_t f = 0; f < flows->count; f++)
        if (flows->flows[f].stream && flows->flows[f].state != DUET__FLOWING)
            duet__fluid_drop(flows->fluid, flows->flows[f].stream, 0);
    duet__fluid_free(flows->fluid);
    free(flows->flows);
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
    unsigned links[DUET_ROUTE_LINKS];
    double limit_Bps;
    const unsigned count =
        duet__fluid_route(flows->machine, route_of(flows, flow), links, &limit_Bps);
    struct duet__flow *added = &flows->flows[flows->count];
    *added = *flow;
    added->date_s = INFINITY;
    added->stream =
        duet__fluid_flow_new(flows->fluid, links, count, limit_Bps / flows->scale, NULL);
    if (!added->stream)
        return DUET_ENOMEM;
    flows->count++;
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
    if (flow->state == DUET__FLOWING) {
        duet__fluid_drop(flows->fluid, flow->stream, date);
        flow->stream = NULL;
    }
    if (flow->state != DUET__QUEUED) {
        flow->state = DUET__LATENT;
        flow->date_s = flows->next_s = date;
    }
    begin_flows(flows, date);
}

/* ------------------------------------------------------------------------------------------- */
/* Time                                                                                         */

/* Makes the changes that are due at `date`. */
static void flows_change(struct duet__flows *flows, double date)
{
    for (const struct duet__fluid_flow *ended; (ended = duet__fluid_end(flows->fluid, date));) {
        struct duet__flow *flow = flows->flows;
        while (flow->stream != ended)
            flow++;
        flow->state = DUET__ENDED;
        flow->date_s = date;
        flow->stream = NULL;
    }
    for (struct duet__flow *flow = flows->flows; flow < flows->flows + flows->count; flow++) {
        if (flow->state != DUET__LATENT || flow->date_s > date)
            continue;
        flow->state = flow->cancelled ? DUET__ENDED : DUET__FLOWING;
        if (!flow->cancelled)
            duet__fluid_begin(flows->fluid, flow->stream, flow->bytes, date);
        else if (flow->stream)
            duet__fluid_drop(flows->fluid, flow->stream, date);
        flow->stream = flow->cancelled ? NULL : flow->stream;
    }
}

void duet__flows_advance(struct duet__flows *flows, double date)
{
    while (flows->next_s <= date && flows->next_s < INFINITY) {
        const double now_s = flows->next_s;
        flows_change(flows, now_s);
        begin_flows(flows, now_s);
        flows->next_s = duet__fluid_next(flows->fluid);
        for (size_t f = 0; f < flows->count; f++) {
            struct duet__flow *flow = &flows->flows[f];
            if (flow->state == DUET__FLOWING)
                flow->date_s = duet__fluid_flow_end_s(flow->stream);
            if (flow->state != DUET__ENDED)
                flows->next_s = fmin(flows->next_s, flow->date_s);
        }
    }
}
