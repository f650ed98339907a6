/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Data for applications, a part of duet/duet.h: registered and temporary data, parts of data, how
 * tasks access it, reductions, and the application's own access. What duet/duet.h says of units and
 * errors holds here.
 */
#ifndef DUET_HANDLES_H
#define DUET_HANDLES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <duet/error.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default) /* exported by libduet, as nothing else is */

struct duet_runtime;
struct duet_codelet;
struct duet_handle; /* a registered piece of data, or temporary data */

/*
 * Registers `rows` x `cols` elements of `element_bytes` in column-major order with leading
 * dimension `ld` (elements, >= rows) at `data`, which stays the application's, may not be touched
 * while registered but between duet_acquire and duet_release, and may be NULL when simulated.
 * A handle counts as valid in the host's memory. No two handles may share memory (parts of one are
 * made by duet_cut, see duet/parts.h). Errors: DUET_EINVAL, DUET_ENOMEM.
 */
DUET_MUST_CHECK int duet_matrix(struct duet_runtime *runtime, void *data, size_t rows, size_t cols,
                                size_t ld, size_t element_bytes, struct duet_handle **out);

/* Registers `count` contiguous elements: duet_matrix of count x 1. */
DUET_MUST_CHECK int duet_vector(struct duet_runtime *runtime, void *data, size_t count,
                                size_t element_bytes, struct duet_handle **out);

/*
 * Waits (blocking) for the tasks that touch the handle, brings the data back to the host's memory
 * and frees the handle and its parts. Errors as duet_acquire for reading; the handle is freed even
 * then, but after DUET_ESTUCK. DUET_EINVAL: it is a part itself, or one of its parts is acquired.
 */
int duet_unregister(struct duet_runtime *runtime, struct duet_handle *handle);

/*
 * The same without waiting, also inside a kernel or an expansion: the handle is freed when the
 * tasks submitted so far have ended, its data back in the host's memory by then. It counts as a
 * task for duet_wait and for duet_tasks_done, and is not to be used any more: a task that is
 * submitted with it nevertheless fails the run, if that is seen. DUET_EINVAL (a block of an
 * expansion, unregistered already), DUET_ENOMEM.
 */
int duet_unregister_submit(struct duet_runtime *runtime, struct duet_handle *handle);

/*
 * Temporary data of rows x cols elements, column after column, in any world: it has no address of
 * the application's and no contents until a task (or the application: duet_acquire) has written it
 * with DUET_W. Memory is taken where it is first written, on devices like that of other data; in
 * the host's memory, page by page and kept for the next data of that size, up to 256 MiB, only if a
 * task or a copy needs it there. A task that reads it before it was written fails the run with
 * DUET_EINVAL. duet_unregister and duet_unregister_submit drop what it holds. Errors as
 * duet_matrix.
 */
DUET_MUST_CHECK int duet_temporary(struct duet_runtime *runtime, size_t rows, size_t cols,
                                   size_t element_bytes, struct duet_handle **out);

/*
 * Says how tasks with DUET_REDUCE add to the handle, once, before the first of them. `init` is run
 * for each new contribution, with one buffer of the handle's shape, which it writes (DUET_W): zeros
 * for a sum. `combine` has two, and adds the second (DUET_R) to the first (DUET_RW). Neither has
 * arguments, and both count as tasks of their own. A worker makes a contribution when it takes such
 * a task and none in its memory is free, so that there are as many as tasks were at work at once;
 * when another access follows, they are combined pairwise, as a binary tree, the last one with the
 * data itself, which has to have been written, and they are gone. With floating-point numbers the
 * sum thus depends on who ran what, but in simulations. Tasks run where `init` can.
 * A device that is lost takes its contributions along: the run then fails with DUET_ELOST when they
 * are combined, unless no task had ended on them. Errors: DUET_EINVAL, and what duet_submit says of
 * such tasks.
 */
DUET_MUST_CHECK int duet_reduction(struct duet_runtime *runtime, struct duet_handle *handle,
                                   const struct duet_codelet *init,
                                   const struct duet_codelet *combine);

/*
 * Where the handle's data is in the host's memory: what was registered; of temporary data its
 * place, to be used between duet_acquire and duet_release, and NULL where nothing computes.
 */
void *duet_address(const struct duet_handle *handle);

enum duet_mode {
    DUET_R = 1,
    DUET_W = 2, /* the old contents are not needed */
    DUET_RW = 3,
    /*
     * As DUET_RW, but tasks that follow each other with this mode may run in any order, one at a
     * time: sums, for instance. Not of acquisitions.
     */
    DUET_COMMUTE = 7,
    /*
     * The task adds to the data in a way that duet_reduction has told: tasks that follow each other
     * with this mode run at once, each on a contribution in the memory of its worker, which is
     * what its buffer is. Nobody else sees these; the access that follows sees their sum with what
     * was there before. Not of acquisitions.
     */
    DUET_REDUCE = 10,
    /*
     * A buffer of the task's own, of the shape of the handle, whose data is not touched: temporary
     * data in the memory of the worker that runs the task, with any contents at first, and gone
     * with it. Each such access is another buffer. Not of acquisitions.
     */
    DUET_SCRATCH = 18,
};

/*
 * Blocks until the application may read (DUET_R) or change (DUET_W, DUET_RW) the data in its own
 * memory, as a task submitted now would; tasks submitted later wait for duet_release. Errors:
 * DUET_EINVAL (two acquisitions of one handle); DUET_ESTUCK; the run's error if a task has failed
 * (not with config.keep_going); DUET_EDATA if it is to be read and is not valid (duet_valid): in
 * the last two cases the handle is acquired, and is to be released.
 */
DUET_MUST_CHECK int duet_acquire(struct duet_runtime *runtime, struct duet_handle *handle,
                                 enum duet_mode mode);
/* Ends duet_acquire. DUET_EINVAL if the handle is not acquired. */
int duet_release(struct duet_runtime *runtime, struct duet_handle *handle);

/*
 * Page-locks memory of the application, so that devices copy from and to it at full speed and
 * beside everything else: cudaHostRegister. Until duet_unpin (or duet_close) the memory has to
 * stay. Without it each handle's own memory is page-locked when it is first copied, which keeps the
 * copies waiting, does not work for tiles inside of one matrix, whose pages they share, and ends
 * with duet_unregister; what is not page-locked is copied through small page-locked buffers.
 * Nothing is done, with success, in simulations, on machines without such devices, and for what is
 * page-locked already. May be called from any thread, before the handles' first tasks. Errors:
 * DUET_ENOMEM (the system refuses, or config.pin_bytes is reached), DUET_EINVAL (overlaps in part
 * what is page-locked): everything works without, slower.
 */
DUET_MUST_CHECK int duet_pin(struct duet_runtime *runtime, void *data, size_t bytes);

/*
 * Ends duet_pin of the same address. Its data is unregistered before: as long as it is registered,
 * a copy of it may be under way, even if no task is. DUET_EINVAL if there was none; nothing is done
 * where duet_pin does nothing.
 */
int duet_unpin(struct duet_runtime *runtime, void *data);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif
