/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A clock, and a network of links, which flows share max-min fairly. There are two engines, duet's
 * own and SimGrid; both give the same dates but for rounding (sim/network_test.c).
 */
#ifndef DUET_SIM_NETWORK_H
#define DUET_SIM_NETWORK_H

#include <stdbool.h>
#include <stdint.h>

#include <duet/machine.h>

#include "platforms/model/network.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Called by the network, on the thread that runs it. */
struct network_calls {
    /*
     * Returns the date of the owner's next event; INFINITY: there is none. The network asks when
     * `run` begins, and after calls of `alarm` and `arrived`.
     */
    double (*next)(void *owner);
    /* Tells the owner that the date that `next` returned has come; it is now, but for rounding.
     * Returns true to end `run` at this date. */
    bool (*alarm)(void *owner, double date);
    /* All bytes of the flow `tag` have arrived. */
    void (*arrived)(void *owner, void *tag);
};

/* Each engine has its own. */
struct network;

/* Calls that take a `network` are made by one thread at a time. */
struct network_engine {
    /*
     * Makes `count` nodes, each with the machine's links and routes, and the network `how` between
     * them (NULL: one node); nothing of either is kept. DUET_EBUSY (SimGrid can be started once a
     * process), DUET_EINVAL (a file that it refuses), DUET_EIO or DUET_ENOMEM, with a message; *out
     * is then NULL.
     */
    int (*open)(struct network **out, const struct duet_machine *machine, unsigned count,
                const struct duet__network *how, const struct network_calls *calls, void *owner,
                struct duet_message *message);

    /* Frees the network. Nothing calls the owner afterwards. */
    void (*close)(struct network *network);

    /* Returns the date in simulated seconds. */
    double (*clock)(const struct network *network);

    /*
     * Starts a flow of `bytes` > 0 along the route between two memories of a node, now, without
     * latency. False: no memory.
     */
    bool (*copy)(struct network *network, unsigned node, unsigned source, unsigned destination,
                 uint64_t bytes, void *tag);

    /*
     * Starts a flow of `bytes` > 0 from the network card of a node to that of another, without
     * latency. False: no memory.
     */
    bool (*send)(struct network *network, unsigned from, unsigned to, uint64_t bytes, void *tag);

    /* Returns the latency in seconds between two cards by a user's file; 0 for other networks. */
    double (*latency)(const struct network *network, unsigned from, unsigned to);

    /* Lets time pass until `alarm` returns true, or until no event and no flow is left. */
    void (*run)(struct network *network);
};

extern const struct network_engine duet__network_fluid;

/* Returns SimGrid's engine. NULL with a message: DUET_EABSENT. */
const struct network_engine *duet__network_simgrid(struct duet_message *message);

#ifdef __cplusplus
}
#endif
#endif
