/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Links whose bandwidth flows share max-min fairly (Bertsekas, Gallager, Data Networks, 1992,
 * section 6.5.2). A flow crosses links, or none, at up to a limit of its own. When flows begin or
 * end, rates are set anew for the links and flows alone that hang together with theirs.
 *
 * Dates are numbers, in seconds: nothing here has a clock, a thread or a lock.
 */
#ifndef DUET_CORE_FLUID_H
#define DUET_CORE_FLUID_H

#include <stddef.h>

#include <duet/error.h>

struct duet__fluid;
struct duet__stream;

/* Makes `count` links of these bandwidths > 0. *out is the caller's. DUET_ENOMEM: it is NULL. */
DUET_MUST_CHECK int duet__fluid_new(struct duet__fluid **out, const double *bandwidth_Bps,
                                    size_t count);

/* Frees links and flows. Safe on NULL. */
void duet__fluid_free(struct duet__fluid *fluid);

/*
 * Begins a flow of `bytes` at `date`, not before that of any earlier call. It crosses `count`
 * links, each once, at `limit_Bps` at most (INFINITY where it crosses a link: none). It is returned
 * by duet__fluid_end with its `tag`. NULL: no memory, nothing has changed.
 */
struct duet__stream *duet__fluid_begin(struct duet__fluid *fluid, const unsigned *links,
                                       unsigned count, double limit_Bps, double bytes, double date,
                                       void *tag);

/* Returns the date of the first end if no flow is begun until then; INFINITY: there is no flow. */
double duet__fluid_next(struct duet__fluid *fluid);

/*
 * Removes a flow that ends before `date` or within 1e-12 s of it: ends that differ by rounding
 * alone are one. Returns its tag, NULL if there is none. To be called until then whenever time has
 * come to duet__fluid_next, before flows begin.
 */
void *duet__fluid_end(struct duet__fluid *fluid, double date);

#endif
