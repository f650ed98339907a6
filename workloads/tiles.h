/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the tiled workloads share: checking a problem and its settings, matrices cut into square
 * tiles (smaller at the last row and column), tasks on these tiles, the frame of a build, and the
 * tasks that are the same in every factorisation.
 */
#ifndef DUET_TILES_H
#define DUET_TILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <duet/duet.h>

#include "workloads/workload.h"

enum {
    DUET__TILE_MAX = 65536, /* longest tile edge, so that a tile's elements and bytes stay small */
    DUET__TILES_MAX = 8192, /* tiles in a row or a column: 9 x 10^10 tasks of a Cholesky */
    DUET__MATRICES_MAX = 3, /* matrices of a tiled workload */
    DUET__KERNELS_MAX = 4,  /* kernels of a tiled workload */
};

/* Arguments of every tiled kernel: sizes in elements, in BLAS's notation; k = 0 where unused. */
struct duet__tile_args {
    uint32_t m, n, k;
};

/* A matrix as a grid of registered tiles; zeroed, one without tiles. */
struct duet__tiles {
    uint64_t rows, cols;           /* elements of the matrix */
    uint32_t tile;                 /* edge of a tile, elements */
    uint32_t row_tiles, col_tiles; /* tiles of a column, of a row */
    struct duet_handle **handles;  /* column-major; NULL above the diagonal if only lower */
};

/* A matrix to register. */
struct duet__shape {
    uint64_t rows, cols; /* elements */
    bool lower;          /* only the tiles on and below the diagonal */
};

/* One build under way. */
struct duet__build {
    struct duet_runtime *runtime;
    const struct duet_problem *problem;
    const struct duet__tiles *matrices;               /* in the order of `shapes` */
    struct duet_codelet *codelets[DUET__KERNELS_MAX]; /* in the order of `kernels` */
};

/* What is a tiled workload's own in a build; duet__tiled_build does the rest. */
struct duet__tiled {
    /* The workload's check. */
    int (*check)(const struct duet_problem *problem, struct duet_message *message);
    /* Sets the shapes of a checked problem's matrices in the order of registration; `shapes` has
     * DUET__MATRICES_MAX, all zeroed, and the first that keeps 0 rows ends them. */
    void (*shapes)(const struct duet_problem *problem, struct duet__shape *shapes);
    const char *const *kernels; /* base names, at most DUET__KERNELS_MAX, ended by NULL */
    double (*flops[DUET__KERNELS_MAX])(const void *args); /* of each; a struct duet__tile_args */
    /* The first kernel runs on CPUs only if the setting of this name is "cpu". NULL: anywhere. */
    const char *placement;
    const struct duet_parameter *parameters; /* the workload's, where `placement` is found */
    /* Submits every task, up to the first error, which it returns. */
    int (*submit)(const struct duet__build *build);
};

/*
 * Checks n, tile, precision, and every setting against `parameters` (ended by a NULL name; NULL:
 * none): the name must be listed, and the value must be the parameter's initial one, one of
 * "a|b|c", or a number within "low..high" (whole unless a bound has a '.' or an 'e').
 * DUET_EINVAL with a message that names the value and says what is allowed.
 */
DUET_MUST_CHECK int duet__problem_check(const struct duet_problem *problem,
                                        const struct duet_parameter *parameters,
                                        struct duet_message *message);

/* The value given for the parameter `name` (the last, if several), else its initial one. */
const char *duet__setting(const struct duet_problem *problem,
                          const struct duet_parameter *parameters, const char *name);

/* The same as a whole number; `otherwise` where the setting is not a number ("n"). */
uint64_t duet__setting_number(const struct duet_problem *problem,
                              const struct duet_parameter *parameters, const char *name,
                              uint64_t otherwise);

/*
 * DUET_EINVAL with a message if an edge of `size` elements (called `name`) has too many tiles, or
 * if one tile is larger than the matrix (`name` is "n"); another edge may well be shorter than a
 * tile.
 */
DUET_MUST_CHECK int duet__tiles_check(const char *name, uint64_t size, uint64_t tile,
                                      struct duet_message *message);

/*
 * The check of a workload on one n x n matrix: duet__problem_check, then duet__tiles_check of "n".
 * DUET_EINVAL with a message.
 */
DUET_MUST_CHECK int duet__square_check(const struct duet_problem *problem,
                                       const struct duet_parameter *parameters,
                                       struct duet_message *message);

/* Bytes of an element: 4 for precision 's', 8 for 'd'. */
size_t duet__element_bytes(const struct duet_problem *problem);

/* Number of tiles that cover `size` elements. */
uint64_t duet__tile_count(uint64_t size, uint64_t tile);

/* The tile at row i, column j of the grid; NULL above the diagonal if only lower. */
struct duet_handle *duet__tile(const struct duet__tiles *tiles, uint32_t i, uint32_t j);

/* Rows of the tiles of grid row i; columns of the tiles of grid column j. */
uint32_t duet__tile_rows(const struct duet__tiles *tiles, uint32_t i);
uint32_t duet__tile_cols(const struct duet__tiles *tiles, uint32_t j);

/*
 * The body of a tiled workload's build: checks the problem, registers the kernels in its precision
 * ("gemm" -> "dgemm"), for "cpu" and, unless placed on CPUs only, for "cuda" (only simulated:
 * neither has code yet), then the matrices without data, tile by tile, columns first, and submits
 * the tasks; may block in duet_submit. *state is an array of DUET__MATRICES_MAX struct duet__tiles
 * in the order of the shapes, zeroed where there is no shape, and the caller's, for
 * duet__tiled_fini; NULL on error. Errors: those of `check` and DUET_ENOMEM, with a message; those
 * of duet_codelet, duet_matrix and `submit`.
 */
DUET_MUST_CHECK int duet__tiled_build(const struct duet__tiled *tiled, struct duet_runtime *runtime,
                                      const struct duet_problem *problem, void **state,
                                      struct duet_message *message);

/* A tiled workload's fini: frees the grids, not the handles (the runtime's). NULL is fine. */
void duet__tiled_fini(void *state);

/* Submits a kernel on the tiles of `accesses`. Errors: those of duet_submit. */
DUET_MUST_CHECK int duet__tile_task(struct duet_runtime *runtime,
                                    const struct duet_codelet *codelet, struct duet__tile_args args,
                                    int priority, const struct duet_access *accesses,
                                    size_t access_count);

/*
 * Tasks of a factorisation of the n x n matrix A, which is build->matrices[0], with T tiles a side;
 * `kernel` is an index into build->codelets. The priority is 2T - 2k - distance: panel k first, and
 * within an update the tiles that the next panels need soonest (cholesky.c and lu.c say whose
 * priorities these are). Errors: those of duet_submit.
 */

/* A task of step k on the tiles of `accesses`. */
DUET_MUST_CHECK int duet__factor_task(const struct duet__build *build, unsigned kernel,
                                      struct duet__tile_args args, uint32_t k, uint32_t distance,
                                      const struct duet_access *accesses, size_t access_count);

/* Factorises A(k,k) in place; args: n. Distance 0. */
DUET_MUST_CHECK int duet__factor_diagonal(const struct duet__build *build, unsigned kernel,
                                          uint32_t k);

/*
 * Solves with A(k,k), read first, for A(i,j) (args: m x n), where one of i and j is k and the other
 * one, the distance, is greater: j = k in a column, from the right; i = k in a row, from the left.
 */
DUET_MUST_CHECK int duet__factor_solve(const struct duet__build *build, unsigned kernel, uint32_t i,
                                       uint32_t j);

/* A(m,n) -= A(m,k) B, or B', with B in the tile `b`; args: m, n, k. Distance m + n. */
DUET_MUST_CHECK int duet__factor_update(const struct duet__build *build, unsigned kernel,
                                        uint32_t m, uint32_t n, uint32_t k, struct duet_handle *b);

/*
 * Flops of one kernel, as LAPACK working note 41 counts them (a square root, a division, an
 * addition and a multiplication are one each); `args` is a struct duet__tile_args.
 */
double duet__flops_gemm(const void *args);       /* C (m x n) += A (m x k) B: 2 m n k */
double duet__flops_syrk(const void *args);       /* lower C (n x n) += A (n x k) A': n (n+1) k */
double duet__flops_trsm_right(const void *args); /* B (m x n) T^-1, T of order n: m n^2 */
double duet__flops_trsm_left(const void *args);  /* T^-1 B (m x n), T of order m: m^2 n */
double duet__flops_potrf(const void *args);      /* order n: n^3/3 + n^2/2 + n/6 */
double duet__flops_getrf(const void *args);      /* order n, no pivots: 2n^3/3 - n^2/2 - n/6; 1 for
                                                    n = 1, as models need some work */

#endif
