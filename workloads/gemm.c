/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tiled matrix product C := C + A B with C m x n, A m x k, B k x n.
 *
 * One task per tile triple; the k updates of a tile of C follow each other. All tasks have equal
 * priority: no tile of C is on a longer path than another.
 */
#include <stdlib.h>

#include "workloads/tiles.h"

static const struct duet_parameter parameters[] = {
    {"m", "1..536870912", "n", "rows of A and C"},
    {"k", "1..536870912", "n", "columns of A, rows of B"},
    {0},
};

static const char *const kernels[] = {"gemm", NULL};

/* Matrices of one build. */
struct product {
    struct duet__tiles a, b, c;
};

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

static int submit(struct duet_runtime *runtime, const struct product *p,
                  const struct duet_codelet *gemm)
{
    int error = 0;
    for (uint32_t i = 0; !error && i < p->c.row_tiles; i++) {
        for (uint32_t j = 0; !error && j < p->c.col_tiles; j++) {
            for (uint32_t l = 0; !error && l < p->a.col_tiles; l++) {
                const struct duet_access accesses[] = {
                    {duet__tile(&p->a, i, l), DUET_R},
                    {duet__tile(&p->b, l, j), DUET_R},
                    {duet__tile(&p->c, i, j), DUET_RW},
                };
                const struct duet__tile_args args = {
                    .m = duet__tile_rows(&p->c, i),
                    .n = duet__tile_cols(&p->c, j),
                    .k = duet__tile_cols(&p->a, l),
                };
                error = duet__tile_task(runtime, gemm, args, 0, accesses, 3);
            }
        }
    }
    return error;
}

static void fini(void *state)
{
    struct product *p = state;
    if (!p)
        return;
    duet__tiles_fini(&p->a);
    duet__tiles_fini(&p->b);
    duet__tiles_fini(&p->c);
    free(p);
}

static int build(struct duet_runtime *runtime, const struct duet_problem *problem, void **state,
                 struct duet_message *message)
{
    *state = NULL;
    int error = check(problem, message);
    if (error)
        return error;
    uint64_t m = rows(problem), n = problem->n, k = depth(problem);
    struct duet_codelet *gemm;
    struct product *p = calloc(1, sizeof *p);
    if (!p)
        return duet_fail(message, DUET_ENOMEM, "no memory for three matrices");
    error = duet__tile_codelet(runtime, problem, "gemm", false, duet__flops_gemm, &gemm);
    if (!error)
        error = duet__tiles_init(&p->a, runtime, m, k, problem, false, message);
    if (!error)
        error = duet__tiles_init(&p->b, runtime, k, n, problem, false, message);
    if (!error)
        error = duet__tiles_init(&p->c, runtime, m, n, problem, false, message);
    if (!error)
        error = submit(runtime, p, gemm);
    if (error)
        fini(p);
    else
        *state = p;
    return error;
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
    .fini = fini,
};
