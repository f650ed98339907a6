/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The critical path says why a run took as long as it did: it is the chain of kernels, copies and
 * waits that ends last, each link of which began when the one before it had ended.
 */
#ifndef DUET_TRACE_PATH_H
#define DUET_TRACE_PATH_H

#include <glib.h>

#include "workloads/files/graph.h"
#include "trace/account.h"
#include "trace/trace.h"

/* A stretch of the path; the next one begins where it ends. */
struct duet__step {
    /* work or wait of the stretch; OVERHEAD: nothing that the records show; BEFORE: the application
       submits, or does something else */
    enum duet__state state;
    size_t event; /* index of the kernel or copy */
    double start_s, end_s;
    enum duet_release after; /* kind of what a kernel waited for last */
};

/* All stretches of the path of one kind. */
struct duet__path_part {
    enum duet__state state;
    unsigned kernel, arch; /* indices, for kernels */
    size_t count;          /* number of stretches */
    double seconds;
};

struct duet__path {
    GArray *steps; /* struct duet__step, from 0 to the makespan */
    GArray *parts; /* struct duet__path_part, the longest first; their sum is the makespan */
    /* number of kernels of the path that ran while a later task of it was ready for their worker,
       which begins a chain longer by a quarter (at the times of the run); 0 without a graph */
    double hindered_s;
};

/*
 * Finds the path by walking back from the end, along what released each event: O(n log n). `graph`
 * is what duet__graph_take makes of the recording, or NULL. The recording has an account, and a
 * task; its events are sorted by start.
 */
void duet__path_make(const struct duet__recording *recording, const struct duet__graph *graph,
                     struct duet__path *out);

void duet__path_fini(struct duet__path *path); /* safe on a zeroed one, and twice */

#endif
