/* SPDX-License-Identifier: Apache-2.0 */
/* What a run would gain by changes of the machine, the policy or the tiles: by simulating them. */
#ifndef DUET_VALIDATE_WHAT_IF_H
#define DUET_VALIDATE_WHAT_IF_H

#include "workloads/files/graph.h"
#include "runs/progress.h"
#include "runs/request.h"
#include "trace/trace.h"
#include "trace/path.h"

/* One change. */
struct duet__change {
    char *what;        /* "dgemm on c2050 twice as fast", owned */
    bool buys;         /* it needs other hardware, or faster kernels; else an option brings it */
    bool bound;        /* nothing that can be done: no policy is faster */
    double makespan_s; /* NaN: it could not be simulated, and */
    char *why;         /* is why, owned; else NULL */
};

struct duet__what_if {
    double reference_s; /* the same graph without a change, simulated likewise */
    const char *guess;  /* of request->guesses, one that reference_s rests on; NULL: on none */
    GArray *changes;    /* struct duet__change, the shortest makespan first */
};

/*
 * Simulates changes of the run of a trace, all at once, as many processes at a time as
 * request->jobs says. A change that rests on one of request->guesses, as all do if the run without
 * a change does, has that as its `why`. `request`: what its graph is simulated with, checked, on a
 * platform by its name; `path`: of the run. *number: of a signal that ended it, or 0. The caller
 * owns *out (duet__what_if_fini). Errors of duet__platform_load, duet__request_build and
 * duet__simulate, and of the simulation without a change.
 */
DUET_MUST_CHECK int duet__what_if_make(const struct duet__request *request,
                                       const struct duet__trace *trace,
                                       const struct duet__path *path,
                                       struct duet__progress *progress, struct duet__what_if *out,
                                       int *number, struct duet_message *message);

/*
 * Takes the workload of a trace with its parameters, its size and this tile, in place of a graph.
 * DUET_ENOTFOUND where it is none of duet's own or has no tiles, and errors of its check.
 */
DUET_MUST_CHECK int duet__what_if_workload(struct duet__request *request,
                                           const struct duet__trace *trace, uint64_t tile,
                                           struct duet_message *message);

/* What the memory of each GPU holds; 0: not known, or they differ, or there is none. */
uint64_t duet__what_if_memory(const struct duet_machine *machine);

void duet__what_if_fini(struct duet__what_if *what_if); /* safe on a zeroed one, and twice */

#endif
