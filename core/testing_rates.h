/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Support for tests of networks: random links and routes, and an independent model of the rates at
 * which copies flow, by progressive filling (Bertsekas, Gallager, Data Networks, 1992, section
 * 6.5.2): raise all rates together; a link that is full, or a copy that is at its own limit, stops
 * those it concerns; go on with the others.
 */
#ifndef DUET_CORE_TESTING_RATES_H
#define DUET_CORE_TESTING_RATES_H

#include <math.h>

#include <glib.h>

#include <duet/machine.h>
#include <duet/random.h>

struct flow {
    unsigned source, destination;
    double rate;
};

static inline bool flow_crosses(const struct duet_machine *m, const struct flow *flow,
                                unsigned link)
{
    const struct duet_route *route = duet_machine_route(m, flow->source, flow->destination);
    for (unsigned i = 0; i < route->count; i++)
        if (route->links[i] == link)
            return true;
    return false;
}

/*
 * Returns how far the rates not yet fixed (negative) can be raised on this link; infinite: none is.
 */
static inline double flow_room(const struct duet_machine *m, struct flow *const *flows,
                               unsigned count, unsigned link)
{
    double left = m->links[link].bandwidth_Bps;
    unsigned open = 0;
    for (unsigned i = 0; i < count; i++) {
        if (!flow_crosses(m, flows[i], link))
            continue;
        if (flows[i]->rate < 0)
            open++;
        else if (!m->links[link].per_copy)
            left -= flows[i]->rate;
    }
    if (!open)
        return INFINITY;
    return m->links[link].per_copy ? left : left / open;
}

/* Max-min fair rates of these copies, and no others. */
static inline void flow_rates(const struct duet_machine *m, struct flow *const *flows,
                              unsigned count)
{
    unsigned narrowest = 0;
    for (unsigned i = 0; i < count; i++)
        flows[i]->rate = -1;
    for (double least = 0; isfinite(least);) {
        least = INFINITY;
        for (unsigned l = 0; l < m->link_count; l++) {
            double rate = flow_room(m, flows, count, l);
            if (rate < least) {
                least = rate;
                narrowest = l;
            }
        }
        for (unsigned i = 0; i < count && isfinite(least); i++)
            if (flows[i]->rate < 0 && flow_crosses(m, flows[i], narrowest))
                flows[i]->rate = least;
    }
}

/* Every second link limits each copy alone; routes cross one to three links. */
static inline void random_machine(struct duet_machine *m, unsigned nodes, unsigned links,
                                  bool latencies, uint64_t *random)
{
    g_assert_cmpint(duet_machine_init(m, 1, nodes, 1, links), ==, DUET_OK);
    for (unsigned l = 0; l < links; l++) {
        g_snprintf(m->links[l].name, sizeof m->links[l].name, "link%u", l);
        m->links[l].bandwidth_Bps = 1e8 * (1 + 20 * duet_random_unit(random));
        m->links[l].per_copy = l % 2;
    }
    for (unsigned i = 0; i < nodes * nodes; i++) {
        struct duet_route *route = &m->routes[i];
        route->direct = i / nodes != i % nodes;
        if (latencies && duet_random_below(random, 3))
            route->latency_s = 1e-3 * duet_random_unit(random);
        route->bandwidth_Bps = INFINITY;
        for (unsigned k = 1 + duet_random_below(random, 3); route->direct && k > 0; k--) {
            uint16_t link = (uint16_t)(duet_random_below(random, links / 3) * 3 + k - 1);
            route->links[route->count++] = link;
            route->bandwidth_Bps = fmin(route->bandwidth_Bps, m->links[link].bandwidth_Bps);
        }
    }
}

#endif
