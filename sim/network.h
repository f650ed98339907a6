/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The part of SimGrid in use: a clock with alarms, and a network whose links flows share max-min
 * fairly. A C interface, since SimGrid offers these to C++ only.
 */
#ifndef DUET_SIM_NETWORK_H
#define DUET_SIM_NETWORK_H

#include <stdbool.h>
#include <stdint.h>

#include <duet/error.h>
#include <duet/machine.h>

#include "platforms/model/network.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Called by the network, on the thread that runs it. */
struct network_calls {
    /* An alarm has gone off. Returns true to end duet__network_run now, at this date. */
    bool (*alarm)(void *owner);
    /* All bytes of the flow `tag` have arrived. */
    void (*arrived)(void *owner, void *tag);
};

/*
 * Starts SimGrid with `count` nodes, each with the machine's links and routes, and with the network
 * `how` between them (NULL: one node). Once a process: DUET_EBUSY otherwise. DUET_EINVAL (a file
 * that SimGrid refuses), DUET_EIO or DUET_ENOMEM, with a message.
 */
int duet__network_open(const struct duet_machine *machine, unsigned count,
                       const struct duet__network *how, const struct network_calls *calls,
                       void *owner, struct duet_message *message);

/* Detaches the owner; nothing calls it afterwards. */
void duet__network_close(void);

/* Returns the date in simulated seconds. */
double duet__network_clock(void);

/* Sets an alarm for `date`, not before now. It cannot be taken back. */
void duet__network_alarm(double date);

/*
 * Starts a flow of `bytes` > 0 along the route between two memories of a node, now, without
 * latency.
 */
void duet__network_copy(unsigned node, unsigned source, unsigned destination, uint64_t bytes,
                        void *tag);

/*
 * Starts a flow of `bytes` > 0 from the network card of a node to that of another, without latency.
 */
void duet__network_send(unsigned from, unsigned to, uint64_t bytes, void *tag);

/* Returns the latency in seconds between two cards by a user's file; 0 for other networks. */
double duet__network_latency(unsigned from, unsigned to);

/* Lets time pass until an alarm ends it, or until no event is left. */
void duet__network_run(void);

#ifdef __cplusplus
}
#endif
#endif
