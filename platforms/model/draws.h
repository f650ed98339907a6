/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Draws of what is uncertain of a simulated machine, by which a prediction has an interval: each
 * replication is simulated on a machine whose kernel times, state, links and costs are drawn once.
 * Draws depend on the seed and on names alone, so that two policies of one seed meet the same
 * machine (common random numbers). Seeds come in pairs of opposite draws, 2k and 2k + 1, by which
 * medians of replications scatter less (antithetic variates: Hammersley, Morton, Mathematical
 * Proceedings of the Cambridge Philosophical Society 52(3), 1956).
 */
#ifndef DUET_MODEL_DRAWS_H
#define DUET_MODEL_DRAWS_H

#include <duet/machine.h>

#include "platforms/model/curves.h"
#include "platforms/model/network.h"

/* A figure that is as it is known in all draws, by the two names of its draw. */
struct duet__hold {
    const char *name, *of; /* "dgemm", "c2050"; or "" and "state", "costs", "memory", "links",
                              "network" or "latency" */
    bool measured;         /* the figure is drawn, as a kernel's time that was measured is */
};

struct duet__draws {
    uint64_t seed;
    unsigned runs; /* runs of the later measurement, of whose median the prediction is: 1: of one
                      run; 0: nothing is drawn, and all factors but the state's are 1 */
    const struct duet__hold *hold; /* NULL: no figure is held */
};

enum { DUET__DRAWS_RUNS = 100000 }; /* most runs of a median */

/* Reads "run" or "median:K" into *runs, NULL as 0. DUET_EINVAL with a message. */
DUET_MUST_CHECK int duet__draws_parse(const char *what, const char *text, unsigned *runs,
                                      struct duet_message *message);

/* Returns a number from the standard normal distribution, of a quantity known by two names. */
double duet__draw_normal(const struct duet__draws *draws, const char *name, const char *of);

/* Returns the factor of all times of a kernel on an architecture, by the uncertainty of a point. */
double duet__draw_kernel(const struct duet__draws *draws, const char *kernel, const char *arch,
                         const struct duet__point *point);

/*
 * Returns the factor of the times of all kernels of CPU workers: the median of `runs` states, as
 * the runs of a median meet one each, and the drift since the calibration. The median state where
 * nothing is drawn; 1 where no state is known.
 */
double duet__draw_state(const struct duet__draws *draws, const struct duet__states *states);

/* Draws the costs of the runtime's operations on a machine, and, unless `states` is NULL, the
   bandwidths of its links and of its memory, which is slower by the drawn state. */
void duet__draw_machine(const struct duet__draws *draws, const struct duet__states *states,
                        struct duet_machine *machine);

/* Draws the bandwidth of a network between nodes, and by one more factor its latency and the costs
   of a message. What a SimGrid file says of bandwidth and latency stays. */
void duet__draw_network(const struct duet__draws *draws, struct duet__network *network);

#endif
