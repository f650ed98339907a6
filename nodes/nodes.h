/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs on several nodes: opening, and queries. A `struct duet__nodes` is behind the gate of the
 * application's runtime (the front). It does the same bookkeeping in every process, from the
 * sequence of calls alone, and acts for the nodes that are hosted here: one of them in reality, all
 * of them in a simulation, each with a core of its own.
 */
#ifndef DUET_NODES_NODES_H
#define DUET_NODES_NODES_H

#include <duet/duet.h>

#include "nodes/transport.h"

struct duet__node_log;

struct duet__nodes_config {
    unsigned count;         /* number of nodes, more than 1 */
    unsigned first, hosted; /* first node of this process, and number of them: one, or all */
    struct duet_grid grid;  /* rows * cols is count */
    /* cores of the hosted nodes; the first is the front, through whose gate the application's calls
       come. Copied; the cores stay the caller's */
    struct duet_runtime *const *cores;
    const struct duet__transport *transport;
    void *transport_of; /* the transport's argument: duet__nodes_free closes it */
};

/*
 * Puts the nodes' model between the application and its runtime, before anything is registered. On
 * success *out is the caller's. DUET_EINVAL with a message, DUET_ENOMEM.
 */
DUET_MUST_CHECK int duet__nodes_new(struct duet__nodes **out,
                                    const struct duet__nodes_config *config,
                                    struct duet_message *message);

/* Frees the model, and closes the transport first. Before the cores are freed. NULL is fine. */
void duet__nodes_free(struct duet__nodes *nodes);

/* Returns the model in front of this runtime; NULL: it is one node alone. */
struct duet__nodes *duet__nodes_of(const struct duet_runtime *front);

/* Returns the core of a node; NULL: it is not hosted here. */
struct duet_runtime *duet__nodes_core(const struct duet__nodes *nodes, unsigned node);

/* Returns a node's records beside those of its core; NULL: it is not hosted here. */
const struct duet__node_log *duet__nodes_log(const struct duet__nodes *nodes, unsigned node);

/*
 * Keeps (duet__nodes_keep_path) and returns the longest path in seconds through the tasks on data
 * with owners, over all nodes and since the last reset. Each task counts with the time expected
 * here when it was submitted, where it is fastest (none if that was not known). Costs some 40 ns a
 * task; the length is 0 if it was not kept.
 */
void duet__nodes_keep_path(struct duet__nodes *nodes);
double duet__nodes_path_s(const struct duet__nodes *nodes);

/* Call `gather` and `ahead` of the front's transport. */
DUET_MUST_CHECK int duet__nodes_gather(struct duet__nodes *nodes, const void *mine, size_t bytes,
                                       void **all, size_t *sizes);
double duet__nodes_ahead(const struct duet__nodes *nodes);

/*
 * Fails the run in all cores that are hosted here, as it has failed elsewhere, with this error and
 * message, which names the node. Any thread; only the first failure counts.
 */
void duet__nodes_failed(struct duet__nodes *nodes, int error, const char *why);

/* Returns the most square grid of `count` nodes, rows <= cols. */
struct duet_grid duet__grid_square(unsigned count);

#endif
