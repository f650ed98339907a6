/* SPDX-License-Identifier: Apache-2.0 */
/* Task graphs of runs that were recorded. */
#ifndef DUET_TRACE_GRAPH_H
#define DUET_TRACE_GRAPH_H

#include "trace/recording.h"
#include "workloads/files/graph.h"

/*
 * Makes an initialised graph of a run whose accesses were recorded. Tasks are in order
 * of submission. Their times, to the picosecond, are measured where they ran; on other
 * architectures they are means of tasks of the same kernel, work and bytes, or else of the same
 * kernel and work. Parts of data are data of their own. Waits of the application are not recorded.
 * DUET_EINVAL with a message: tasks were made by others or waited for them, or accesses are
 * missing.
 */
DUET_MUST_CHECK int duet__graph_take(struct duet__graph *graph,
                                     const struct duet__recording *recording,
                                     struct duet_message *message);

#endif
