/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tiled matrix product C := C + A B with C m x n, A m x k, B k x n.
 *
 * One task per tile triple; the k updates of a tile of C follow each other. All tasks have equal
 * priority: no tile of C is on a longer path than another.
 */
#include "workloads/tiles.h"

static const struct duet_parameter parameters[] = {
    {"m", "1..536870912", "n", "rows of A and C"},
    {"k", "1..536870912", "n", "columns of A, rows of B"},
    {0},
};

static const char *const kernels[] = {"gemm", NULL};

/* The matrices of a build. */
enum { A, B, C };

static uint64_t rows(const struct duet_problem *problem)
{
    return duet__setting_number(problem, parameters, "m", problem->n);
}

static uint64_t depth(const struct duet_problem *problem)
{
    return duet__setting_number(problem, parameters, "k", problem->n);
}

static int check(const struct duet_problem *problem, struct duet_message *message)
{
    int error = duet__problem_check(problem, parameters, message);
    if (!error)
        error = duet__tiles_check("n", problem->n, problem->tile, message);
    if (!error)
        error = duet__tiles_check("m", rows(problem), problem->tile, message);
    if (!error)
        error = duet__tiles_check("k", depth(problem), problem->tile, message);
    return error;
}

static double flops(const struct duet_problem *problem)
{
    return 2.0 * (double)rows(problem) * (double)problem->n * (double)depth(problem);
}

static uint64_t tasks(const struct duet_problem *problem)
{
    return duet__tile_count(rows(problem), problem->tile) *
           duet__tile_count(problem->n, problem->tile) *
           duet__tile_count(depth(problem), problem->tile);
}

static uint64_t bytes(const struct duet_problem *problem)
{
    uint64_t m = rows(problem), n = problem->n, k = depth(problem);
    return (m * k + k * n + m * n) * duet__element_bytes(problem);
}

static int submit(const struct duet__build *build)
{
    const struct duet__tiles *a = &build->matrices[A], *b = &build->matrices[B];
    const struct duet__tiles *c = &build->matrices[C];
    int error = 0;
    for (uint32_t i = 0; !error && i < c->row_tiles; i++) {
        for (uint32_t j = 0; !error && j < c->col_tiles; j++) {
            for (uint32_t l = 0; !error && l < a->col_tiles; l++) {
                const struct duet_access accesses[] = {
                    {duet__tile(a, i, l), DUET_R},
                    {duet__tile(b, l, j), DUET_R},
                    {duet__tile(c, i, j), DUET_RW},
                };
                const struct duet__tile_args args = {
                    .m = duet__tile_rows(c, i),
                    .n = duet__tile_cols(c, j),
                    .k = duet__tile_cols(a, l),
                };
                error = duet__tile_task(build->runtime, build->codelets[0], args, 0, accesses, 3);
            }
        }
    }
    return error;
}

static void shapes(const struct duet_problem *problem, struct duet__shape *out)
{
    uint64_t m = rows(problem), n = problem->n, k = depth(problem);
    out[A] = (struct duet__shape){m, k, .lower = false};
    out[B] = (struct duet__shape){k, n, .lower = false};
    out[C] = (struct duet__shape){m, n, .lower = false};
}

static int build(struct duet_runtime *runtime, const struct duet_problem *problem, void **state,
                 struct duet_message *message)
{
    static const struct duet__tiled tiled = {
        .check = check,
        .shapes = shapes,
        .kernels = kernels,
        .flops = {duet__flops_gemm},
        .submit = submit,
    };
    return duet__tiled_build(&tiled, runtime, problem, state, message);
}

const struct duet_workload duet__workload_gemm = {
    .name = "gemm",
    .description = "tiled matrix product C := C + A B, C of m x n, A of m x k",
    .source = "Golub, Van Loan, Matrix Computations, section 1.3",
    .parameters = parameters,
    .kernels = kernels,
    .default_n = 19200,
    .default_tile = 960,
    .check = check,
    .flops = flops,
    .tasks = tasks,
    .bytes = bytes,
    .build = build,
    .fini = duet__tiled_fini,
};
