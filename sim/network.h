/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is used of SimGrid: a clock with alarms, and a network whose links flows share max-min
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
    /* An alarm has gone off. true: end network_run now, at this date. */
    bool (*alarm)(void *owner);
    /* All bytes of the flow `tag` have arrived. */
    void (*arrived)(void *owner, void *tag);
};

/*
 * Starts SimGrid with `count` nodes, each with the machine's links and routes, and with what joins
 * them (`how`; NULL: one node). Once a process: DUET_EBUSY otherwise. DUET_EINVAL (a
 * file that SimGrid refuses), DUET_EIO or DUET_ENOMEM, with a message.
 */
int duet__network_open(const struct duet_machine *machine, unsigned count,
                       const struct duet__network *how, const struct network_calls *calls,
                       void *owner, struct duet_message *message);

/* Lets go of the owner; nothing calls it afterwards. */
void duet__network_close(void);

/* Simulated seconds. */
double duet__network_clock(void);

/* Goes off at `date`, not before now. An alarm cannot be taken back. */
void duet__network_alarm(double date);

/*
 * Starts a flow of `bytes` > 0 along the route between two memories of a node, now, without
 * latency.
 */
void duet__network_copy(unsigned node, unsigned source, unsigned destination, uint64_t bytes,
                        void *tag);

/* The same from the network card of a node to that of another one, */
void duet__network_send(unsigned from, unsigned to, uint64_t bytes, void *tag);

/* and what a user's file says of the latency on that way; 0 of other networks. */
double duet__network_latency(unsigned from, unsigned to);

/* Lets time pass until an alarm says so, or until nothing is left to happen. */
void duet__network_run(void);

#ifdef __cplusplus
}
#endif
#endif
