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

#include "workloads/data.h"
#include "workloads/workload.h"

enum {
    DUET__TILE_MAX = 65536,  /* longest tile edge, so that a tile's elements and bytes stay small */
    DUET__TILES_MAX = 8192,  /* tiles in a row or a column: 9 x 10^10 tasks of a Cholesky */
    DUET__MATRICES_MAX = 10, /* matrices of a tiled workload */
    DUET__KERNELS_MAX = 5,   /* kernels of a tiled workload */
};

/* What a product does: C := C + A B, and with these bits C - A B, C + A B' or C - A B'. */
enum duet__form { DUET__MINUS = 1, DUET__TRANSPOSED = 2 };

/* Arguments of every tiled kernel: sizes in elements, in BLAS's notation; k = 0 where unused. */
struct duet__tile_args {
    uint32_t m, n, k;
    uint32_t form; /* of gemm: bits of enum duet__form; else 0 */
};

/* The parameter of workloads on matrices for the layout of these in memory. */
#define DUET__LAYOUT_PARAMETER                                                                     \
    {                                                                                              \
        "layout", "tile|lapack", "tile",                                                           \
            "matrices in memory: each tile contiguous, or column-major as a whole"                 \
    }

/* A matrix as a grid of registered tiles; zeroed, one without tiles. */
struct duet__tiles {
    uint64_t rows, cols;           /* elements of the matrix */
    uint32_t tile_rows, tile_cols; /* of a tile, elements; fewer in the last of a column or row */
    uint32_t row_tiles, col_tiles; /* tiles of a column, of a row */
    const uint64_t *cuts;          /* rows where uneven tiles begin, and where the last one ends;
                                      NULL: every tile_rows. The first matrix owns what all have */
    struct duet_handle **handles;  /* column-major; NULL where the shape has no tile */
    bool gathered;                 /* what is retrieved goes to node 0 */
};

/* A matrix to register. */
struct duet__shape {
    uint64_t rows, cols;                      /* elements */
    uint32_t tile_rows, tile_cols;            /* of a tile; 0: the problem's tile */
    uint32_t element_bytes;                   /* 0: by the problem's precision */
    bool lower;                               /* only the tiles on and below the diagonal */
    bool (*is_there)(uint32_t i, uint32_t j); /* only these tiles; NULL: all */
    enum duet__contents contents;
};

/* One build under way. */
struct duet__build {
    struct duet_runtime *runtime;
    const struct duet__problem *problem;
    const struct duet__tiles *matrices;               /* in the order of `shapes` */
    struct duet_codelet *codelets[DUET__KERNELS_MAX]; /* in the order of `kernels` */
    struct duet_expansion
        *expansion;     /* tasks are children of this; NULL: submitted to the runtime */
    uint64_t where;     /* architectures of every task; 0: anywhere */
    int priority;       /* added to that of every task */
    uint32_t iteration; /* of the tasks, from 1; 0: there are none */
    double complexity;  /* hint of the tasks; 0: their flops */
};

/* What is a tiled workload's own, beside its description; the functions below do the rest. Its
 * kernels are at most DUET__KERNELS_MAX. */
struct duet__tiled {
    /* Sets the shapes of a checked problem's matrices in the order of registration; `shapes` has
     * DUET__MATRICES_MAX, all zeroed, and the first that keeps 0 rows ends them. */
    void (*shapes)(const struct duet__problem *problem, struct duet__shape *shapes);
    double (*flops[DUET__KERNELS_MAX])(const void *args); /* of each; a struct duet__tile_args */
    unsigned cpu_only; /* bit i: kernel i has no implementation but the CPUs' */
    /* So have these kernels if the setting of this name is "cpu". NULL: there is no such one. */
    const char *placement;
    unsigned placed; /* bits as in cpu_only; 0: the first kernel */
    /* Rows where the tiles of every matrix begin, if these are uneven, and where the last one ends:
     * duet__uneven_cuts. Matrices then are column-major as a whole. NULL: tiles are even. */
    uint64_t *(*cuts)(const struct duet__problem *problem);
    /* The node that owns tile (i,j) of matrix number `matrix`. NULL: duet_node_at of i and j. */
    unsigned (*owner)(const struct duet_runtime *runtime, const struct duet__problem *problem,
                      unsigned matrix, uint32_t i, uint32_t j);
    /* Submits every task, up to the first error, which it returns. */
    int (*submit)(const struct duet__build *build);
};

/* What a tiled workload computes on, made by duet__tiled_generate. */
struct duet__tiled_data {
    const struct duet__tiled *tiled;
    struct duet__problem problem; /* without settings and data */
    uint64_t iterations;          /* the parameter of this name; 0: there is none */
    uint64_t *cuts;               /* rows where uneven tiles begin; NULL: they are even */
    struct duet__storage matrices[DUET__MATRICES_MAX]; /* in the order of `shapes`, then zeroed */
};

/* Checks precision and settings: what duet__problem_check does beside the sizes. */
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

/* The value given for the parameter `name` (the last, if several), else its initial one. */
const char *duet__setting(const struct duet__problem *problem,
                          const struct duet__parameter *parameters, const char *name);

/* The same as a whole number; `otherwise` where the setting is not a number ("n"). */
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

/*
 * The check of a workload on one n x n matrix: duet__problem_check, then duet__tiles_check of "n".
 * DUET_EINVAL with a message.
 */
DUET_MUST_CHECK int duet__square_check(const struct duet__problem *problem,
                                       const struct duet__parameter *parameters,
                                       struct duet_message *message);

/* The parameter of workloads whose n elements are cut into pieces of `tile` in the mean. */
#define DUET__SIZES_PARAMETER                                                                      \
    {                                                                                              \
        "sizes", "fixed|uniform|bimodal", "uniform",                                               \
            "of the pieces: all alike; 1/8 to 15/8 of the mean; one in ten eleven times the "      \
            "others"                                                                               \
    }

/*
 * The check of such a workload: duet__problem_check, and that there are at most `most` pieces,
 * which are called `name`. DUET_EINVAL with a message.
 */
DUET_MUST_CHECK int duet__uneven_check(const struct duet__problem *problem,
                                       const struct duet__parameter *parameters, const char *name,
                                       uint64_t most, struct duet_message *message);

/*
 * Where the pieces of a checked problem begin, at least one element long each, and where the last
 * one ends: one number more than duet__tile_count says. Drawn from the problem's seed. The
 * caller's, for free; NULL: no memory.
 */
uint64_t *duet__uneven_cuts(const struct duet__problem *problem,
                            const struct duet__parameter *parameters);

/* Bytes of an element: 4 for precision 's', 8 for 'd'. */
size_t duet__element_bytes(const struct duet__problem *problem);

/* Number of tiles that cover `size` elements. */
uint64_t duet__tile_count(uint64_t size, uint64_t tile);

/* The tile at row i, column j of the grid; NULL: there is none. */
struct duet_handle *duet__tile(const struct duet__tiles *tiles, uint32_t i, uint32_t j);

/* Rows of the tiles of grid row i; columns of the tiles of grid column j. */
uint32_t duet__tile_rows(const struct duet__tiles *tiles, uint32_t i);
uint32_t duet__tile_cols(const struct duet__tiles *tiles, uint32_t j);

/* The slots of a tiled workload that are the same in all: `own` is its struct duet__tiled, `fills`
 * duet__tiled_fill or its own. */
#define DUET__TILED_SLOTS(own, fills)                                                              \
    .tiled = &(own), .build = duet__tiled_build, .fini = duet__tiled_fini,                         \
    .generate = duet__tiled_generate, .fill = (fills), .retrieve = duet__tiled_retrieve,           \
    .discard = duet__tiled_discard

/*
 * A tiled workload's build: checks the problem, finds or registers the kernels in its
 * precision ("gemm" -> "dgemm"), for "cpu" and, unless placed on CPUs only, for "cuda" and
 * "opencl", with code
 * if the problem has data (BLAS then uses one thread a call); then the matrices, tile by tile,
 * columns first, with their memory page-locked; and submits the tasks; may block in duet_submit. A
 * kernel found keeps the placement it was registered with. *state is an array of DUET__MATRICES_MAX
 * struct duet__tiles in the order of the shapes, zeroed where there is no shape, and the caller's,
 * for duet__tiled_fini; NULL on error. Errors: those of `check`, DUET_ENOWORKER (a kernel for CPUs
 * only, and none computes) and DUET_ENOMEM, with a message; those of duet_codelet, duet_matrix and
 * `submit`.
 */
DUET_MUST_CHECK int duet__tiled_build(const struct duet__workload *self,
                                      struct duet_runtime *runtime,
                                      const struct duet__problem *problem, void **state,
                                      struct duet_message *message);

/* The owner slot of vectors in pieces: piece i is dealt to each node in turn. */
unsigned duet__owner_in_turn(const struct duet_runtime *runtime,
                             const struct duet__problem *problem, unsigned matrix, uint32_t i,
                             uint32_t j);

/*
 * No task to come touches tiles (first ... end - 1, j) of a matrix, or those of them that there
 * are: of several nodes, they go home to their owners, and others keep nothing of them. With one
 * node, and in an expansion, nothing is done. Errors: those of duet_fetch and duet_wont_use.
 */
DUET_MUST_CHECK int duet__tiles_spent(const struct duet__build *build,
                                      const struct duet__tiles *tiles, uint32_t first, uint32_t end,
                                      uint32_t j);

/* A tiled workload's fini: frees the grids, not the handles (the runtime's). NULL is fine. */
void duet__tiled_fini(void *state);

/* A tiled workload's retrieve. Gathers what is to be judged, and unregisters everything even after
 * an error; the first comes back. */
int duet__tiled_retrieve(struct duet_runtime *runtime, void *state);

/*
 * A tiled workload's generate: *data is a struct duet__tiled_data. Errors: DUET_EABSENT
 * (a kernel has no code in this build), DUET_ENOMEM, both with a message.
 */
DUET_MUST_CHECK int duet__tiled_generate(const struct duet__workload *self,
                                         const struct duet__problem *problem, void **data,
                                         struct duet_message *message);
/* A tiled workload's fill: of every matrix by its contents. */
void duet__tiled_fill(void *data, const struct duet_runtime *runtime);
/* Whether tile (i,j) of a matrix is to be filled in this process. Uneven ones all are. */
bool duet__tiled_here(const struct duet__tiled_data *data, const struct duet_runtime *runtime,
                      unsigned matrix, uint32_t i, uint32_t j);
/* A tiled workload's discard. NULL is fine. */
void duet__tiled_discard(void *data);

/*
 * Makes a task of a build, for its runtime or as a child of its expansion; `kernel` is an index
 * into build->codelets. Errors: those of duet_submit or duet_expand_submit.
 */
DUET_MUST_CHECK int duet__build_task(const struct duet__build *build, unsigned kernel,
                                     const void *args, size_t args_bytes, int priority,
                                     const struct duet_access *accesses, size_t access_count);

/* The same with the usual arguments. */
DUET_MUST_CHECK int duet__tile_task(const struct duet__build *build, unsigned kernel,
                                    struct duet__tile_args args, int priority,
                                    const struct duet_access *accesses, size_t access_count);

/*
 * Tasks of a factorisation of the n x n matrix A, which is build->matrices[0], with T tiles a side;
 * `kernel` is an index into build->codelets. The priority is 2T - 2k - distance: panel k first, and
 * within an update the tiles that the next panels need soonest (cholesky.c and lu.c say whose
 * priorities these are). Errors: those of duet__build_task.
 */

/* The priority of a task of step k. */
int duet__factor_priority(const struct duet__build *build, uint32_t k, uint32_t distance);

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

/*
 * A(m,n) -= A(m,k) B with B in the tile `b`; form: 0, or DUET__TRANSPOSED for B'; args: m, n, k,
 * form. Distance m + n.
 */
DUET_MUST_CHECK int duet__factor_update(const struct duet__build *build, unsigned kernel,
                                        uint32_t m, uint32_t n, uint32_t k, struct duet_handle *b,
                                        uint32_t form);

/*
 * All tasks of A's LU factorisation without pivoting by right-looking steps, of the tiles that
 * there are; with (i,k) and (k,j) also (i,j) has to be there for i, j > k. Kernels in this order:
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

/* Number of tasks where each step has one for every tile from its diagonal tile on. */
uint64_t duet__square_tasks(const struct duet__problem *problem);

/* Flops of an LU factorisation of the whole problem, however tiled: 2 n^3/3 - n^2/2 - n/6. */
double duet__lu_flops(const struct duet__problem *problem);

#endif
