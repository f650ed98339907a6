/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cards and cables of a network between nodes, and the route of a message through them. Each
 * direction of a card or a cable is a link of its own. Networks of files have no routes here.
 */
#ifndef DUET_SIM_ROUTES_H
#define DUET_SIM_ROUTES_H

#include <stddef.h>

#include "platforms/model/network.h"

struct duet__routes {
    const struct duet__network *network; /* borrowed; its shape is known */
    unsigned nodes;
    size_t first[DUET__NETWORK_LEVELS + 1]; /* number of each level's first link */
    size_t link_count;
    unsigned longest; /* most links of a route */
};

/* Numbers the links. */
void duet__routes_init(struct duet__routes *routes, const struct duet__network *network,
                       unsigned nodes);

/* Returns the bandwidth of link `number` < link_count. */
double duet__routes_bandwidth(const struct duet__routes *routes, size_t number);

/* Writes the links from the card of a node to that of another to `links`, in their order. Returns
 * their number, at most routes->longest. */
unsigned duet__routes_find(const struct duet__routes *routes, unsigned from, unsigned to,
                           unsigned *links);

#endif
