/* SPDX-License-Identifier: Apache-2.0 */
/*
 * More than one node: opening, and what others may ask. A `struct duet__nodes` stands behind the
 * gate of the application's runtime (the front). It does the same bookkeeping in every process,
 * from the sequence of calls alone, and acts for the nodes that are hosted here: one of them in
 * reality, all of them in a simulation, each with a core of its own.
 */
#ifndef DUET_NODES_NODES_H
#define DUET_NODES_NODES_H

#include <duet/duet.h>

#include "nodes/transport.h"

struct duet__node_log;

struct duet__nodes_config {
    unsigned count;         /* of nodes, more than 1 */
    unsigned first, hosted; /* those hosted here: one, or all */
    struct duet_grid grid;  /* rows * cols is count */
    /* of the hosted ones; the first is the front, through whose gate the application's calls come.
       Copied; the cores stay the caller's */
    struct duet_runtime *const *cores;
    const struct duet__transport *transport;
    void *transport_of; /* its argument: duet__nodes_free closes it */
};

/*
 * Stands between the application and its runtime from now on: before anything is registered. On
 * success *out is the caller's. DUET_EINVAL with a message, DUET_ENOMEM.
 */
DUET_MUST_CHECK int duet__nodes_new(struct duet__nodes **out,
                                    const struct duet__nodes_config *config,
                                    struct duet_message *message);

/* Closes the transport first. Before the cores are freed. NULL is fine. */
void duet__nodes_free(struct duet__nodes *nodes);

/* What stands before this runtime; NULL: it is one node alone. */
struct duet__nodes *duet__nodes_of(const struct duet_runtime *front);

/* The core of a node; NULL: it is not hosted here. */
struct duet_runtime *duet__nodes_core(const struct duet__nodes *nodes, unsigned node);

/* What it has recorded beside its core; likewise. */
const struct duet__node_log *duet__nodes_log(const struct duet__nodes *nodes, unsigned node);

/*
 * The longest path through the tasks on data with owners, of all nodes and since the last reset,
 * each task as long as it was expected here to take where it is fastest when it was submitted (none
 * if that was not known). Kept from duet__nodes_keep_path on, for some 40 ns a task; else 0.
 */
void duet__nodes_keep_path(struct duet__nodes *nodes);
double duet__nodes_path_s(const struct duet__nodes *nodes);

/* As `gather` and `ahead` of the transport, of a front. */
DUET_MUST_CHECK int duet__nodes_gather(struct duet__nodes *nodes, const void *mine, size_t bytes,
                                       void **all, size_t *sizes);
double duet__nodes_ahead(const struct duet__nodes *nodes);

/*
 * The run has failed elsewhere: it fails in all cores that are hosted here, with this error and
 * message, which names the node. Any thread; only the first failure counts.
 */
void duet__nodes_failed(struct duet__nodes *nodes, int error, const char *why);

/* The most square grid of so many nodes, rows <= cols. */
struct duet_grid duet__grid_square(unsigned count);

#endif
