/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Effects of a machine on the time of a kernel, beside its size: caches, the bandwidth of memory
 * that cores share, neighbours that compute, cores that are shared in time. Forward in the
 * simulation, backward in the calibration, which finds the figures of struct duet__point with the
 * same code. Plain C: no thread, no clock, deterministic.
 */
#ifndef DUET_MODEL_EFFECTS_H
#define DUET_MODEL_EFFECTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <duet/machine.h>

#include "platforms/model/curves.h"

/* Effects that can be left out, as bits. Names as in duet_config.without. */
enum duet__effect {
    DUET__EFFECT_CACHES = 1,     /* data may be missing in caches; without: base_s */
    DUET__EFFECT_BANDWIDTH = 2,  /* memory bandwidth is shared */
    DUET__EFFECT_NEIGHBOURS = 4, /* busy_ratio */
    DUET__EFFECT_CORES = 8,      /* more runnable threads than cores */
    DUET__EFFECT_WAKE_UPS = 16,  /* duet_costs.wake_s and event_s */
    DUET__EFFECT_START = 32,     /* duet_machine.first_waits */
    DUET__EFFECTS = 63,
};

/* Reads a list "caches,cores" into bits. DUET_EINVAL with a message that lists the known ones. */
DUET_MUST_CHECK int duet__effects_parse(const char *what, const char *list, unsigned *bits,
                                        struct duet_message *message);

/* ------------------------------------------------------------------------------------------- */
/* caches.c: which data of a task is in caches when it begins */

/* An operand: one access of a task to one handle. */
struct duet__operand {
    uint64_t handle; /* number of the handle, counted from 1: there is an array of them */
    uint64_t bytes;
    bool writes;
};

struct duet__caches;

/*
 * Caches of the machine's CPU workers (those of the host's memory; a kernel of an emulated device
 * runs there, too, but is not modelled), all empty: one for each socket, of the size in
 * machine->sharing. *out is the caller's (duet__caches_free). DUET_ENOMEM.
 *
 * The model: data is found by its reuse distance, the bytes of different data that were touched
 * since (the stack distance of Mattson, Gecsei, Slutz, Traiger, IBM Systems Journal 9(2), 1970),
 * this operand's own bytes included. A cache of c bytes holds what has a distance up to c/2, does
 * not hold what has one of 2c or more, and holds a part that falls linearly with the distance's
 * logarithm between them: caches are no ideal LRU stacks, and hold other things as well. A cache
 * loses what a worker of another socket writes.
 * An operand that was never touched has the distance `registered_bytes` (data was written just
 * before the run). With a size of 0 (not known) nothing ever misses.
 */
DUET_MUST_CHECK int duet__caches_new(struct duet__caches **out, const struct duet_machine *machine);
void duet__caches_free(struct duet__caches *caches); /* NULL is fine */

/*
 * Sets missing[0..count-1] to the part of each operand, 0 to 1, that is not in the cache of the
 * worker's socket when a task begins on CPU worker `worker`, then touches the operands, in order.
 * Calls come in the order in which tasks begin. Logarithmic in the number of handles; memory grows
 * with the greatest handle. DUET_ENOMEM.
 */
DUET_MUST_CHECK int duet__caches_touch(struct duet__caches *caches, unsigned worker,
                                       const struct duet__operand *operands, size_t count,
                                       uint64_t registered_bytes, double *missing);

/* Returns the part of data at `distance_bytes` that a cache does not hold; 0 for size 0. */
double duet__caches_missing(double distance_bytes, double size_bytes);

/* ------------------------------------------------------------------------------------------- */
/* effects.c: the time of one execution */

/* Time of one execution alone on the machine, on a core: fixed_s + memory_s. */
struct duet__demand {
    double fixed_s;    /* > 0; independent of the bandwidth of memory */
    double memory_s;   /* waiting for memory; grows if bandwidth is short */
    double bytes;      /* read from memory: the parts of operands that miss the cache */
    double busy_ratio; /* as in struct duet__point, but > 0; 1: no effect */
};

/*
 * Sets *out from a calibrated point and the missing parts of operands. Without `missing` (NULL), or
 * for a point without base_s, the time is the mean; without DUET__EFFECT_CACHES in `effects` it is
 * base_s. `operands` and `missing` have `count` elements.
 */
void duet__demand(const struct duet__point *point, const struct duet__operand *operands,
                  const double *missing, size_t count, unsigned effects, struct duet__demand *out);

/* Returns a number from the standard normal distribution, by two uniform ones in [0, 1) (Box,
 * Muller, Annals of Mathematical Statistics 29(2), 1958). */
double duet__normal(double u, double v);

/*
 * Draws from the distribution of a point: the factor by which an execution takes longer than
 * expected. Log-normal with mean 1 and the relative deviation `noise`, or else deviation_s /
 * mean_s, from two uniform random numbers in [0, 1).
 */
double duet__factor(const struct duet__point *point, double u, double v);

/* ------------------------------------------------------------------------------------------- */
/* effects.c: executions that run at the same time */

/* An execution that is running. */
struct duet__running {
    const struct duet__demand *demand;
    unsigned socket;
    double rate; /* result: seconds of the execution alone that pass in a second; in (0, 1] if
                    busy_ratio >= 1 */
};

/* True if kernels of a worker need a core: those of CPUs, and of emulated devices that compute.
 * Emulated devices are known by their architecture: their backend is that of the GPUs they stand
 * for. */
static inline bool duet__needs_core(const struct duet_machine *machine, unsigned worker)
{
    const struct duet_worker *of = &machine->workers[worker];
    return of->node == DUET_HOST || !strcmp(machine->archs[of->arch].name, "emulated");
}

/* Returns the share of a core that each of `running` kernels has that need one. */
static inline double duet__core_share(const struct duet_machine *machine, size_t running)
{
    return machine->cores && running > machine->cores ? (double)machine->cores / (double)running
                                                      : 1;
}

/*
 * Sets the rates of all `count` executions on the machine's cores.
 * - neighbours: with b of the socket's w - 1 other CPU workers running, busy_ratio counts by
 *   b / (w - 1);
 * - bandwidth: if the memory of a socket is asked for more than sharing.bandwidth_Bps, the memory
 *   parts of all its executions are stretched by one factor, so that they get just that;
 * - cores: if more run than machine->cores (not 0), all are slowed down by cores / count.
 * `effects`: bits that are on.
 */
void duet__rates(const struct duet_machine *machine, struct duet__running *running, size_t count,
                 unsigned effects);

#endif
