/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Paced devices and the bus that they share. Nothing here has a thread: whoever calls first lets
 * everything happen that was due until now, in the order of its dates, and tells the others.
 *
 * All functions but init and fini are called with the bus's mutex held. Dates are seconds on the
 * engine's clock.
 */
#ifndef DUET_EMULATED_PACED_H
#define DUET_EMULATED_PACED_H

#include "backends/emulated/internal.h"

/* Where the oldest copy of a stream is: not begun, paying its latency, flowing. */
enum phase { PHASE_WAITS, PHASE_LATENCY, PHASE_FLOWS };

/* A stream of copies. Its oldest one is described here, the others wait in the queue. */
struct lane {
    struct queue queue;
    struct paced *device;
    enum phase phase;
    double next_s;  /* end of the latency, or of the flow if shares stay as they are */
    double since_s; /* of the flow: `left` bytes were left then, which flow at `rate` since */
    double left, rate;
    struct flow flow;
};

struct paced {
    struct backend_device common; /* first: a backend_device is one of these */
    struct paced *self;           /* to note known_s where a device is given as const */
    struct bus *bus;
    struct queue kernels; /* all dated when they are launched */
    double free_s;        /* end of the last kernel launched */
    struct lane in, out;
    /*
     * Lanes (struct lane *) in the order in which they were given copies that leave this device's
     * memory: as in the simulation, one at a time leaves, to the host or to another device.
     */
    struct ring leaving;
    double known_s;   /* what the worker was last told about its next completion */
    unsigned telling; /* callers inside its notify */
};

/* The device at the other end of a lane's copy between devices; NULL for a kernel. */
static inline struct paced *peer_of(const struct command *command)
{
    return command->is_kernel ? NULL : (struct paced *)command->copy.peer;
}

/* Adds and removes a device. DUET_ENOMEM. */
DUET_MUST_CHECK int duet__bus_join(struct bus *bus, struct paced *device);
void duet__bus_part(struct bus *bus, struct paced *device);

/* Lets everything happen that is due until `now`. */
void duet__bus_advance(struct bus *bus, double now);

/* The lane has been given a copy: begins it at bus->now_s if nothing is before it. */
void duet__bus_given(struct bus *bus, struct lane *lane);

/*
 * The device is lost at bus->now_s: its commands in flight end, and copies of others from it when
 * their turn comes.
 */
void duet__bus_lose(struct bus *bus, struct paced *device);

/* When the device will have a completion, as far as that is known; INFINITY: not. */
double duet__bus_next(const struct paced *device);

/*
 * Notifies devices whose next completion comes earlier than they know, but not `but`. The mutex is
 * let go meanwhile.
 */
void duet__bus_tell(struct bus *bus, const struct paced *but);

#endif
