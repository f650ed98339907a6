/* SPDX-License-Identifier: Apache-2.0 */
/* How copies that flow at the same time share the links of a machine: max-min fairly. */
#ifndef DUET_EMULATED_SHARES_H
#define DUET_EMULATED_SHARES_H

#include <stddef.h>

#include <duet/machine.h>

/* A copy whose bytes flow. */
struct flow {
    const struct duet_route *route; /* direct, crosses a link at least */
    double share_Bps;               /* what it gets */
    double limit_Bps;               /* of the links that limit each copy alone */
    enum { FLOW_OPEN, FLOW_STOPS, FLOW_FIXED } state;
};

/* What finding the shares needs. */
struct shares {
    const struct duet_machine *machine; /* borrowed */
    double *left_Bps;                   /* of each link: not yet given away */
    unsigned *open;                     /* of each link: flows that cross it and are not fixed */
    struct flow **flows;                /* those to find shares for: `count`, set by the caller */
    size_t count, capacity;
};

/* Makes room for the links of `machine`. DUET_ENOMEM; safe to fini then. */
DUET_MUST_CHECK int duet__shares_init(struct shares *shares, const struct duet_machine *machine);

/* Makes room for `capacity` flows. DUET_ENOMEM. */
DUET_MUST_CHECK int duet__shares_reserve(struct shares *shares, size_t capacity);

/* Sets share_Bps of every flow. */
void duet__shares_find(struct shares *shares);

/* Safe on a zeroed object, and twice. */
void duet__shares_fini(struct shares *shares);

#endif
