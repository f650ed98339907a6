/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Data for applications, a part of duet/duet.h: registered and temporary data, access modes of
 * tasks, reductions, and the application's own access. The conventions are those of duet/duet.h.
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

struct duet_runtime;
struct duet_codelet;
struct duet_handle; /* a registered piece of data, or temporary data */

/*
 * Registers `rows` x `cols` elements of `element_bytes` in column-major order with leading
 * dimension `ld` (elements, >= rows) at `data`. The memory stays the application's, may be touched
 * only between duet_acquire and duet_release while it is registered, and may be NULL when
 * simulated. A new handle is valid in the host's memory. No two handles may share memory (parts of
 * one are made by duet_cut, see duet/parts.h). Errors: DUET_EINVAL, DUET_ENOMEM.
 */
DUET_EXPORT DUET_MUST_CHECK int duet_register_matrix(struct duet_runtime *runtime, void *data,
                                                     size_t rows, size_t cols, size_t ld,
                                                     size_t element_bytes,
                                                     struct duet_handle **out);

/* Registers `count` contiguous elements: a matrix of one column. Errors as duet_register_matrix. */
DUET_MUST_CHECK static inline int duet_register_vector(struct duet_runtime *runtime, void *data,
                                                       size_t count, size_t element_bytes,
                                                       struct duet_handle **out)
{
    return duet_register_matrix(runtime, data, count, 1, count, element_bytes, out);
}

/*
 * Blocks until the tasks that touch the handle have ended, brings the data back to the host's
 * memory and frees the handle and its parts. Errors as duet_acquire for reading; the handle is
 * freed even then, but not after DUET_ESTUCK. DUET_EINVAL: it is a part itself, or one of its parts
 * is acquired.
 */
DUET_EXPORT int duet_unregister(struct duet_runtime *runtime, struct duet_handle *handle);

/*
 * Unregisters the handle without blocking, also inside a kernel or an expansion: it is freed when
 * the tasks submitted so far have ended, its data back in the host's memory. Counts as a task for
 * duet_wait and duet_tasks_done. The handle may not be used any more: a task submitted with it
 * fails the run, if that is noticed. Errors: DUET_EINVAL (a block of an expansion, unregistered
 * already), DUET_ENOMEM.
 */
DUET_EXPORT int duet_unregister_submit(struct duet_runtime *runtime, struct duet_handle *handle);

/*
 * Makes temporary data of rows x cols elements in column-major order. It has no address of the
 * application's, and no contents until a task (or the application: duet_acquire) has written it
 * with DUET_W. Memory is taken where it is first written, on devices like that of other data; the
 * host's memory only if a task or a copy needs it there, page by page, and kept for the next data
 * of that size, up to 256 MiB. A task that reads it before it was written fails the run with
 * DUET_EINVAL. duet_unregister and duet_unregister_submit drop its contents. Errors as
 * duet_register_matrix.
 */
DUET_EXPORT DUET_MUST_CHECK int duet_register_temporary(struct duet_runtime *runtime, size_t rows,
                                                        size_t cols, size_t element_bytes,
                                                        struct duet_handle **out);

/*
 * Says how tasks with DUET_REDUCE add to the handle, once, before the first of them. `init` is run
 * for each new contribution, with one buffer of the handle's shape, which it writes (DUET_W): zeros
 * for a sum. `combine` has two, and adds the second (DUET_R) to the first (DUET_RW). Neither has
 * arguments, and both count as tasks of their own. A worker that takes such a task makes a
 * contribution if none in its memory is free, so that there are as many as tasks were at work at
 * once. When another access follows, they are combined pairwise, as a binary tree, the last one
 * with the data itself, which has to have been written, and freed. Floating-point sums therefore
 * depend on which worker ran what, but not in simulations. Tasks run where `init` can. A lost
 * device loses its contributions: the run then fails with DUET_ELOST when they are combined, unless
 * no task had ended on them. Errors: DUET_EINVAL, and those of duet_submit for such tasks.
 */
DUET_EXPORT DUET_MUST_CHECK int duet_set_reduction(struct duet_runtime *runtime,
                                                   struct duet_handle *handle,
                                                   const struct duet_codelet *init,
                                                   const struct duet_codelet *combine);

/*
 * Returns the address of the handle's data in the host's memory: the registered one, or the place
 * of temporary data, to be used between duet_acquire and duet_release; NULL for temporary data
 * where nothing computes, and for a NULL handle.
 */
DUET_EXPORT void *duet_address(const struct duet_handle *handle);

enum duet_mode {
    DUET_R = 1,
    DUET_W = 2, /* the old contents are not needed */
    DUET_RW = 3,
    /*
     * Like DUET_RW, but tasks that follow each other with this mode may run in any order, one at a
     * time: sums, for instance. Not for acquisitions.
     */
    DUET_COMMUTE = 7,
    /*
     * The task adds to the data as duet_set_reduction has told. Tasks that follow each other with
     * this mode run at once, each on a contribution in the memory of its worker, which is its
     * buffer. The access that follows sees the sum of all contributions and the earlier contents.
     * Not for acquisitions.
     */
    DUET_REDUCE = 10,
    /*
     * A temporary buffer of the handle's shape in the memory of the worker that runs the task, with
     * undefined contents at first, and gone with the task. The handle's data is not touched. Each
     * such access is another buffer. Not for acquisitions.
     */
    DUET_SCRATCH = 18,
};

/*
 * Blocks until the application may read (DUET_R) or change (DUET_W, DUET_RW) the data in its own
 * memory, in order as a task submitted now; tasks submitted later wait for duet_release. Errors:
 * DUET_EINVAL (two acquisitions of one handle); DUET_ESTUCK; the run's error if a task has failed
 * (not with config.keep_going); DUET_EDATA if it is to be read and is not valid (duet_valid). In
 * the last two cases the handle is acquired, and has to be released.
 */
DUET_EXPORT DUET_MUST_CHECK int duet_acquire(struct duet_runtime *runtime,
                                             struct duet_handle *handle, enum duet_mode mode);
/* Ends duet_acquire. DUET_EINVAL if the handle is not acquired. */
DUET_EXPORT int duet_release(struct duet_runtime *runtime, struct duet_handle *handle);

/*
 * Page-locks memory of the application (cudaHostRegister), so that devices copy from and to it at
 * full speed and asynchronously. The memory has to stay until duet_unpin or duet_close. Without
 * this call each handle's own memory is page-locked when it is first copied, which delays the
 * copies, does not work for tiles inside of one matrix, whose pages they share, and ends with
 * duet_unregister; other memory is copied through small page-locked buffers. Does nothing, with
 * success, in simulations, on machines without such devices, and for memory that is page-locked
 * already. Any thread, before the handles' first tasks. Errors: DUET_ENOMEM (the system refuses, or
 * config.pin_bytes is reached), DUET_EINVAL (overlaps page-locked memory in part); everything then
 * works without, slower.
 */
DUET_EXPORT DUET_MUST_CHECK int duet_pin(struct duet_runtime *runtime, void *data, size_t bytes);

/*
 * Ends duet_pin of the same address. Data in it must be unregistered before: a copy of registered
 * data may be under way even if no task is. DUET_EINVAL if the address is not pinned. Does nothing
 * where duet_pin does nothing.
 */
DUET_EXPORT int duet_unpin(struct duet_runtime *runtime, void *data);

#ifdef __cplusplus
}
#endif
#endif
