/* SPDX-License-Identifier: Apache-2.0 */
/* Results of runs, real or simulated. */
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

/* Figures of a run on several nodes together. */
struct duet__over_nodes {
    unsigned nodes;                            /* 0 or 1: one node */
    uint64_t messages, bytes;                  /* sent from node to node */
    double idle_least, idle_median, idle_most; /* part of the makespan of a node's workers */
};

/* Executions of a kernel of one size on an architecture. */
struct duet__spent {
    char kernel[DUET_NAME_MAX], arch[DUET_NAME_MAX];
    double work;    /* of an execution */
    double seconds; /* expected of all together */
};

/* Returns what the runs of a core have executed since its last reset, *count of them, for g_free;
   of several nodes what the first has. */
struct duet__spent *duet__spent_take(const struct duet_runtime *core, unsigned *count);

/* A kernel of a simulated run on an architecture, at the size that took most of its time. */
struct duet__use {
    char kernel[DUET_NAME_MAX], arch[DUET_NAME_MAX];
    unsigned basis; /* enum duet__basis of that size */
    double work;    /* of an execution of that size */
    double seconds; /* expected of all its executions together */
    double most_s;  /* part of `seconds` of that size */
};

enum { DUET__USES = 8 };

/* Results of one run. Zero-initialise; owned, by duet__run_fini. */
struct duet__run {
    uint64_t seed;
    struct duet_stats stats;
    struct duet__over_nodes over;
    struct duet_choice choice; /* policy "": the policy had no choice of one */
    struct duet__bounds bounds;
    char barred[400]; /* "no c2050 could run add: ...": kernels that no worker of an architecture
                         could run although they have code for it; "": none */
    double wall_s;    /* seconds until it was done, its results in the host's memory */
    struct duet__verdict verdict; /* formula NULL: it was not verified */
    const char *guess;            /* one of request->guesses that the run rests on; or NULL */
    double basis[5]; /* of a simulated run: shares of the kernels' expected time by what it rests
                        on, in the order of enum duet__basis; all 0: not known */
    struct duet__use uses[DUET__USES]; /* kernels of a simulated run that take most time, with a
                                          name each; others are not here */
    struct duet__recording recording;  /* machine NULL: it was not recorded */
};

void duet__run_fini(struct duet__run *run); /* safe on a zeroed one, and twice */

/* True if the result is right, or was not verified. */
static inline bool duet__run_passes(const struct duet__run *run)
{
    return !run->verdict.formula || run->verdict.residual < run->verdict.threshold;
}

/* The measured runs of one policy. */
struct duet__series {
    const char *policy;     /* borrowed */
    struct duet__run *runs; /* as long as the number of runs asked for */
    size_t count;           /* number of finished runs */
    int error;              /* error that ended the runs; 0: none, or a signal */
    uint64_t failed_seed;   /* seed of the simulated run that failed */
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
