/* SPDX-License-Identifier: Apache-2.0 */
/* The simulated engine: declarations for the library's start-up, which binds a core to it. */
#ifndef DUET_SIM_SIM_H
#define DUET_SIM_SIM_H

#include <stdbool.h>
#include <stdint.h>

#include <duet/machine.h>
#include <duet/random.h>

#include "core/engine.h"
#include "nodes/transport.h"
#include "platforms/model/draws.h"
#include "platforms/model/effects.h"

/* Behaviour of the simulated machine. */
struct sim_options {
    const struct duet__calibration
        *calibration; /* kernel times; borrowed until the engine is gone */
    bool noise;       /* draw kernel times from their distribution; else each takes its mean */
    struct duet__draws
        draws;        /* draws of kernel times, used with noise; costs and links are drawn before */
    bool jitter;      /* draw latencies of threads (costs.wake_s, event_s); always done with
                         noise */
    bool extrapolate; /* allow sizes beyond the measured ones */
    uint64_t seed;    /* seed of the noise */
    unsigned effects; /* bits of enum duet__effect: the simulated effects */
    unsigned nodes;   /* machines of this kind on one clock; 0: one */
    const struct duet__network *network; /* network between them, copied; NULL: one node */
    bool simgrid; /* SimGrid carries copies and messages; else duet's own engine, unless the
                     network's is a file */
};

/* Returns the seed of a node: nodes have no random numbers in common. */
static inline uint64_t duet__node_seed(uint64_t seed, unsigned node)
{
    return node ? duet_random_stream(seed ^ UINT64_C(0x6e6f6465), node) : seed;
}

/*
 * Creates the engine of `machine` (copied; its `costs` are charged), or the engines of
 * options.nodes such machines: out[n], owned by the caller until a core takes it over. Time ends
 * for all of them when the first one is freed. Errors, with a message: DUET_ENOMEM, DUET_EINVAL
 * (too many nodes), and with SimGrid DUET_EBUSY (once a process, ever), DUET_EABSENT (built
 * without it), DUET_EINVAL (a network's file), DUET_EIO; out[0] is NULL.
 */
DUET_MUST_CHECK int duet__sim_new(void **out, const struct duet_machine *machine,
                                  const struct sim_options *options, struct duet_message *message);

/*
 * Returns the transport between the nodes of one simulation; its argument is any of their engines.
 * It has no `gather`: there is one process.
 */
const struct duet__transport *duet__sim_transport(void);

/* Returns the operations that a core is given together with the engine. */
const struct duet__engine_ops *duet__sim_ops(void);

/* Tells the engine which core it serves; before the first task. */
void duet__sim_attach(void *engine, struct duet_runtime *core);

#endif
