/* SPDX-License-Identifier: Apache-2.0 */
/* Max-min fair shares of a machine's links for copies that flow at the same time. */
#ifndef DUET_EMULATED_SHARES_H
#define DUET_EMULATED_SHARES_H

#include <stddef.h>

#include <duet/machine.h>

/* A copy whose bytes flow. */
struct flow {
    const struct duet_route *route; /* direct, crosses a link at least */
    double share_Bps;               /* its computed share */
    double limit_Bps;               /* limit by links that limit each copy alone */
    enum { FLOW_OPEN, FLOW_STOPS, FLOW_FIXED } state;
};

/* Working memory for the computation of shares. */
struct shares {
    const struct duet_machine *machine; /* borrowed */
    double *left_Bps;                   /* by link: bandwidth not yet given away */
    unsigned *open;                     /* by link: flows that cross it and are not fixed */
    struct flow **flows;                /* the flows; `count` is set by the caller */
    size_t count, capacity;
};

/* Makes room for the links of `machine`. DUET_ENOMEM; fini is safe then. */
DUET_MUST_CHECK int duet__shares_init(struct shares *shares, const struct duet_machine *machine);

/* Makes room for `capacity` flows. DUET_ENOMEM. */
DUET_MUST_CHECK int duet__shares_reserve(struct shares *shares, size_t capacity);

/* Sets share_Bps of every flow. */
void duet__shares_find(struct shares *shares);

/* Frees the memory. Safe on a zeroed object, and twice. */
void duet__shares_fini(struct shares *shares);

#endif
