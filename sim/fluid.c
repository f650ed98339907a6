/* SPDX-License-Identifier: Apache-2.0 */
/* duet's own engine of networks: the links of core/fluid.h, and a clock. */
#include "core/fluid.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sim/network.h"
#include "sim/routes.h"

/* Links of a route between two memories, and the rate of a single copy. */
struct route {
    const unsigned *links;
    unsigned count;
    double limit_Bps;
};

struct network {
    struct duet__fluid *fluid;
    struct network_calls calls;
    void *owner;
    double now;
    void **arrived; /* tags of flows that have ended now, and of which the owner is to be told */
    size_t first, arrived_count, arrived_capacity;
    size_t flowing;
    unsigned node_count, memory_count, link_count; /* memories and links: of each node */
    struct route *inside;                          /* by source and destination, in a node */
    unsigned *inside_links;                        /* links of all these routes */
    struct duet__routes outside;                   /* if there are several nodes */
    struct duet__network how;
    unsigned *links; /* room for the links of a route between nodes */
};

/* ------------------------------------------------------------------------------------------- */
/* Links and routes. The links of node n have the numbers from n * link_count on. Links between
 * nodes follow those of all nodes. */

static int make_routes(struct network *network, const struct duet_machine *machine)
{
    const size_t count = (size_t)machine->node_count * machine->node_count;
    size_t hops = 0;
    for (size_t i = 0; i < count; i++)
        hops += machine->routes[i].count;
    network->inside = calloc(count + 1, sizeof *network->inside);
    network->inside_links = calloc(hops + 1, sizeof *network->inside_links);
    if (!network->inside || !network->inside_links)
        return DUET_ENOMEM;
    hops = 0;
    for (size_t i = 0; i < count; i++) {
        struct route *route = &network->inside[i];
        route->links = &network->inside_links[hops];
        route->count = duet__fluid_route(machine, &machine->routes[i], &network->inside_links[hops],
                                         &route->limit_Bps);
        hops += machine->routes[i].count;
    }
    return DUET_OK;
}

static int make_links(struct network *network, const struct duet_machine *machine,
                      const struct duet__network *how)
{
    const size_t inside = (size_t)network->node_count * machine->link_count;
    if (how) {
        network->how = *how;
        duet__routes_init(&network->outside, &network->how, network->node_count);
    }
    const size_t count = inside + network->outside.link_count;
    double *bandwidth_Bps = calloc(count + 1, sizeof *bandwidth_Bps);
    network->links = calloc(network->outside.longest + 1, sizeof *network->links);
    int error = bandwidth_Bps && network->links ? DUET_OK : DUET_ENOMEM;
    for (size_t i = 0; !error && i < count; i++)
        bandwidth_Bps[i] = i < inside ? machine->links[i % machine->link_count].bandwidth_Bps
                                      : duet__routes_bandwidth(&network->outside, i - inside);
    if (!error)
        error = duet__fluid_new(&network->fluid, bandwidth_Bps, count);
    free(bandwidth_Bps);
    return error;
}

static void fluid_close(struct network *network)
{
    duet__fluid_free(network->fluid);
    free(network->arrived);
    free(network->inside);
    free(network->inside_links);
    free(network->links);
    free(network);
}

static int fluid_open(struct network **out, const struct duet_machine *machine, unsigned count,
                      const struct duet__network *how, const struct network_calls *calls,
                      void *owner, struct duet_message *message)
{
    struct network *network = *out = calloc(1, sizeof *network);
    int error = network ? DUET_OK : DUET_ENOMEM;
    if (network)
        *network = (struct network){.calls = *calls,
                                    .owner = owner,
                                    .node_count = count,
                                    .memory_count = machine->node_count,
                                    .link_count = machine->link_count};
    if (!error)
        error = make_routes(network, machine);
    if (!error)
        error = make_links(network, machine, how);
    if (!error)
        return DUET_OK;
    if (network)
        fluid_close(network);
    *out = NULL;
    return duet_fail(message, error, "no memory left for the network of %s", machine->name);
}

/* ------------------------------------------------------------------------------------------- */
/* Flows                                                                                        */

/* Makes sure that there is room for the ends of all flows. */
static bool make_room(struct network *network)
{
    if (network->arrived_count + network->flowing < network->arrived_capacity)
        return true;
    size_t capacity = 2 * network->arrived_capacity + 64;
    void **arrived = realloc(network->arrived, capacity * sizeof *arrived);
    if (!arrived)
        return false;
    network->arrived = arrived;
    network->arrived_capacity = capacity;
    return true;
}

static bool start(struct network *network, const unsigned *links, unsigned count, double limit_Bps,
                  uint64_t bytes, void *tag)
{
    struct duet__fluid_flow *flow =
        make_room(network) ? duet__fluid_flow_new(network->fluid, links, count, limit_Bps, tag)
                           : NULL;
    if (!flow)
        return false;
    duet__fluid_begin(network->fluid, flow, (double)bytes, network->now);
    network->flowing++;
    return true;
}

static bool fluid_copy(struct network *network, unsigned node, unsigned source,
                       unsigned destination, uint64_t bytes, void *tag)
{
    const struct route *route =
        &network->inside[(size_t)source * network->memory_count + destination];
    unsigned links[DUET_ROUTE_LINKS];
    for (unsigned i = 0; i < route->count; i++)
        links[i] = node * network->link_count + route->links[i];
    return start(network, links, route->count, route->limit_Bps, bytes, tag);
}

static bool fluid_send(struct network *network, unsigned from, unsigned to, uint64_t bytes,
                       void *tag)
{
    const unsigned count = duet__routes_find(&network->outside, from, to, network->links);
    for (unsigned i = 0; i < count; i++)
        network->links[i] += network->node_count * network->link_count;
    return start(network, network->links, count, INFINITY, bytes, tag);
}

static double fluid_latency(const struct network *network, unsigned from, unsigned to)
{
    return 0;
}

/* ------------------------------------------------------------------------------------------- */
/* Time                                                                                         */

static double fluid_clock(const struct network *network)
{
    return network->now;
}

/* Tells the owner of flows that have ended. */
static void tell(struct network *network)
{
    while (network->first < network->arrived_count)
        network->calls.arrived(network->owner, network->arrived[network->first++]);
    network->first = network->arrived_count = 0;
}

/* Lets time pass. At one date flows end first, then the owner handles its events, then it is told
 * which flows have ended. */
static void fluid_run(struct network *network)
{
    for (const struct duet__fluid_flow *ended;;) {
        tell(network);
        const double end_s = duet__fluid_next(network->fluid);
        const double event_s = network->calls.next(network->owner);
        const double date = event_s < end_s ? event_s : end_s;
        if (isinf(date))
            return;
        network->now = network->now > date ? network->now : date;
        while ((ended = duet__fluid_end(network->fluid, network->now))) {
            network->arrived[network->arrived_count++] = duet__fluid_flow_tag(ended);
            network->flowing--;
        }
        if (event_s <= network->now && network->calls.alarm(network->owner, network->now))
            return;
    }
}

const struct network_engine duet__network_fluid = {
    .open = fluid_open,
    .close = fluid_close,
    .clock = fluid_clock,
    .copy = fluid_copy,
    .send = fluid_send,
    .latency = fluid_latency,
    .run = fluid_run,
};
