/* SPDX-License-Identifier: Apache-2.0 */
/* Results of runs, real or simulated. */
#ifndef DUET_TRACE_RUN_H
#define DUET_TRACE_RUN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <duet/trace.h>

#include "nodes/nodes.h"
#include "trace/bounds.h"
#include "trace/recording.h"
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
    double work;    /* of one execution */
    double seconds; /* expected for all of these executions together */
};

/* Returns what the runs of a core have executed since its last reset, *count entries, for g_free.
   Of several nodes it has those of this core alone. */
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

/* ------------------------------------------------------------------------------------------- */
/*
 * Merges runs of several nodes into one run, so that everything that looks at runs need not know.
 * The machine of the records is all nodes' one after another, their memories and workers called
 * "n3.host", "n3.gpu0", "n3.cpu1"; messages are copies from host to host; tasks are numbered in the
 * order of the program, and data that is the same has the same number on all nodes.
 */

/* More memories of all nodes together are not recorded: each pair of them has a route. */
enum { DUET_MEMORIES_MOST = 1024 };

/* Results of one node. Zero-initialise; owned, by duet__node_run_fini. */
struct duet__node_run {
    unsigned workers;
    struct duet_stats stats;
    struct duet__node_classes classes;
    struct duet__recording recording; /* dated by the first node's clock; machine NULL: none */
    const struct duet__node_log *log; /* borrowed; &own if it was read */
    struct duet__node_log own;
    double ahead_s; /* seconds that its clock, and so all other dates, are ahead of the first's */
};

void duet__node_run_fini(struct duet__node_run *part); /* safe on a zeroed one, and twice */

/* Writes and reads a node's results as bytes, on machines of one kind. Reading: DUET_EIO. */
void duet__node_run_write(FILE *stream, const struct duet__node_run *part);
DUET_MUST_CHECK int duet__node_run_read(FILE *stream, struct duet__node_run *out);

/* Checks that so many memories of several nodes can be recorded. DUET_EINVAL with a message. */
DUET_MUST_CHECK int duet__memories_check(unsigned nodes, unsigned memories,
                                         struct duet_message *message);

/* The network that messages go through: figures of one card; 0: not known. */
struct duet__wires {
    double bandwidth_Bps, latency_s;
};

enum { DUET__NODE_NAME = 20 }; /* bytes of a node's name in that of several: "idgraf_x4" */

/*
 * Makes the machine of so many nodes, owned by the caller. DUET_EINVAL with a message: they have
 * more than DUET_MEMORIES_MOST memories; DUET_ENOMEM.
 */
DUET_MUST_CHECK int duet__machine_join(struct duet_machine *out,
                                       const struct duet_machine *const *machines, unsigned count,
                                       const struct duet__wires *wires,
                                       struct duet_message *message);

/*
 * Makes stats, figures of nodes, bounds and records of one run of the parts, which are in order of
 * nodes; all of them are recorded, or none. Dates count from the first submission. Errors of
 * duet__machine_join.
 */
DUET_MUST_CHECK int duet__node_runs_merge(const struct duet__node_run *parts, unsigned count,
                                          const struct duet__wires *wires, struct duet__run *run,
                                          struct duet_message *message);

/*
 * Takes figures, of several nodes with bounds, and if wanted the records, of the run at hand on one
 * node or several, which a runtime stands for. Wires as above. No task is in flight. DUET_EINVAL,
 * DUET_ENOMEM with a message.
 */
DUET_MUST_CHECK int duet__run_take(const struct duet_runtime *runtime, bool records, bool accesses,
                                   const struct duet__wires *wires, struct duet__run *run,
                                   struct duet_message *message);

/* ------------------------------------------------------------------------------------------- */
/*
 * Recordings as bytes, from one process to another of the same program, so that the types say it
 * all. What cannot be written is missed when it is read.
 */

void duet__wire_write(FILE *stream, const void *array, size_t count, size_t bytes);

/* Writes the arrays that a recording points to, names as texts with their ends. */
void duet__recording_write(FILE *stream, const struct duet__recording *recording);

/*
 * Puts what was written in place of the pointers of *out, whose counts are known; nothing if it has
 * no machine. false: a part is missing, and *out is to be freed as it is.
 */
DUET_MUST_CHECK bool duet__recording_read(FILE *stream, struct duet__recording *out);

#endif
