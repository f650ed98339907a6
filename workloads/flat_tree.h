/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Factorisations along a flat tree: the diagonal tile of each step is factorised, then the tiles
 * below it one after the other with the upper triangle that is there by then. Tiled QR and LU with
 * incremental pivoting (Buttari, Langou, Kurzak, Dongarra, "A class of parallel tiled linear
 * algebra algorithms for multicore architectures", Parallel Computing 35, 2009) differ in their
 * kernels alone. Of step k of T, with F the factors that a tile's elimination leaves beside it:
 *
 *     diagonal(k)    A(k,k) RW, F(k,k) W
 *     row(k,n)       lower A(k,k) R, F(k,k) R, A(k,n) RW                      n = k+1 ... T-1
 *     couple(m,k)    upper A(k,k) RW, A(m,k) RW, F(m,k) W                     m = k+1 ... T-1
 *     update(m,n,k)  A(m,k) R, F(m,k) R, A(k,n) RW, A(m,n) RW                 both
 *
 * The triangles of a diagonal tile are parts of it, so that rows and couples of a step do not wait
 * for each other. Arguments: struct duet__tile_args; diagonal n; row and update m x n, the tile
 * that changes (the lower one), and k, the columns that are eliminated; couple m x n, the lower
 * tile. Priorities are as in other factorisations: 2T - 2k, less n, m, or both.
 */
#ifndef DUET_FLAT_TREE_H
#define DUET_FLAT_TREE_H

#include <stdbool.h>
#include <stdint.h>

#include "workloads/tiles.h"

/* Indices of the kernels of such a workload, and of its matrices. */
enum { DUET__DIAGONAL, DUET__ROW, DUET__COUPLE, DUET__UPDATE };
enum { DUET__FLAT_A, DUET__FLAT_FACTORS };

/* The kernels on panels, which `panel` places (in struct duet__tiled: `placed`). */
enum { DUET__PANEL_KERNELS = 1 << DUET__DIAGONAL | 1 << DUET__COUPLE };

/* The parameters of these workloads: inner, panel, layout. */
extern const struct duet__parameter duet__flat_tree_parameters[];

/* Checks an n x n matrix. DUET_EINVAL with a message. */
DUET_MUST_CHECK int duet__flat_tree_check(const struct duet__problem *problem,
                                          struct duet_message *message);

/* Sets the shapes of A, random, and of its factors: a tile of `inner` rows and `more` for each tile
 * on and below the diagonal. */
void duet__flat_tree_shapes(const struct duet__problem *problem, unsigned more,
                            struct duet__shape *out);

/* Submits every task. Errors: those of duet__build_task and duet_cut_triangles. */
DUET_MUST_CHECK int duet__flat_tree_submit(const struct duet__build *build);

/* State of a judgement by a vector, in n^2 operations (Freivalds; see kernels_probe.c): the vector
 * is transformed as A was. */
struct duet__flat_judge {
    const struct duet__tiled_data *data;
    struct duet__storage x, y; /* n elements in A's tiles and precision: x random, y zeros */
    double *values;            /* n zeros */
    double roundoff;           /* unit roundoff of the precision */
    struct duet_message *message;
};

/* Makes the state, and has `judge` set *residual. Errors are those of `judge`, and DUET_ENOMEM with
 * a message. */
DUET_MUST_CHECK int duet__flat_tree_judge(void *data, double *residual,
                                          int (*judge)(struct duet__flat_judge *, double *residual),
                                          struct duet_message *message);

/* Applies the transformations to `vector`, in order or, if they can be undone, `backward`, by the
 * kernels of these names. Errors are the kernels'. */
DUET_MUST_CHECK int duet__flat_tree_apply(const struct duet__flat_judge *judge,
                                          const char *const *kernels, bool backward,
                                          const struct duet__storage *vector);

/* Sets values := A x for the initial A; returns the Frobenius norm of A. */
double duet__flat_tree_product(const struct duet__flat_judge *judge, const struct duet__storage *x);

/* Returns the 2-norm of a - values, with n elements; values NULL: of a. */
double duet__flat_tree_distance(const struct duet__storage *a, const double *values);

#endif
