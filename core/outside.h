/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The interface between the scheduler core and a part of the library that stands between it and the
 * application, and carries data to and from other processes, or other cores. Included by
 * core/engine.h, at its end.
 */
#ifndef DUET_CORE_OUTSIDE_H
#define DUET_CORE_OUTSIDE_H

#include "core/engine.h"

/* ------------------------------------------------------------------------------------------- */
/* Data that comes from other processes, and goes there */

/*
 * An acquisition by a part of the library, ordered with the tasks before and after it, while nobody
 * waits for it. `granted` is called once, on any thread and like a duet_done_fn (it may submit, and
 * not wait), with no lock held, when the data is in the host's memory (R, RW) or has its place
 * there (W). Its status is an error if the run is over, or (DUET_EDATA) if data to be read is not
 * valid; acquisitions are granted in their order also in a run that has failed.
 *
 * In any case the data is the caller's alone until duet__acquisition_end, which is called once,
 * also inside `granted`, on any thread, even one unknown to the engine. Its status: 0, or a
 * negative enum duet_error, also if it was granted with one: data to be written is then not valid.
 * `now` is as for duet__done; an engine of simulated time calls it in an event of that date (while
 * ops.inside says DUET_SUBMITTER: tasks submitted by `granted` are linked at once), and then looks
 * for woken workers.
 *
 * It counts as a task without duration for duet_wait, for the window and for held tasks, and not at
 * all for makespans and counters. All have to be ended before duet_close. Errors: DUET_EINVAL (no
 * handle, no such mode, a policy with trials), DUET_ENOMEM. `priority` is kept with it: copies have
 * none.
 */
struct duet__acquisition;
typedef void (*duet__granted_fn)(void *arg, struct duet__acquisition *acquisition, int status);
DUET_MUST_CHECK int duet__acquire_submit(struct duet_runtime *core, struct duet_handle *handle,
                                         enum duet_mode mode, int priority,
                                         duet__granted_fn granted, void *arg);
void duet__acquisition_end(struct duet__acquisition *acquisition, double now, int status);
/*
 * True if `granted` may be called when the created task enters the graph or, for a released one,
 * ends. Simulated time has to reach its date exactly then, neither earlier nor with the next event.
 */
bool duet__task_lends(const struct duet_runtime *core, const struct duet_task *task);
/*
 * True if an acquisition is granted and not ended: that nothing happens is then no sign of being
 * stuck. Their holders have to end them when what they wait for will never come.
 */
bool duet__awaits(const struct duet_runtime *core);

/*
 * Says that the contents of registered data are not in this process yet, before anything uses it.
 * For data without an address (matrices, blocks, arrays) the core finds a dense place when one is
 * needed, as for duet_register_temporary.
 */
void duet__handle_elsewhere(struct duet_runtime *core, struct duet_handle *handle);
/*
 * Makes data like `like`, which belongs to another core, without an address, valid or not; parts
 * and reduction are not copied. DUET_EINVAL (it is a part; where kernels run: it would be valid, or
 * is of a program's own type), DUET_ENOMEM.
 */
DUET_MUST_CHECK int duet__handle_like(struct duet_runtime *core, const struct duet_handle *like,
                                      bool valid, struct duet_handle **out);
/*
 * Drops the contents in this process, and the memory that the core had taken for them, when all
 * earlier submissions have ended. DUET_ENOMEM.
 */
DUET_MUST_CHECK int duet__handle_drop(struct duet_runtime *core, struct duet_handle *handle);
/*
 * Returns the kernel with the name of `like` in this core, made like that one if there is none.
 * NULL: no memory.
 */
struct duet_codelet *duet__codelet_like(struct duet_runtime *core, const struct duet_codelet *like);
/*
 * Calls `give` for each piece of the data in the host's memory, as of a copy (from and to are the
 * same), while it is acquired. For a program's own type: the pieces of its object when it was
 * registered. Returns the first error of `give`, or 0.
 */
int duet__handle_pieces(const struct duet_handle *handle, duet__piece_fn give, void *arg);
/*
 * Returns the shortest time of such a task over architectures, in seconds, as for tasks of its
 * class that are submitted here; 0: not known, as with perturbed expectations.
 */
double duet__shortest_s(const struct duet_task_desc *task);
uint64_t duet__handle_bytes(const struct duet_handle *handle);
/* True for data made by duet_register_temporary. */
bool duet__handle_temporary(const struct duet_handle *handle);

/* ------------------------------------------------------------------------------------------- */
/* Calls that a gate takes over from the core */

enum duet__hint { DUET__PREFETCH, DUET__WONT_USE, DUET__INVALIDATE };

/*
 * Functions that take over calls of the application's own threads, not those inside kernels,
 * expansions and `done`. They have the arguments and results of the public functions, which have
 * checked only for NULL handles, and that the thread may wait. All are needed but `failed`, which
 * is called once, when the run of this core fails, on any thread inside the core, which it must not
 * call.
 */
struct duet__gate {
    int (*submit)(void *gate, const struct duet_task_desc *task);
    int (*wait)(void *gate);
    int (*acquire)(void *gate, struct duet_handle *handle, enum duet_mode mode);
    int (*release)(void *gate, struct duet_handle *handle);
    int (*unregister)(void *gate, struct duet_handle *handle, bool waits);
    int (*hint)(void *gate, struct duet_handle *handle, enum duet__hint kind, unsigned node);
    int (*reduction)(void *gate, struct duet_handle *handle, const struct duet_codelet *init,
                     const struct duet_codelet *combine);
    int (*recover)(void *gate);
    void (*stats_reset)(void *gate);
    void (*failed)(void *gate, int error, const char *why);
};
/*
 * Sets the gate before the first of these calls, and NULL after the last one. Behind a gate data
 * may be registered without an address even where kernels run, as if by duet__handle_elsewhere.
 */
void duet__core_gate(struct duet_runtime *core, const struct duet__gate *gate, void *arg);
/* Returns the gate's `arg`; NULL: there is no gate. */
void *duet__core_gate_arg(const struct duet_runtime *core);

/*
 * Blocks the application's thread while the window is full, as duet_submit does: for tasks that
 * duet__acquire_submit adds to it. DUET_ESTUCK.
 */
DUET_MUST_CHECK int duet__window_here(struct duet_runtime *core);

/* The public functions beneath the gate. */
int duet__submit_here(struct duet_runtime *runtime, const struct duet_task_desc *desc);
int duet__wait_here(struct duet_runtime *runtime);
int duet__acquire_here(struct duet_runtime *runtime, struct duet_handle *handle,
                       enum duet_mode mode);
int duet__release_here(struct duet_runtime *runtime, struct duet_handle *handle);
int duet__unregister_here(struct duet_runtime *runtime, struct duet_handle *handle);
int duet__unregister_submit_here(struct duet_runtime *runtime, struct duet_handle *handle);
int duet__hint_here(struct duet_runtime *core, struct duet_handle *handle, enum duet__hint kind,
                    unsigned node);
int duet__reduction_here(struct duet_runtime *runtime, struct duet_handle *handle,
                         const struct duet_codelet *init, const struct duet_codelet *combine);
int duet__recover_here(struct duet_runtime *runtime);
void duet__stats_reset_here(struct duet_runtime *runtime);

#endif
