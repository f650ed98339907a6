/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the tiled workloads share: checking a problem and its settings, matrices cut into square
 * tiles (smaller at the last row and column), and tasks on these tiles.
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
};

/* Arguments of every tiled kernel: sizes in elements, in BLAS's notation; k = 0 where unused. */
struct duet__tile_args {
    uint32_t m, n, k;
};

/* A matrix as a grid of registered tiles. Zero-initialise, then duet__tiles_init. */
struct duet__tiles {
    uint64_t rows, cols;           /* elements of the matrix */
    uint32_t tile;                 /* edge of a tile, elements */
    uint32_t row_tiles, col_tiles; /* tiles of a column, of a row */
    struct duet_handle **handles;  /* column-major; NULL above the diagonal if only lower */
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

/* Bytes of an element: 4 for precision 's', 8 for 'd'. */
size_t duet__element_bytes(const struct duet_problem *problem);

/* Number of tiles that cover `size` elements. */
uint64_t duet__tile_count(uint64_t size, uint64_t tile);

/*
 * Registers a rows x cols matrix without data (simulated) tile by tile, columns first; with
 * `lower`, only the tiles on and below the diagonal. On error it is empty again. Errors:
 * DUET_ENOMEM with a message, or those of duet_matrix.
 */
DUET_MUST_CHECK int duet__tiles_init(struct duet__tiles *tiles, struct duet_runtime *runtime,
                                     uint64_t rows, uint64_t cols,
                                     const struct duet_problem *problem, bool lower,
                                     struct duet_message *message);

/* Frees the grid, not the handles, which are the runtime's. Safe on a zeroed one, and twice. */
void duet__tiles_fini(struct duet__tiles *tiles);

/* The tile at row i, column j of the grid. */
struct duet_handle *duet__tile(const struct duet__tiles *tiles, uint32_t i, uint32_t j);

/* Rows of the tiles of grid row i; columns of the tiles of grid column j. */
uint32_t duet__tile_rows(const struct duet__tiles *tiles, uint32_t i);
uint32_t duet__tile_cols(const struct duet__tiles *tiles, uint32_t j);

/*
 * Registers the kernel `base` in the problem's precision ("gemm" -> "dgemm") with implementations
 * for "cpu" and, unless `cpu_only`, for "cuda". Only simulated: neither has code yet.
 */
DUET_MUST_CHECK int duet__tile_codelet(struct duet_runtime *runtime,
                                       const struct duet_problem *problem, const char *base,
                                       bool cpu_only, double (*flops)(const void *args),
                                       struct duet_codelet **out);

/* Submits a kernel on the tiles of `accesses`. Errors: those of duet_submit. */
DUET_MUST_CHECK int duet__tile_task(struct duet_runtime *runtime,
                                    const struct duet_codelet *codelet, struct duet__tile_args args,
                                    int priority, const struct duet_access *accesses,
                                    size_t access_count);

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
