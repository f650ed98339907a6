/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A model of copies between memory nodes, which share the links of a machine. A device makes one
 * copy at a time in each direction, in the order in which they were added; the host makes any
 * number. A copy waits until it is the first in both directions that it needs, lets the latency of
 * its route pass, and then flows at its max-min fair share of the links (Bertsekas, Gallager, Data
 * Networks, 1992, section 6.5.2).
 *
 * Dates are numbers, in seconds: nothing here has a clock, a thread or a lock. They depend on what
 * was added and when, and not on how often the model is advanced.
 *
 * The links are those of core/fluid.h, by which simulations carry their copies, too
 * (sim/network_test.c compares them).
 */
#ifndef DUET_CORE_FLOWS_H
#define DUET_CORE_FLOWS_H

#include <stddef.h>
#include <stdint.h>

#include <duet/machine.h>

#include "core/fluid.h"

enum duet__flow_state { DUET__QUEUED, DUET__LATENT, DUET__FLOWING, DUET__ENDED };

/* A copy. The caller sets the first members, and leaves `state` and those behind it 0. */
struct duet__flow {
    unsigned source, destination; /* memory nodes with a direct route */
    double bytes;
    double start_s;  /* date of the launch and, once the copy has begun, of its beginning */
    void *tag;       /* the caller's */
    unsigned worker; /* the caller's */
    bool cancelled;  /* the copy ends as soon as it begins */
    enum duet__flow_state state;
    double date_s; /* LATENT, FLOWING: of its next state; ENDED: its end; QUEUED: INFINITY */
    struct duet__fluid_flow *stream;
};

struct duet__flows {
    const struct duet_machine *machine; /* borrowed */
    double scale;                       /* factor of all times */
    struct duet__flow *flows;           /* in the order in which they were added */
    size_t count, capacity;
    double next_s; /* date of the next change if no copy is added; INFINITY: none */
    struct duet__fluid *fluid;
    uint64_t pass, (*taken)[2]; /* by node: last pass in which its direction in, out was taken */
};

/* Makes a model without copies. DUET_ENOMEM; fini is safe then. */
DUET_MUST_CHECK int duet__flows_init(struct duet__flows *flows, const struct duet_machine *machine,
                                     double scale);

/* Frees the memory. Safe on a zeroed object, and twice. */
void duet__flows_fini(struct duet__flows *flows);

/*
 * Adds a copy behind all others. It is launched at flow->start_s: not before the date up to which
 * the model has been advanced. DUET_ENOMEM: nothing has changed.
 */
DUET_MUST_CHECK int duet__flows_add(struct duet__flows *flows, const struct duet__flow *flow);

/* Lets all happen that is due until `date`. Copies that have ended stay until they are removed. */
void duet__flows_advance(struct duet__flows *flows, double date);

/* Removes the copy number `index`, which has ended, and returns it. */
struct duet__flow duet__flows_remove(struct duet__flows *flows, size_t index);

/*
 * Cancels a copy that has not ended, at `date`, to which the model has been advanced. If it has
 * begun, it ends then, else when it is the first in one direction: the one into its destination or,
 * to the host, out of its source. It has ended once the model is advanced again.
 */
void duet__flows_cancel(struct duet__flows *flows, struct duet__flow *flow, double date);

#endif
