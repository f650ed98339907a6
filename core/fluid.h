/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Links whose bandwidth flows share max-min fairly (Bertsekas, Gallager, Data Networks, 1992,
 * section 6.5.2). A flow crosses links, or none, at up to a limit of its own. When flows begin or
 * end, only flows that share links with these, directly or through others, get new rates; where
 * there are many flows, mostly only those that the change reaches.
 *
 * Dates are numbers, in seconds: nothing here has a clock, a thread or a lock.
 */
#ifndef DUET_CORE_FLUID_H
#define DUET_CORE_FLUID_H

#include <stddef.h>

#include <duet/error.h>
#include <duet/machine.h>

struct duet__fluid;
struct duet__fluid_flow;

/* Makes `count` links of these bandwidths > 0. *out is the caller's. DUET_ENOMEM: it is NULL. */
DUET_MUST_CHECK int duet__fluid_new(struct duet__fluid **out, const double *bandwidth_Bps,
                                    size_t count);

/* Frees links and flows. Safe on NULL. */
void duet__fluid_free(struct duet__fluid *fluid);

/* Writes the links of a route that its copies share to `links`, at most route->count. Returns
 * their number; *limit_Bps is what the other links leave to each copy, INFINITY: there are none. */
unsigned duet__fluid_route(const struct duet_machine *machine, const struct duet_route *route,
                           unsigned *links, double *limit_Bps);

/*
 * Makes a flow across `count` links, each once, at `limit_Bps` at most (INFINITY where it crosses a
 * link: none). Until it has begun it is the caller's, who drops it; then until its end it is
 * freed with `fluid`. NULL: no memory.
 */
struct duet__fluid_flow *duet__fluid_flow_new(struct duet__fluid *fluid, const unsigned *links,
                                              unsigned count, double limit_Bps, void *tag);

/* Begins a flow of `bytes` at `date`, not before that of any earlier call. */
void duet__fluid_begin(struct duet__fluid *fluid, struct duet__fluid_flow *flow, double bytes,
                       double date);

/* Returns the date of the first end if no flow is begun until then; INFINITY: there is no flow. */
double duet__fluid_next(struct duet__fluid *fluid);

/*
 * Removes a flow that ends before `date` or within 1e-12 s of it: ends that differ by rounding
 * alone are one. To be called whenever time has come to duet__fluid_next, before flows begin, until
 * it returns NULL: there is none. Flows are valid until the next one is made.
 */
struct duet__fluid_flow *duet__fluid_end(struct duet__fluid *fluid, double date);

/* Removes a flow at `date`, whether it has begun or not. */
void duet__fluid_drop(struct duet__fluid *fluid, struct duet__fluid_flow *flow, double date);

void *duet__fluid_flow_tag(const struct duet__fluid_flow *flow);

/* Returns the end of a flow that has begun, as known by the last duet__fluid_next. */
double duet__fluid_flow_end_s(const struct duet__fluid_flow *flow);

#endif
