/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The seam between the scheduler core and a part of the library that stands between it and the
 * application, and carries data to and from other processes, or other cores. Included by
 * core/engine.h, at its end.
 */
#ifndef DUET_CORE_OUTSIDE_H
#define DUET_CORE_OUTSIDE_H

#include "core/engine.h"

/* ------------------------------------------------------------------------------------------- */
/* Data that comes from elsewhere, and goes there                                               */

/*
 * An acquisition that a part of the library makes: in turn with the tasks before and after it,
 * while nobody waits for it. `granted` is called once, on any thread and as a duet_done_fn is (it
 * may submit, and not wait), with no lock held, when the data is in the host's memory (R, RW) or
 * its place there is (W). With an error if that will never be: the run is over, or (DUET_EDATA)
 * what was to be read is not valid; also in a run that has failed each is granted in its turn.
 *
 * In any case the data is nobody else's until duet__acquisition_end, once, also inside `granted`,
 * on any thread: one that is none of the engine's, too. status: 0, or a negative enum duet_error,
 * also if it was granted with one: what it was to write is not valid. `now` as for duet__done; an
 * engine of simulated time calls it in an event of that date (while ops.inside says
 * DUET_SUBMITTER: what `granted` submits then is linked at once), and asks whom it has woken
 * afterwards.
 *
 * It is a task that takes no time for duet_wait, for the window and for what is held, and none for
 * makespans and counters. All have to be ended before duet_close. DUET_EINVAL (no handle, no such
 * mode, a policy with trials), DUET_ENOMEM. `priority` is kept with it: copies have none.
 */
struct duet__acquisition;
typedef void (*duet__granted_fn)(void *arg, struct duet__acquisition *acquisition, int status);
DUET_MUST_CHECK int duet__acquire_submit(struct duet_runtime *core, struct duet_handle *handle,
                                         enum duet_mode mode, int priority,
                                         duet__granted_fn granted, void *arg);
void duet__acquisition_end(struct duet__acquisition *acquisition, double now, int status);
/*
 * true: `granted` may be called when the task that was created enters the graph, or, one that was
 * released, ends. In simulated time that is to be at its date, neither ahead of the clock nor
 * with the next event.
 */
bool duet__task_lends(const struct duet_runtime *core, const struct duet_task *task);
/*
 * true if one is granted and not ended: that nothing happens is then no sign of being stuck. Who
 * has them is to end them when what they wait for will never come.
 */
bool duet__awaits(const struct duet_runtime *core);

/*
 * The contents of registered data are not here yet: before anything uses it. At no address
 * (matrices, blocks, arrays) the core finds a place when one is needed, as for duet_temporary,
 * where it lies without gaps.
 */
void duet__handle_elsewhere(struct duet_runtime *core, struct duet_handle *handle);
/*
 * Data like that in another core, at no address, valid there or not; its parts and its reduction
 * are not. DUET_EINVAL (it is a part; where kernels run: it would be valid, or is of a program's
 * own type), DUET_ENOMEM.
 */
DUET_MUST_CHECK int duet__handle_like(struct duet_runtime *core, const struct duet_handle *like,
                                      bool valid, struct duet_handle **out);
/*
 * When what was submitted so far has ended, nothing of the contents is here any more, nor is the
 * memory that the core had taken for them. DUET_ENOMEM.
 */
DUET_MUST_CHECK int duet__handle_drop(struct duet_runtime *core, struct duet_handle *handle);
/* The kernel of that name in this core; made like that one if there is none. NULL: no memory. */
struct duet_codelet *duet__codelet_like(struct duet_runtime *core, const struct duet_codelet *like);
/*
 * Calls `give` for each piece of the data in the host's memory (from and to are the same), as of a
 * copy, while it is acquired. Of a program's own type: what its object pointed to when it was
 * registered. The first error of `give`, or 0.
 */
int duet__handle_pieces(const struct duet_handle *handle, duet__piece_fn give, void *arg);
/*
 * The seconds that such a task takes where it is fastest, as those of its class that are submitted
 * here; 0: not known, as where expectations are perturbed.
 */
double duet__shortest_s(const struct duet_task_desc *task);
uint64_t duet__handle_bytes(const struct duet_handle *handle);
/* true: it was made by duet_temporary. */
bool duet__handle_temporary(const struct duet_handle *handle);

/* ------------------------------------------------------------------------------------------- */
/* In place of the core                                                                         */

enum duet__hint { DUET__PREFETCH, DUET__WONT_USE, DUET__INVALIDATE };

/*
 * Who is asked in place of the core by the application's own threads, not by calls inside kernels,
 * expansions and `done`: the slots have the arguments and results of the public functions, which
 * have looked at none but handles that are NULL, and whether the thread may wait. All are needed
 * but `failed`: called once, when the run of this core fails, on any thread inside the core, which
 * it must not call.
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
 * Before the first of these calls, and NULL after the last one. Behind a gate data may be
 * registered at no address where kernels run, too, as if by duet__handle_elsewhere.
 */
void duet__core_gate(struct duet_runtime *core, const struct duet__gate *gate, void *arg);
/* Its `arg`; NULL: there is no gate. */
void *duet__core_gate_arg(const struct duet_runtime *core);

/*
 * Blocks the application's thread while the window is full, as duet_submit does: before what
 * duet__acquire_submit adds to it. DUET_ESTUCK.
 */
DUET_MUST_CHECK int duet__window_here(struct duet_runtime *core);

/* The same functions beneath the gate. */
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
