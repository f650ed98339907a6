/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parts of data: a handle can be cut into parts that do not overlap, each a handle like any other.
 * Tasks on the whole and on parts are submitted in any order, without waiting between: each sees
 * what those before it wrote (sequential consistency). The data passes through the host's memory
 * when a program goes from the whole to its parts, or back; whole and parts may be read at the same
 * time. Parts may be cut in turn, and one handle may be cut several times (into rows now, into
 * columns for the next step). One task may access the whole and a part, or parts of two cuts, only
 * if it reads all of them. Parts belong to their whole: they end with duet_uncut, or with the
 * duet_unregister of the whole, and cannot be unregistered by themselves. They need not cover it.
 * The conventions are those of duet/duet.h.
 */
#ifndef DUET_PARTS_H
#define DUET_PARTS_H

#include <duet/handles.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A part: rows x cols elements from (row, col) of the whole on. */
struct duet_part {
    size_t row, col, rows, cols;
};

/*
 * Cuts the data of a handle: `out` gets `count` handles, in the order of `parts`. May be called
 * with tasks in flight. Errors: DUET_EINVAL (a part is empty, not within the whole, or overlaps
 * another one; more than 32,767 parts; a block of a task that expands), DUET_ENOMEM; nothing is cut
 * then.
 */
DUET_EXPORT DUET_MUST_CHECK int duet_cut(struct duet_runtime *runtime, struct duet_handle *whole,
                                         const struct duet_part *parts, size_t count,
                                         struct duet_handle **out);

/*
 * Cuts a handle into rows x cols blocks, of which out[i + j * rows] is the i-th from above, j-th
 * from the left: `cols` 1 cuts into bands of rows, `rows` 1 into bands of columns. Sizes are as
 * equal as they can be, the first ones larger by one. Errors as duet_cut; DUET_EINVAL also if there
 * are more parts than elements.
 */
DUET_EXPORT DUET_MUST_CHECK int duet_cut_blocks(struct duet_runtime *runtime,
                                                struct duet_handle *whole, size_t rows, size_t cols,
                                                struct duet_handle **out);

enum duet_diagonal { DUET_DIAGONAL_LOWER, DUET_DIAGONAL_UPPER, DUET_DIAGONAL_APART };

/*
 * Cuts a square of at least 2 x 2 elements into its lower triangle, out[0], its upper one, out[1],
 * and with DUET_DIAGONAL_APART its diagonal, out[2]. Kernels get a buffer for the whole square, and
 * may touch the elements of the part alone: the rest is undefined on devices, and belongs to other
 * parts in the host's memory. The parts cannot be cut further. Errors as duet_cut.
 */
DUET_EXPORT DUET_MUST_CHECK int duet_cut_triangles(struct duet_runtime *runtime,
                                                   struct duet_handle *whole,
                                                   enum duet_diagonal diagonal,
                                                   struct duet_handle **out);

/*
 * Ends the cut that `part` belongs to, with all its parts and their parts. Blocks until the tasks
 * that touch the whole or a part have ended. Returns the run's error if a task failed; the parts
 * are freed even then. DUET_EINVAL: `part` is none, the whole or a part that would end is acquired;
 * DUET_ESTUCK. NULL is fine.
 */
DUET_EXPORT int duet_uncut(struct duet_runtime *runtime, struct duet_handle *part);

#ifdef __cplusplus
}
#endif
#endif
