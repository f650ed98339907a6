/* SPDX-License-Identifier: Apache-2.0 */
/* The network between the nodes of a simulated cluster, and the costs of MPI on it: plain data for
 * the simulated engine, read and written by platforms/network.c. */
#ifndef DUET_MODEL_NETWORK_H
#define DUET_MODEL_NETWORK_H

#include <stdint.h>

enum duet__network_kind {
    DUET__NETWORK_SWITCH,    /* all nodes are on one switch, which is never full itself */
    DUET__NETWORK_FAT_TREE,  /* switches in levels (Leiserson, IEEE ToC 34(10), 1985) */
    DUET__NETWORK_DRAGONFLY, /* groups of routers, all joined to each other (Kim et al., ISCA
                                2008) */
    DUET__NETWORK_TORUS,     /* each node is joined to two others in each dimension */
    DUET__NETWORK_FILE,      /* a SimGrid platform: node i is its i-th host, in natural order */
    DUET__NETWORK_KINDS,
};

enum {
    DUET__NETWORK_LEVELS = 8,
    DUET__NETWORK_FILE_MAX = 512, /* bytes of a file's name, final zero included */
};

/*
 * A message of b bytes takes, with nothing else under way and both ends ready: overhead_s at the
 * sender, rendezvous_s if b > eager_bytes, latency_s, b / bandwidth_Bps, and overhead_s at the
 * receiver. A message of at most eager_bytes does not wait until the receiver is ready.
 */
struct duet__network {
    unsigned kind;        /* enum duet__network_kind */
    double bandwidth_Bps; /* a node's card in either direction, and every cable; with a file: 0, as
                             it says */
    double latency_s;     /* whatever the route through the network; of a file: 0, as it says */
    double overhead_s;    /* a processor's time at either end, for each message in turn */
    double rendezvous_s;  /* until both ends have found each other */
    uint64_t eager_bytes;
    /*
     * The shape; levels 0: to be derived from the number of nodes.
     * Fat tree: each level has, from the nodes upwards, `down` children of a switch, `up` parents
     * of what is below it, by so many `cables` to each. Torus: a level is a dimension, `down` nodes
     * long. Dragonfly: four levels, `down` being groups, chassis of a group, routers of a chassis
     * and nodes of a router, `cables` those between two groups, two chassis, two routers.
     */
    unsigned levels;
    unsigned down[DUET__NETWORK_LEVELS], up[DUET__NETWORK_LEVELS], cables[DUET__NETWORK_LEVELS];
    char file[DUET__NETWORK_FILE_MAX]; /* path, for DUET__NETWORK_FILE */
};

/* Seconds of a message with nothing else under way. Not for DUET__NETWORK_FILE. */
static inline double duet__network_message_s(const struct duet__network *network, double bytes)
{
    return 2 * network->overhead_s + network->latency_s + bytes / network->bandwidth_Bps +
           (bytes > (double)network->eager_bytes ? network->rendezvous_s : 0);
}

#endif
