/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Merges runs of several nodes into one run, so that everything that looks at runs need not know.
 * The machine of the records is all nodes' one after another, their memories and workers called
 * "n3.host", "n3.gpu0", "n3.cpu1"; messages are copies from host to host; tasks are numbered in the
 * order of the program, and data that is the same has the same number on all nodes.
 */
#ifndef DUET_TRACE_MERGE_H
#define DUET_TRACE_MERGE_H

#include <stdio.h>

#include <glib.h>

#include "nodes/log.h"
#include "trace/run.h"

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

/* Position of a node's parts in the machine of all. Zero-initialise for the first node. */
struct duet__place {
    unsigned node, memory, worker, link, socket;
};

/* Moves the place from a node, whose machine that is, to the next one. */
void duet__place_move(struct duet__place *place, const struct duet_machine *machine);

/* Returns the number of an architecture in the machine of all; arch_count: it is new. */
unsigned duet__arch_find(const struct duet_machine *machine, const struct duet_arch *arch);

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

#endif
