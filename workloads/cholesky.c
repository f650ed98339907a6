/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tiled Cholesky factorisation A = L L' of a symmetric positive definite matrix, lower triangle,
 * in the right-looking (eager updates) and left-looking (late updates) order.
 *
 * Algorithm: Buttari, Langou, Kurzak, Dongarra, "A class of parallel tiled linear algebra
 * algorithms for multicore architectures", Parallel Computing 35, 2009. Both orders submit the
 * same tasks, and every tile sees the same sequence of accesses, so that the graphs are equal. They
 * differ in when a task is submitted: runs differ only where submission is slower than execution,
 * or where the window of submitted tasks is smaller than the graph.
 *
 * Priorities are Chameleon's and, before it, PLASMA's (compute/pzpotrf.c), with T tiles a side:
 * panel k first, and within an update the tiles that the next panels need soonest:
 *     potrf(k) 2T - 2k,  trsm(m,k) 2T - 2k - m,  syrk(n,k) 2T - 2k - n,
 *     gemm(m,n,k) 2T - 2k - n - m
 *
 * With blocks it has two levels of parallelism, as in Ltaief, Tomov, Nath, Dongarra, "Hybrid
 * multicore Cholesky factorization with multiple GPU accelerators", 2010: the task of a diagonal
 * tile expands into the same factorisation of its blocks, right-looking, so that all CPUs may take
 * part in what the next panel waits for.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "workloads/kernels.h"
#include "workloads/tiles.h"

enum { BLOCKS_MAX = 64 /* blocks of an edge of a tile: 45,760 children of a diagonal tile */ };

static const struct duet__parameter parameters[] = {
    {"variant", "right|left", "right", "order of the loops: eager or late updates"},
    {"potrf", "cpu|any", "cpu", "where the diagonal tiles are factorised: CPUs only, or anywhere"},
    {"block", "0..65536", "0", "diagonal tiles are factorised by blocks of this edge; 0: at once"},
    DUET__LAYOUT_PARAMETER,
    {0},
};

static const char *const kernels[] = {"potrf", "trsm", "syrk", "gemm", NULL};

/* Numbers of the kernels in a build. */
enum { POTRF, TRSM, SYRK, GEMM, BLOCKS };

static uint32_t block_of(const struct duet__problem *problem)
{
    return (uint32_t)duet__setting_number(problem, parameters, "block", 0);
}

static int cholesky_check(const struct duet__problem *problem, struct duet_message *message)
{
    int error = duet__square_check(problem, parameters, message);
    if (error)
        return error;
    uint64_t block = block_of(problem);
    if (!block || duet__tile_count(problem->tile, block) <= BLOCKS_MAX)
        return 0;
    return duet_fail(message, DUET_EINVAL,
                     "blocks of %llu are too small for tiles of %llu: use blocks of %llu or more",
                     (unsigned long long)block, (unsigned long long)problem->tile,
                     (unsigned long long)duet__tile_count(problem->tile, BLOCKS_MAX));
}

static double cholesky_flops(const struct duet__problem *problem)
{
    double n = (double)problem->n;
    return n * n * n / 3 + n * n / 2 + n / 6;
}

static uint64_t cholesky_tasks(const struct duet__problem *problem)
{
    uint64_t t = duet__tile_count(problem->n, problem->tile);
    /* potrf: t; trsm and syrk: t (t-1) / 2 each; gemm: t (t-1) (t-2) / 6. */
    return t * t + (t < 3 ? 0 : t * (t - 1) * (t - 2) / 6);
}

/* Arguments of a diagonal tile that is factorised by blocks. */
struct blocks_args {
    struct duet__tile_args size; /* first member, for the flops */
    uint32_t block;              /* edge of a block */
    int32_t priority;            /* of the task; added to its children's */
    uint32_t cpu_only;           /* children run on CPUs only */
};

/* Factorises the diagonal tile k by blocks of `block`. */
static int potrf_by_blocks(const struct duet__build *build, uint32_t k, uint32_t block)
{
    const struct duet_access access = {duet__tile(build->matrices, k, k), DUET_RW};
    const struct blocks_args args = {
        .size.n = duet__tile_cols(build->matrices, k),
        .block = block,
        .priority = duet__factor_priority(build, k, 0),
        .cpu_only = !strcmp(duet__setting(build->problem, parameters, "potrf"), "cpu"),
    };
    return duet__build_task(build, BLOCKS, &args, sizeof args, args.priority, &access, 1);
}

static int potrf(const struct duet__build *build, uint32_t k)
{
    uint32_t block = build->expansion ? 0 : block_of(build->problem);
    if (block && block < duet__tile_cols(build->matrices, k))
        return potrf_by_blocks(build, k, block);
    return duet__factor_diagonal(build, POTRF, k);
}

/* A(m,k) := A(m,k) L(k,k)^-T */
static int trsm(const struct duet__build *build, uint32_t m, uint32_t k)
{
    return duet__factor_solve(build, TRSM, m, k);
}

/* A(n,n) := A(n,n) - L(n,k) L(n,k)' */
static int syrk(const struct duet__build *build, uint32_t n, uint32_t k)
{
    const struct duet__tiles *a = build->matrices;
    const struct duet_access accesses[] = {
        {duet__tile(a, n, k), DUET_R},
        {duet__tile(a, n, n), DUET_RW},
    };
    const struct duet__tile_args args = {.n = duet__tile_rows(a, n), .k = duet__tile_cols(a, k)};
    return duet__factor_task(build, SYRK, args, k, n, accesses, 2);
}

/* A(m,n) := A(m,n) - L(m,k) L(n,k)' */
static int gemm(const struct duet__build *build, uint32_t m, uint32_t n, uint32_t k)
{
    return duet__factor_update(build, GEMM, m, n, k, duet__tile(build->matrices, n, k),
                               DUET__TRANSPOSED);
}

/* Right-looking: as soon as panel k is known, it updates everything to its right. */
static int submit_right(const struct duet__build *build)
{
    uint32_t t = build->matrices->row_tiles;
    int error = 0;
    for (uint32_t k = 0; !error && k < t; k++) {
        error = potrf(build, k);
        for (uint32_t m = k + 1; !error && m < t; m++)
            error = trsm(build, m, k);
        for (uint32_t n = k + 1; !error && n < t; n++) {
            error = syrk(build, n, k);
            for (uint32_t m = n + 1; !error && m < t; m++)
                error = gemm(build, m, n, k);
        }
        error = error ? error : duet__tiles_spent(build, build->matrices, k, t, k);
    }
    return error;
}

/* Left-looking: panel n is updated by all panels k to its left just before it is factorised. */
static int submit_left(const struct duet__build *build)
{
    uint32_t t = build->matrices->row_tiles;
    int error = 0;
    for (uint32_t n = 0; !error && n < t; n++) {
        for (uint32_t k = 0; !error && k < n; k++)
            error = syrk(build, n, k);
        if (!error)
            error = potrf(build, n);
        for (uint32_t m = n + 1; !error && m < t; m++) {
            for (uint32_t k = 0; !error && k < n; k++)
                error = gemm(build, m, n, k);
            if (!error)
                error = trsm(build, m, n);
        }
        for (uint32_t k = 0; !error && k <= n; k++)
            error = duet__tiles_spent(build, build->matrices, n, n + 1, k);
    }
    return error;
}

/* Finds the kernels in the precision of the tile, which the build has registered. */
static int find_kernels(struct duet__build *build, size_t element_bytes)
{
    for (unsigned i = 0; kernels[i]; i++) {
        char name[32];
        snprintf(name, sizeof name, "%c%s", element_bytes == 4 ? 's' : 'd', kernels[i]);
        build->codelets[i] = duet_codelet_find(build->runtime, name);
        if (!build->codelets[i])
            return DUET_ENOTFOUND;
    }
    return 0;
}

/* Makes the blocks of the tile that expands. */
static int make_blocks(struct duet_expansion *expansion, struct duet__tiles *blocks)
{
    int error = 0;
    for (uint32_t j = 0; !error && j < blocks->col_tiles; j++) {
        for (uint32_t i = j; !error && i < blocks->row_tiles; i++)
            error = duet_expand_block(expansion, 0, (size_t)i * blocks->tile_rows,
                                      (size_t)j * blocks->tile_cols, duet__tile_rows(blocks, i),
                                      duet__tile_cols(blocks, j),
                                      &blocks->handles[i + (size_t)j * blocks->row_tiles]);
    }
    return error;
}

static int expand(struct duet_expansion *expansion, const struct duet_call *call)
{
    const struct blocks_args *args = call->args;
    uint32_t n = args->size.n, edge = args->block, count = (uint32_t)duet__tile_count(n, edge);
    struct duet__tiles blocks = {n, n, edge, edge, count, count, NULL, NULL, false};
    struct duet__build build = {
        .runtime = call->runtime,
        .matrices = &blocks,
        .expansion = expansion,
        .where = args->cpu_only ? duet_where(call->runtime, "cpu") : 0,
        .priority = args->priority,
    };
    blocks.handles = calloc((size_t)count * count, sizeof(struct duet_handle *));
    if (!blocks.handles)
        return DUET_ENOMEM;
    int error = find_kernels(&build, call->buffers[0].element_bytes);
    if (!error)
        error = make_blocks(expansion, &blocks);
    if (!error)
        error = submit_right(&build);
    free(blocks.handles);
    return error;
}

/* Finds or registers the kernel of diagonal tiles that are factorised by blocks. */
static int find_blocks(const struct duet__build *build, struct duet_codelet **out)
{
    const struct duet_codelet_desc desc = {
        .name = build->problem->precision == 's' ? "spotrf_blocks" : "dpotrf_blocks",
        .flops = duet__flops_potrf,
        .expand = expand,
    };
    *out = duet_codelet_find(build->runtime, desc.name);
    return *out ? 0 : duet_register_codelet(build->runtime, &desc, out);
}

static int cholesky_submit(const struct duet__build *begun)
{
    struct duet__build build = *begun;
    bool left = !strcmp(duet__setting(build.problem, parameters, "variant"), "left");
    int error = block_of(build.problem) ? find_blocks(&build, &build.codelets[BLOCKS]) : 0;
    if (error)
        return error;
    return left ? submit_left(&build) : submit_right(&build);
}

static void cholesky_shapes(const struct duet__problem *problem, struct duet__storage *out)
{
    out[0] =
        (struct duet__storage){problem->n, problem->n, .lower = true, .contents = DUET__SYMMETRIC};
}

static const struct duet__tiled tiled = {
    .shapes = cholesky_shapes,
    .flops = {duet__flops_potrf, duet__flops_trsm_right, duet__flops_syrk, duet__flops_gemm},
    .placement = "potrf",
    .submit = cholesky_submit,
};

const struct duet__workload duet__workload_cholesky = {
    .name = "cholesky",
    .description = "tiled Cholesky factorisation, lower triangle, of an n x n matrix",
    .source = "Buttari, Langou, Kurzak, Dongarra, Parallel Computing 35, 2009",
    .parameters = parameters,
    .kernels = kernels,
    .default_n = 38400,
    .default_tile = 960,
    .real_n = 4096,
    .real_tile = 256,
    .check = cholesky_check,
    .flops = cholesky_flops,
    .tasks = cholesky_tasks,
    DUET__TILED_SLOTS(tiled, duet__tiled_fill),
    .verify = duet__judge_factors,
};
