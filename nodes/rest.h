/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Waiting of the thread that makes progress over MPI: it spins at first, then sleeps and polls in
 * turn, in reality and in simulations.
 */
#ifndef DUET_NODES_REST_H
#define DUET_NODES_REST_H

static const double DUET__REST_AFTER_S = 20e-6; /* time for which it spins */
static const double DUET__REST_MOST_S = 100e-6; /* longest sleep at a time */

/* Returns how long it sleeps after it has waited for waited_s; 0: it spins. No wait gets longer by
   more than an eighth. */
static inline double duet__rest_s(double waited_s)
{
    if (waited_s < DUET__REST_AFTER_S)
        return 0;
    return waited_s / 8 < DUET__REST_MOST_S ? waited_s / 8 : DUET__REST_MOST_S;
}

#endif
