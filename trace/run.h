/* SPDX-License-Identifier: Apache-2.0 */
/* What runs left, in whatever world they were made. */
#ifndef DUET_TRACE_RUN_H
#define DUET_TRACE_RUN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <duet/error.h>
#include <duet/trace.h>

#include "trace/recording.h"
#include "trace/bounds.h"
#include "workloads/workload.h"

/* What several nodes have done together. */
struct duet__over_nodes {
    unsigned nodes;                            /* 0 or 1: there is one */
    uint64_t messages, bytes;                  /* from node to node */
    double idle_least, idle_median, idle_most; /* part of the makespan of a node's workers */
};

/* One run. Zero-initialise; owned, by duet__run_fini. */
struct duet__run {
    uint64_t seed;
    struct duet_stats stats;
    struct duet__over_nodes over;
    struct duet_choice choice; /* policy "": it was not the policy's to choose one */
    struct duet__bounds bounds;
    char barred[400]; /* "no c2050 could run add: ...", of kernels that no worker of an
                         architecture could run although they have code for it; "": none */
    double wall_s; /* what it took to make, of a real run with its results back in the host's memory
                    */
    struct duet__verdict verdict;     /* formula NULL: it was not verified */
    const char *guess;                /* of request->guesses, one that the run rests on; or NULL */
    struct duet__recording recording; /* machine NULL: it was not recorded */
};

void duet__run_fini(struct duet__run *run); /* safe on a zeroed one, and twice */

/* Whether its result is right, or nobody has asked. */
static inline bool duet__run_passes(const struct duet__run *run)
{
    return !run->verdict.formula || run->verdict.residual < run->verdict.threshold;
}

/* The measured runs of one policy. */
struct duet__series {
    const char *policy;     /* borrowed */
    struct duet__run *runs; /* with room for all that were asked for */
    size_t count;           /* that are finished */
    int error;              /* that ended them; 0: none, or a signal */
    uint64_t failed_seed;   /* of the simulated run that failed so */
    struct duet_message message;
};

void duet__series_fini(struct duet__series *series); /* safe on a zeroed one */

/* The records of the first run; NULL: there is none, or it was not recorded. */
static inline const struct duet__recording *duet__series_recording(
    const struct duet__series *series)
{
    return series->count && series->runs[0].recording.machine ? &series->runs[0].recording : NULL;
}

#endif
