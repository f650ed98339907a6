/* SPDX-License-Identifier: Apache-2.0 */
/*
 * More than one node: the same program, started once a node (mpirun), or simulated on a cluster.
 * Sequential task flow over nodes, as StarPU-MPI (Agullo et al., IEEE TPDS 28(12), 2017) and
 * PaRSEC's DTD (Hoque et al., ScalA 2017) have it: every process registers the same data and
 * submits the same tasks in the same order. Data has an owner. A task runs where it says
 * (DUET_NODE), else on the node that owns what it writes first (DUET_W, DUET_RW, DUET_COMMUTE), or
 * reads first, or reduces first. What it reads is sent there, once to each node that needs it, from
 * node to node along a binomial tree where several do, and stays there until it is written again.
 * A new version stays where it was written until it is needed elsewhere, or unregistered.
 *
 * A program for one node needs one call more, duet_own_at (or duet_own) for what it registers; on
 * a runtime of one node this does nothing. Memory is needed where duet_node_here says so:
 * elsewhere data may be registered at address NULL, and the runtime takes memory for replicas. Of
 * an object of a program's own type (duet_data) the pieces are sent that its pointers led to when
 * it was registered; what else it has is each process's own, also what the type's `copy` takes over
 * to a device.
 * Data that nobody owns is each process's own: tasks on such data alone run in every process. One
 * task may not use both, but any scratch.
 *
 * All of this is the application's, by one thread at a time. Calls that concern every process are
 * made in all of them, in the same order among the tasks: duet_wait, duet_acquire, duet_release,
 * duet_unregister and duet_unregister_submit, hints, reductions, and what is below. duet_acquire
 * brings the data to every process, and what it changes has to become the same in all of them; it
 * is for duet_acquire_on that one alone does. duet_wait returns when all nodes have nothing left,
 * and an error in all if there is one anywhere. duet_unregister leaves the last contents with the
 * owner; in other processes what was at the data's address is then undefined. duet_wont_use drops
 * replicas, and duet_prefetch concerns whoever has the data. Tasks that kernels, expansions and
 * `done` submit run where these do. They may only read data that has an owner, and what they read
 * has to be read by the task that submits them.
 *
 * The first failure on any node ends the run on all of them, with a message that says which. Not
 * with several nodes, and refused with DUET_EINVAL: parts of data that has an owner, references to
 * tasks that run on one node only and coming after such, config.keep_going, duet_recover.
 */
#ifndef DUET_NODES_H
#define DUET_NODES_H

#include <duet/handles.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default) /* exported by libduet, as nothing else is */

/* Which node this process is, from 0. In a simulation 0: one process stands for all of them. */
unsigned duet_node(const struct duet_runtime *runtime);
/* How many there are. */
unsigned duet_node_count(const struct duet_runtime *runtime);
/* Whether this process has what that node has: it is that node, or simulates it. */
bool duet_node_here(const struct duet_runtime *runtime, unsigned node);

/* How tiles are dealt out: a grid of rows x cols nodes. */
struct duet_grid {
    unsigned rows, cols;
};
struct duet_grid duet_node_grid(const struct duet_runtime *runtime);
/*
 * The node that a tile is dealt to by two-dimensional block cyclic distribution, as in ScaLAPACK
 * (Choi et al., 1992): number row % rows * cols + col % cols of the grid. In a grid of one column
 * that is by rows, of one row by columns.
 */
unsigned duet_node_at(const struct duet_runtime *runtime, uint64_t row, uint64_t col);

/* Owner of data that nobody owns. */
#define DUET_NOBODY UINT32_MAX

/*
 * Says who owns the data, in every process, before anything uses it (duet_reduction does): its
 * contents are valid there only. Errors: DUET_EINVAL (no such node; owned or, with several nodes,
 * used already; a part or a block), DUET_ENOMEM.
 */
DUET_MUST_CHECK int duet_own(struct duet_runtime *runtime, struct duet_handle *handle,
                             unsigned node);
/* The same, by the node that duet_node_at gives for a tile. */
DUET_MUST_CHECK int duet_own_at(struct duet_runtime *runtime, struct duet_handle *handle,
                                uint64_t row, uint64_t col);
/* Who owns it, or DUET_NOBODY. */
unsigned duet_owner(const struct duet_handle *handle);

/*
 * Gathers: what the tasks submitted so far make of the data is sent to that node, too, without
 * waiting. Errors: DUET_EINVAL (no such node, nobody owns it), DUET_ENOMEM.
 */
DUET_MUST_CHECK int duet_fetch(struct duet_runtime *runtime, struct duet_handle *handle,
                               unsigned node);
/*
 * Redistributes: that node owns the data from now on, and it is sent there. Where its process has
 * registered the data at NULL, the contents are in memory of the runtime, which duet_unregister
 * gives back: whoever wants them then takes them before (duet_acquire_on), or has them sent on.
 * Errors as duet_fetch.
 */
DUET_MUST_CHECK int duet_migrate(struct duet_runtime *runtime, struct duet_handle *handle,
                                 unsigned node);
/*
 * duet_acquire on one node: blocks there until the data is there. In other processes it returns at
 * once, and *here (may be NULL) is false. duet_release, in every process, ends it. In a process
 * that has registered the data at NULL, duet_address says where it is meanwhile. Errors as
 * duet_acquire, and DUET_EINVAL: no such node, nobody owns it.
 */
DUET_MUST_CHECK int duet_acquire_on(struct duet_runtime *runtime, struct duet_handle *handle,
                                    enum duet_mode mode, unsigned node, bool *here);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif
