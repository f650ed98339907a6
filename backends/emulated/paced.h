/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Paced devices and the bus that they share. Nothing here has a thread: each caller first handles
 * all events that are due until now, in order of their dates, and tells the other devices.
 *
 * All functions but init and fini are called with the bus's mutex held. Dates are seconds on the
 * engine's clock.
 */
#ifndef DUET_EMULATED_PACED_H
#define DUET_EMULATED_PACED_H

#include "backends/emulated/internal.h"

/* State of the oldest copy of a stream: not begun, in its latency, flowing. */
enum phase { PHASE_WAITS, PHASE_LATENCY, PHASE_FLOWS };

/* A stream of copies. Its oldest one is described here, the others wait in the queue. */
struct lane {
    struct queue queue;
    struct paced *device;
    enum phase phase;
    double next_s;  /* end of the latency, or of the flow if shares stay as they are */
    double since_s; /* date from which `left` bytes flow at `rate` */
    double left, rate;
    struct flow flow;
};

struct paced {
    struct backend_device common; /* first: a backend_device is one of these */
    struct paced *self;           /* to write known_s where a device is given as const */
    struct bus *bus;
    struct queue kernels; /* all dated when they are launched */
    double free_s;        /* end of the last kernel launched */
    struct lane in, out;
    /*
     * Lanes (struct lane *) in the order in which they were given copies that leave this device's
     * memory: as in the simulation, one at a time leaves, to the host or to another device.
     */
    struct ring leaving;
    double known_s;   /* date of its next completion that the worker was last told */
    unsigned telling; /* number of callers inside its notify */
};

/* Returns the device at the other end of a copy between devices; NULL for a kernel. */
static inline struct paced *peer_of(const struct command *command)
{
    return command->is_kernel ? NULL : (struct paced *)command->copy.peer;
}

/* Add and remove a device. DUET_ENOMEM. */
DUET_MUST_CHECK int duet__bus_join(struct bus *bus, struct paced *device);
void duet__bus_part(struct bus *bus, struct paced *device);

/* Handles all events that are due until `now`. */
void duet__bus_advance(struct bus *bus, double now);

/* Begins a new copy of the lane at bus->now_s if no other is before it. */
void duet__bus_given(struct bus *bus, struct lane *lane);

/*
 * Loses the device at bus->now_s: its commands in flight end, and copies of others from it when
 * their turn comes.
 */
void duet__bus_lose(struct bus *bus, struct paced *device);

/* Returns the date of the device's next completion; INFINITY: not known. */
double duet__bus_next(const struct paced *device);

/*
 * Notifies devices whose next completion comes earlier than they know, except `but`. The mutex is
 * released meanwhile.
 */
void duet__bus_tell(struct bus *bus, const struct paced *but);

#endif
