/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared by the tiled workloads: checking a problem and its settings, matrices cut into square
 * tiles (smaller at the last row and column), tasks on these tiles, the frame of a build, and the
 * tasks that are the same in every factorisation.
 */
#ifndef DUET_TILES_H
#define DUET_TILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <duet/duet.h>

#include "workloads/data.h"
#include "workloads/workload.h"

enum {
    DUET__TILE_MAX = 65536,  /* longest edge of a tile, so that elements and bytes stay small */
    DUET__TILES_MAX = 8192,  /* tiles in a row or a column: 9 x 10^10 tasks of a Cholesky */
    DUET__MATRICES_MAX = 10, /* matrices of a tiled workload */
    DUET__KERNELS_MAX = 5,   /* kernels of a tiled workload */
};

/* Form of a product: C := C + A B, and with these bits C - A B, C + A B' or C - A B'. */
enum duet__form { DUET__MINUS = 1, DUET__TRANSPOSED = 2 };

/* Arguments of every tiled kernel: sizes in elements, in BLAS's notation; k = 0 where unused. */
struct duet__tile_args {
    uint32_t m, n, k;
    uint32_t form; /* bits of enum duet__form for gemm; else 0 */
};

/* Parameter of workloads on matrices: their layout in memory. */
#define DUET__LAYOUT_PARAMETER                                                                     \
    {                                                                                              \
        "layout", "tile|lapack", "tile",                                                           \
            "matrices in memory: each tile contiguous, or column-major as a whole"                 \
    }

/* A matrix as a grid of registered tiles; zeroed: one without tiles. */
struct duet__tiles {
    uint64_t rows, cols;           /* elements of the matrix */
    uint32_t tile_rows, tile_cols; /* elements of a tile; the last in a column or row may have
                                      fewer */
    uint32_t row_tiles, col_tiles; /* number of tiles in a column, in a row */
    const uint64_t *cuts;          /* rows where uneven tiles begin, and where the last one ends;
                                      NULL: every tile_rows. Owned by the first matrix, for all */
    struct duet_handle **handles;  /* column-major; NULL for tiles that do not exist */
    bool gathered;                 /* retrieved tiles go to node 0 */
};

/* One build under way. */
struct duet__build {
    struct duet_runtime *runtime;
    const struct duet__problem *problem;
    const struct duet__tiles *matrices;               /* in the order of `shapes` */
    struct duet_codelet *codelets[DUET__KERNELS_MAX]; /* one a kernel, in the order of
                                                         `kernels` */
    struct duet_expansion
        *expansion;     /* tasks become its children; NULL: submitted to the runtime */
    uint64_t where;     /* architectures of every task; 0: anywhere */
    int priority;       /* added to that of every task */
    uint32_t iteration; /* iteration of the tasks, from 1; 0: there are none */
    double complexity;  /* hint of the tasks; 0: their flops */
};

/* Properties of a tiled workload beside its description; the functions below do the rest. It has at
 * most DUET__KERNELS_MAX kernels. */
struct duet__tiled {
    /* Sets the shapes of a checked problem's matrices in the order of registration: rows, columns,
     * contents, tiles that exist, and edges of tiles and elements that are not the problem's.
     * `shapes` has DUET__MATRICES_MAX, all zeroed, and the first that keeps 0 rows ends them. */
    void (*shapes)(const struct duet__problem *problem, struct duet__storage *shapes);
    double (*flops[DUET__KERNELS_MAX])(const void *args); /* each kernel's; args: struct
                                                             duet__tile_args */
    bool capturable;   /* kernels for GPUs only enqueue: see struct duet_codelet_desc */
    unsigned cpu_only; /* bit i: kernel i has no implementation but the CPUs' */
    /* Name of the setting that, with the value "cpu", does so for these kernels, too; NULL:
     * none. */
    const char *placement;
    unsigned placed; /* bits as in cpu_only; 0: the first kernel */
    /* Returns the rows where the tiles of every matrix begin, and where the last one ends:
     * duet__uneven_cuts. Matrices then are column-major as a whole. NULL: tiles are even. */
    uint64_t *(*cuts)(const struct duet__problem *problem,
                      const struct duet__parameter *parameters);
    /* Returns the node that owns tile (i,j) of matrix number `matrix`. NULL: duet_node_at of i and
     * j. */
    unsigned (*owner)(const struct duet_runtime *runtime, const struct duet__problem *problem,
                      unsigned matrix, uint32_t i, uint32_t j);
    /* Submits every task, up to the first error, which it returns. */
    int (*submit)(const struct duet__build *build);
};

/* Data of a tiled workload, made by duet__tiled_generate. */
struct duet__tiled_data {
    const struct duet__tiled *tiled;
    struct duet__problem problem; /* its settings and data are NULL here */
    uint64_t iterations;          /* value of the parameter of this name; 0: there is none */
    uint64_t *cuts;               /* rows where uneven tiles begin; NULL: tiles are even */
    struct duet__storage matrices[DUET__MATRICES_MAX]; /* in the order of `shapes`, then zeroed */
};

/* Checks precision and settings, that is all of duet__problem_check but the sizes. */
DUET_MUST_CHECK int duet__settings_check(const struct duet__problem *problem,
                                         const struct duet__parameter *parameters,
                                         struct duet_message *message);

/*
 * Checks n, tile, precision, and every setting against `parameters` (ended by a NULL name; NULL:
 * none): the name must be listed, and the value must be the parameter's initial one, one of
 * "a|b|c", or a number within "low..high" (whole unless a bound has a '.' or an 'e').
 * DUET_EINVAL with a message that names the value and says what is allowed.
 */
DUET_MUST_CHECK int duet__problem_check(const struct duet__problem *problem,
                                        const struct duet__parameter *parameters,
                                        struct duet_message *message);

/* Returns the value given for the parameter `name` (the last, if several), else its initial one. */
const char *duet__setting(const struct duet__problem *problem,
                          const struct duet__parameter *parameters, const char *name);

/* Returns that value as a whole number; `otherwise` if it is not a number ("n"). */
uint64_t duet__setting_number(const struct duet__problem *problem,
                              const struct duet__parameter *parameters, const char *name,
                              uint64_t otherwise);

/*
 * DUET_EINVAL with a message if an edge of `size` elements (called `name`) has too many tiles, or
 * if one tile is larger than the matrix (`name` is "n"); another edge may well be shorter than a
 * tile.
 */
DUET_MUST_CHECK int duet__tiles_check(const char *name, uint64_t size, uint64_t tile,
                                      struct duet_message *message);

/* Checks a problem on one n x n matrix: duet__problem_check, then duet__tiles_check of "n".
 * DUET_EINVAL with a message. */
DUET_MUST_CHECK int duet__square_check(const struct duet__problem *problem,
                                       const struct duet__parameter *parameters,
                                       struct duet_message *message);

/* Parameter of workloads with iterations that duet__tiled_iterate submits. */
#define DUET__SUBMIT_PARAMETER                                                                     \
    {                                                                                              \
        "submit", "tasks|graph", "tasks",                                                          \
            "graph: two steps are recorded and submitted again; traces have no iterations"         \
    }

/*
 * Submits the steps of a workload with the parameters "iterations" and DUET__SUBMIT_PARAMETER.
 * Steps alternate between two sets of buffers: step(build, 0) submits an even one, step(build, 1)
 * an odd one. Returns the first error.
 */
int duet__tiled_iterate(const struct duet__build *build, const struct duet__parameter *parameters,
                        int (*step)(const struct duet__build *build, unsigned parity));

/* Parameter of workloads with n elements in pieces of `tile` on average: how their lengths are
 * drawn. */
#define DUET__SIZES_PARAMETER                                                                      \
    {                                                                                              \
        "sizes", "fixed|uniform|bimodal", "uniform",                                               \
            "of the pieces: all alike; 1/8 to 15/8 of the mean; one in ten eleven times the "      \
            "others"                                                                               \
    }

/* Checks such a problem: duet__problem_check, and that there are at most `most` pieces, which are
 * called `name`. DUET_EINVAL with a message. */
DUET_MUST_CHECK int duet__uneven_check(const struct duet__problem *problem,
                                       const struct duet__parameter *parameters, const char *name,
                                       uint64_t most, struct duet_message *message);

/*
 * Returns where the pieces of a checked problem begin, at least one element long each, and where
 * the last one ends: duet__tile_count + 1 numbers, drawn from the problem's seed. Free with free;
 * NULL: no memory.
 */
uint64_t *duet__uneven_cuts(const struct duet__problem *problem,
                            const struct duet__parameter *parameters);

/* Returns the bytes of an element: 4 for precision 's', 8 for 'd'. */
size_t duet__element_bytes(const struct duet__problem *problem);

/* Returns the number of tiles that cover `size` elements. */
uint64_t duet__tile_count(uint64_t size, uint64_t tile);

/* Returns the tile at row i, column j of the grid; NULL: there is none. */
struct duet_handle *duet__tile(const struct duet__tiles *tiles, uint32_t i, uint32_t j);

/* Returns the rows of the tiles of grid row i, or the columns of those of grid column j. */
uint32_t duet__tile_rows(const struct duet__tiles *tiles, uint32_t i);
uint32_t duet__tile_cols(const struct duet__tiles *tiles, uint32_t j);

/* Slots that are the same in all tiled workloads: `own` is the struct duet__tiled, `fills`
 * duet__tiled_fill or another function. */
#define DUET__TILED_SLOTS(own, fills)                                                              \
    .tiled = &(own), .build = duet__tiled_build, .fini = duet__tiled_fini,                         \
    .generate = duet__tiled_generate, .fill = (fills), .retrieve = duet__tiled_retrieve,           \
    .discard = duet__tiled_discard

/*
 * Builds a tiled workload: checks the problem, finds or registers the kernels in its precision
 * ("gemm" -> "dgemm"), for "cpu" and, unless placed on CPUs only, for "cuda" and "opencl", with
 * code if the problem has data (BLAS then uses one thread a call); then the matrices, tile by tile,
 * columns first, with their memory page-locked; and submits the tasks; may block in duet_submit. A
 * kernel found keeps the placement it was registered with. *state is an array of DUET__MATRICES_MAX
 * struct duet__tiles in the order of the shapes, zeroed where there is no shape, and the caller's,
 * for duet__tiled_fini; NULL on error. Errors: those of `check`, DUET_ENOWORKER (a kernel for CPUs
 * only, and none computes) and DUET_ENOMEM, with a message; those of duet_register_codelet,
 * duet_register_matrix and `submit`.
 */
DUET_MUST_CHECK int duet__tiled_build(const struct duet__workload *self,
                                      struct duet_runtime *runtime,
                                      const struct duet__problem *problem, void **state,
                                      struct duet_message *message);

/* Owner of pieces of vectors: they are dealt to the nodes in turn. */
unsigned duet__owner_in_turn(const struct duet_runtime *runtime,
                             const struct duet__problem *problem, unsigned matrix, uint32_t i,
                             uint32_t j);

/*
 * Declares that no later task touches the existing ones of tiles (first ... end - 1, j) of a
 * matrix: they go home to their owners, and other nodes drop them. Does nothing on one node, and in
 * an expansion. Errors: those of duet_fetch and duet_wont_use.
 */
DUET_MUST_CHECK int duet__tiles_spent(const struct duet__build *build,
                                      const struct duet__tiles *tiles, uint32_t first, uint32_t end,
                                      uint32_t j);

/* Frees the grids of a tiled workload (its fini), not the handles, which are the runtime's. NULL is
 * fine. */
void duet__tiled_fini(void *state);

/* Retrieves a tiled workload: gathers the data to be judged, and unregisters everything even after
 * an error. Returns the first error. */
int duet__tiled_retrieve(struct duet_runtime *runtime, void *state);

/* Generates the data of a tiled workload: *data is a struct duet__tiled_data. Errors: DUET_EABSENT
 * (a kernel has no code in this build), DUET_ENOMEM, both with a message. */
DUET_MUST_CHECK int duet__tiled_generate(const struct duet__workload *self,
                                         const struct duet__problem *problem, void **data,
                                         struct duet_message *message);
/* Fills every matrix of a tiled workload with its contents. */
void duet__tiled_fill(void *data, const struct duet_runtime *runtime);
/* True if this process fills tile (i,j) of a matrix. Uneven tiles all are filled. */
bool duet__tiled_here(const struct duet__tiled_data *data, const struct duet_runtime *runtime,
                      unsigned matrix, uint32_t i, uint32_t j);
/* Discards the data of a tiled workload. NULL is fine. */
void duet__tiled_discard(void *data);
/* Describes the matrices of a checked problem, all of `shapes`, without memory. */
void duet__tiled_describe(const struct duet__tiled *tiled, const struct duet__problem *problem,
                          struct duet__storage *matrices);
/* Returns the bytes of the matrices of a checked problem; 0 of a workload that is not tiled. */
uint64_t duet__tiled_bytes(const struct duet__workload *workload,
                           const struct duet__problem *problem);

/*
 * Makes a task of a build, for its runtime or as a child of its expansion; `kernel` is an index
 * into build->codelets. Errors: those of duet_submit or duet_expand_submit.
 */
DUET_MUST_CHECK int duet__build_task(const struct duet__build *build, unsigned kernel,
                                     const void *args, size_t args_bytes, int priority,
                                     const struct duet_access *accesses, size_t access_count);

/* Makes a task of a build with a struct duet__tile_args. */
DUET_MUST_CHECK int duet__tile_task(const struct duet__build *build, unsigned kernel,
                                    struct duet__tile_args args, int priority,
                                    const struct duet_access *accesses, size_t access_count);

/*
 * The functions below submit tasks of a factorisation of the n x n matrix A, build->matrices[0],
 * with T tiles a side; `kernel` is an index into build->codelets. The priority is 2T - 2k -
 * distance: panel k first, and within an update the tiles that the next panels need soonest
 * (cholesky.c and lu.c say whose priorities these are). Errors: those of duet__build_task.
 */

/* Returns the priority of a task of step k. */
int duet__factor_priority(const struct duet__build *build, uint32_t k, uint32_t distance);

/* Submits a task of step k on the tiles of `accesses`. */
DUET_MUST_CHECK int duet__factor_task(const struct duet__build *build, unsigned kernel,
                                      struct duet__tile_args args, uint32_t k, uint32_t distance,
                                      const struct duet_access *accesses, size_t access_count);

/* Submits the factorisation of A(k,k) in place; args: n. Distance 0. */
DUET_MUST_CHECK int duet__factor_diagonal(const struct duet__build *build, unsigned kernel,
                                          uint32_t k);

/*
 * Submits a solution with A(k,k), read first, for A(i,j) (args: m x n), where one of i and j is k
 * and the other one, the distance, is greater: j = k in a column, from the right; i = k in a row,
 * from the left.
 */
DUET_MUST_CHECK int duet__factor_solve(const struct duet__build *build, unsigned kernel, uint32_t i,
                                       uint32_t j);

/* Submits A(m,n) -= A(m,k) B with B in the tile `b`; form: 0, or DUET__TRANSPOSED for B'; args: m,
 * n, k, form. Distance m + n. */
DUET_MUST_CHECK int duet__factor_update(const struct duet__build *build, unsigned kernel,
                                        uint32_t m, uint32_t n, uint32_t k, struct duet_handle *b,
                                        uint32_t form);

/*
 * Submits all tasks of A's LU factorisation without pivoting by right-looking steps, on the
 * existing tiles; if (i,k) and (k,j) exist, (i,j) must for i, j > k. Kernels in this order:
 * getrf_nopiv, trsm_l, trsm_r, gemm.
 */
DUET_MUST_CHECK int duet__factor_lu(const struct duet__build *build);

/*
 * Flops of one kernel, as LAPACK working note 41 counts them (a square root, a division, an
 * addition and a multiplication are one each); `args` is a struct duet__tile_args.
 */
double duet__flops_gemm(const void *args);       /* C (m x n) += A (m x k) B: 2 m n k */
double duet__flops_syrk(const void *args);       /* lower C (n x n) += A (n x k) A': n (n+1) k */
double duet__flops_trsm_right(const void *args); /* B (m x n) T^-1, T of order n: m n^2 */
double duet__flops_trsm_left(const void *args);  /* T^-1 B (m x n), T of order m: m^2 n */
double duet__flops_potrf(const void *args);      /* order n: n^3/3 + n^2/2 + n/6 */
/* LU of m x n with m >= n, m = 0 for m = n, without dividing for reciprocals of the pivots: m n^2 -
   n^3/3 - n^2/2 - n/6; 1 where that is 0 (n = m = 1), as models need some work. */
double duet__flops_getrf(const void *args);

/* Number of tasks if each step has one for every tile from its diagonal tile on. */
uint64_t duet__square_tasks(const struct duet__problem *problem);

/* Flops of an LU factorisation of the whole problem, however tiled: 2 n^3/3 - n^2/2 - n/6. */
double duet__lu_flops(const struct duet__problem *problem);

#endif
