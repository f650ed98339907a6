/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Graphs that are recorded once and submitted again and again, as by iterations: what duet_submit
 * finds out about each task is kept. A graph submitted again is the same as its tasks submitted
 * again: these are new tasks (or one for all: duet_graph_submit), in the order of their recording,
 * with dependencies on all tasks before and after. The conventions are those of duet/duet.h.
 * `runtime` and `graph` may not be NULL where nothing else is said.
 *
 * A graph is used by one thread at a time, and no longer than its runtime but for duet_graph_free.
 * The data that it names stays registered, and cut as it was, as long as the graph is submitted.
 * Arguments and `done_arg` are copied as they are: what they point to stays valid as long.
 */
#ifndef DUET_GRAPH_H
#define DUET_GRAPH_H

#include <duet/handles.h>

#ifdef __cplusplus
extern "C" {
#endif

struct duet_graph; /* recorded tasks; the application owns it until duet_graph_free */

/*
 * Records, until duet_graph_end, the tasks that the calling thread submits, which run as usual.
 * Tasks that tasks submit, hints and waits are not recorded. DUET_EINVAL: the thread records
 * already, or runs a task. DUET_ENOMEM.
 */
DUET_EXPORT DUET_MUST_CHECK int duet_graph_begin(struct duet_runtime *runtime);

/*
 * Ends the recording, also with an error; *out is then NULL. DUET_EINVAL: the thread records
 * nothing, or runs a task (its recording then goes on); a recorded task comes after others by
 * references (`after`); the thread has called duet_acquire, duet_unregister, duet_unregister_submit
 * or duet_uncut meanwhile, outside of tasks, which a graph cannot do again. DUET_ENOMEM.
 */
DUET_EXPORT DUET_MUST_CHECK int duet_graph_end(struct duet_runtime *runtime,
                                               struct duet_graph **out);

/*
 * Submits all tasks of a graph again, each as duet_submit. A task has no reference then; its `done`
 * is called, with the same argument. Any thread; the calling thread may record another graph, in
 * which the tasks then are. Each thread that submits a graph may exceed config.window by up to 31
 * tasks, where others submit at the same time. DUET_EINVAL: `graph` is NULL, or of another runtime.
 * Other errors as duet_submit: tasks of the graph before the refused one were submitted.
 *
 * Submitted at full cost are tasks with a name, an iteration, a node or a `done`, with scratch, and
 * with more than DUET_ARGS_INLINE bytes of arguments (two values of duet_insert of up to 16 bytes
 * each fit, with their sizes); and all tasks inside of others, of runs with several nodes, and of
 * runs with perturbations.
 *
 * Where one NVIDIA GPU alone can run all tasks of a graph, one at a time (gpu_streams), they are
 * one task, "graph of N tasks": if there are several, all have `capturable` codelets, none is
 * submitted at full cost, reduces, commutes or uses data that is no matrix, and the data of all
 * fits into the GPU's memory at once. It fails as a whole. Its kernels are launched one by one at
 * first, and as one CUDA graph from then on. Their functions are called again only after a change
 * of values, handles or addresses, and once for each further submission that is in flight at the
 * same time; but each time if what they enqueue cannot be captured.
 */
DUET_EXPORT DUET_MUST_CHECK int duet_graph_submit(struct duet_runtime *runtime,
                                                  struct duet_graph *graph);

/*
 * Replaces, in later submissions, the value number `value` (from 0) of task number `task` (from 0,
 * in the order of recording) that was given to duet_insert; or, with number 0, all arguments of a
 * task that was given to duet_submit. `bytes` is the size of the value, or of all arguments, as in
 * the recording; they are copied from `at`.
 * DUET_EINVAL: there is no such value.
 */
DUET_EXPORT DUET_MUST_CHECK int duet_graph_set_value(struct duet_graph *graph, size_t task,
                                                     size_t value, const void *at, size_t bytes);

/*
 * Lets tasks use `instead`, in later submissions, where they used `recorded` in the recording,
 * whatever was set before: two calls exchange two handles. `recorded` may have been unregistered
 * since. DUET_EINVAL: no task of the graph used `recorded`; `instead` is NULL or of another
 * runtime; the two differ in rows, columns or element size; or one of them is a part of cut data,
 * or no matrix.
 */
DUET_EXPORT DUET_MUST_CHECK int duet_graph_set_handle(struct duet_graph *graph,
                                                      struct duet_handle *recorded,
                                                      struct duet_handle *instead);

/* Frees a graph, at any time, also while its tasks run, and after duet_close. NULL is fine. */
DUET_EXPORT void duet_graph_free(struct duet_graph *graph);

#ifdef __cplusplus
}
#endif
#endif
