/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How the thread that makes progress over MPI waits: it spins at first, then sleeps and looks in
 * turn. So it is in reality, and in simulations.
 */
#ifndef DUET_NODES_REST_H
#define DUET_NODES_REST_H

static const double DUET__REST_AFTER_S = 20e-6; /* it spins for so long, */
static const double DUET__REST_MOST_S = 100e-6; /* and sleeps for so long at a time at most */

/* How long it sleeps when it has waited for so long; 0: it spins. No wait gets longer by more than
   an eighth. */
static inline double duet__rest_s(double waited_s)
{
    if (waited_s < DUET__REST_AFTER_S)
        return 0;
    return waited_s / 8 < DUET__REST_MOST_S ? waited_s / 8 : DUET__REST_MOST_S;
}

#endif
