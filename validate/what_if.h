/* SPDX-License-Identifier: Apache-2.0 */
/* Gains of a run by changes of the machine, the policy or the tiles: found by simulating them. */
#ifndef DUET_VALIDATE_WHAT_IF_H
#define DUET_VALIDATE_WHAT_IF_H

#include "workloads/files/graph.h"
#include "runs/monitor.h"
#include "runs/request.h"
#include "trace/trace.h"
#include "trace/account.h"

/* One change. */
struct duet__change {
    char *what;        /* "dgemm on c2050 twice as fast", owned */
    bool buys;         /* the change needs other hardware, or faster kernels; else an option brings
                          it */
    bool bound;        /* the change is no possible one, but a bound: no policy is faster */
    double makespan_s; /* NaN: the change could not be simulated */
    char *why;         /* why it could not be simulated, owned; else NULL */
};

struct duet__what_if {
    double reference_s; /* simulated makespan of the same graph without a change */
    const char *guess;  /* the guess in request->guesses that reference_s rests on; NULL: none */
    GArray *changes;    /* struct duet__change, the shortest makespan first */
};

/*
 * Simulates changes of the run of a trace, all at once, as many processes at a time as
 * request->jobs says. `request`: simulates the run's graph, checked, on a platform by its name;
 * `path`: that of the run. A change that rests on one of request->guesses, as all do if the run
 * without a change does, has that as its `why`. *number: the signal that ended it, or 0. The caller
 * owns *out (duet__what_if_fini). Returns errors of duet__platform_load, duet__request_build and
 * duet__simulate, and of the simulation without a change.
 */
DUET_MUST_CHECK int duet__what_if_make(const struct duet__request *request,
                                       const struct duet__trace *trace,
                                       const struct duet__path *path,
                                       struct duet__progress *progress, struct duet__what_if *out,
                                       int *number, struct duet_message *message);

/*
 * Sets a request to the workload of a trace with its parameters, its size and this tile, in place
 * of a graph. Returns DUET_ENOTFOUND if the workload is none of duet's own or has no tiles, or
 * errors of its check.
 */
DUET_MUST_CHECK int duet__what_if_workload(struct duet__request *request,
                                           const struct duet__trace *trace, uint64_t tile,
                                           struct duet_message *message);

/* Returns the bytes that the memory of each GPU holds; 0: not known, or they differ, or there is
   none. */
uint64_t duet__what_if_memory(const struct duet_machine *machine);

void duet__what_if_fini(struct duet__what_if *what_if); /* safe on a zeroed one, and twice */

#endif
