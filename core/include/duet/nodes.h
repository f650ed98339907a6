/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Several nodes: the same program, started once a node (mpirun), or simulated on a cluster.
 * Sequential task flow over nodes, as in StarPU-MPI (Agullo et al., IEEE TPDS 28(12), 2017) and
 * PaRSEC's DTD (Hoque et al., ScalA 2017): every process registers the same data and submits the
 * same tasks in the same order. Data has an owner. A task runs on the node that it names
 * (DUET_NODE), else on the owner of the data that it writes first (DUET_W, DUET_RW, DUET_COMMUTE),
 * or reads first, or reduces first. Its inputs are sent there, once to each node that needs them,
 * along a binomial tree if several do, and stay there until they are written again. A new version
 * stays where it was written until it is needed elsewhere, or unregistered.
 *
 * A program for one node needs one call more, duet_own for the data that it registers, which does
 * nothing on a runtime of one node. A process needs memory for data where duet_node_here is true:
 * elsewhere data may be registered at address NULL, and the runtime takes memory for replicas. For
 * an object of a program's own type (duet_register_object), the pieces are sent to which its
 * pointers led when it was registered; other fields stay each process's own, also those that the
 * type's `copy` takes over to a device. Data without an owner is each process's own: tasks on such
 * data alone run in every process. A task may not use both kinds, but any scratch.
 *
 * These functions are called by one thread of the application at a time. Calls that concern every
 * process are made in all of them, in the same order among the tasks: duet_wait, duet_acquire,
 * duet_release, duet_unregister and duet_unregister_submit, hints, reductions, and the functions
 * below. duet_acquire brings the data to every process, and all of them have to make the same
 * changes to it; changes by one process alone need duet_acquire_on. duet_wait returns when no node
 * has tasks left, and an error in all processes if there is one anywhere. duet_unregister leaves
 * the last contents with the owner; in other processes the memory at the data's address is then
 * undefined. duet_wont_use drops replicas, and duet_prefetch concerns the processes that have the
 * data. Tasks submitted by kernels, expansions and `done` run on the same node as these. They may
 * only read data that has an owner, and only data that is read by the task that submits them.
 *
 * The first failure on any node ends the run on all of them, with a message that names the node.
 * Refused with DUET_EINVAL on several nodes: parts of data that has an owner, references to tasks
 * that run on one node only and coming after such, config.keep_going, duet_recover.
 */
#ifndef DUET_NODES_H
#define DUET_NODES_H

#include <duet/handles.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Returns the number of this process's node, from 0. In a simulation 0: one process simulates all
 * nodes.
 */
DUET_EXPORT unsigned duet_node(const struct duet_runtime *runtime);
/* Returns the number of nodes. */
DUET_EXPORT unsigned duet_node_count(const struct duet_runtime *runtime);
/*
 * True if this process holds the data of node `node`: it is that node, or it simulates all nodes.
 */
DUET_EXPORT bool duet_node_here(const struct duet_runtime *runtime, unsigned node);

/* The grid of rows x cols nodes to which tiles are distributed. */
struct duet_grid {
    unsigned rows, cols;
};
DUET_EXPORT struct duet_grid duet_node_grid(const struct duet_runtime *runtime);
/*
 * Returns the node of a tile by two-dimensional block cyclic distribution, as in ScaLAPACK (Choi et
 * al., 1992): number row % rows * cols + col % cols of the grid. A grid of one column distributes
 * by rows, one of one row by columns.
 */
DUET_EXPORT unsigned duet_node_at(const struct duet_runtime *runtime, uint64_t row, uint64_t col);

/* "owner" of data without one */
#define DUET_NOBODY UINT32_MAX

/*
 * Makes `node` the owner of the data, in every process, before anything uses it (duet_set_reduction
 * does): its contents are valid there only. Errors: DUET_EINVAL (no such node; owned or, with
 * several nodes, used already; a part or a block), DUET_ENOMEM.
 */
DUET_EXPORT DUET_MUST_CHECK int duet_own(struct duet_runtime *runtime, struct duet_handle *handle,
                                         unsigned node);
/* Returns the owner of the data, or DUET_NOBODY, also for NULL. */
DUET_EXPORT unsigned duet_owner(const struct duet_handle *handle);

/*
 * Gathers: sends the result of the tasks submitted so far to `node`, too, without blocking. Errors:
 * DUET_EINVAL (no such node, nobody owns it), DUET_ENOMEM.
 */
DUET_EXPORT DUET_MUST_CHECK int duet_fetch(struct duet_runtime *runtime, struct duet_handle *handle,
                                           unsigned node);
/*
 * Redistributes: `node` owns the data from now on, and it is sent there. If that process has
 * registered it at NULL, the runtime holds the contents until duet_unregister: the program takes
 * them before (duet_acquire_on), or has them sent on. Errors as duet_fetch.
 */
DUET_EXPORT DUET_MUST_CHECK int duet_migrate(struct duet_runtime *runtime,
                                             struct duet_handle *handle, unsigned node);
/*
 * duet_acquire on one node: blocks there until the data is there. In other processes it returns at
 * once, and *here (may be NULL) is false. duet_release, in every process, ends it. In a process
 * that has registered the data at NULL, duet_address returns its place meanwhile. Errors as
 * duet_acquire, and DUET_EINVAL: no such node, nobody owns it.
 */
DUET_EXPORT DUET_MUST_CHECK int duet_acquire_on(struct duet_runtime *runtime,
                                                struct duet_handle *handle, enum duet_mode mode,
                                                unsigned node, bool *here);

#ifdef __cplusplus
}
#endif
#endif
