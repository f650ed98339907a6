/* SPDX-License-Identifier: Apache-2.0 */
/* What the tiled workloads share: tiles, builds, tasks of factorisations and flops of kernels. */
#include "workloads/tiles.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

size_t duet__element_bytes(const struct duet_problem *problem)
{
    return problem->precision == 's' ? 4 : 8;
}

uint64_t duet__tile_count(uint64_t size, uint64_t tile)
{
    return size / tile + (size % tile != 0);
}

int duet__tiles_check(const char *name, uint64_t size, uint64_t tile, struct duet_message *message)
{
    if (tile > size && !strcmp(name, "n"))
        return duet_fail(message, DUET_EINVAL,
                         "tiles of %llu are larger than the matrix, whose n is %llu: use tiles of "
                         "%llu or less",
                         (unsigned long long)tile, (unsigned long long)size,
                         (unsigned long long)size);
    if (duet__tile_count(size, tile) <= DUET__TILES_MAX)
        return 0;
    return duet_fail(message, DUET_EINVAL,
                     "%s = %llu in tiles of %llu makes %llu tiles, at most %d are possible: use "
                     "tiles of %llu or more",
                     name, (unsigned long long)size, (unsigned long long)tile,
                     (unsigned long long)duet__tile_count(size, tile), DUET__TILES_MAX,
                     (unsigned long long)duet__tile_count(size, DUET__TILES_MAX));
}

int duet__square_check(const struct duet_problem *problem, const struct duet_parameter *parameters,
                       struct duet_message *message)
{
    int error = duet__problem_check(problem, parameters, message);
    return error ? error : duet__tiles_check("n", problem->n, problem->tile, message);
}

/* Elements of the index-th of the pieces of length `tile` that `size` is cut into. */
static uint32_t piece(uint64_t size, uint32_t tile, uint32_t index)
{
    uint64_t rest = size - (uint64_t)index * tile;
    return rest < tile ? (uint32_t)rest : tile;
}

uint32_t duet__tile_rows(const struct duet__tiles *tiles, uint32_t i)
{
    return piece(tiles->rows, tiles->tile, i);
}

uint32_t duet__tile_cols(const struct duet__tiles *tiles, uint32_t j)
{
    return piece(tiles->cols, tiles->tile, j);
}

struct duet_handle *duet__tile(const struct duet__tiles *tiles, uint32_t i, uint32_t j)
{
    return tiles->handles[i + (size_t)j * tiles->row_tiles];
}

/* Registers a matrix without data, tile by tile, columns first. An error leaves it half filled. */
static int tiles_init(struct duet__tiles *tiles, const struct duet__shape *shape,
                      struct duet_runtime *runtime, const struct duet_problem *problem,
                      struct duet_message *message)
{
    tiles->rows = shape->rows;
    tiles->cols = shape->cols;
    tiles->tile = (uint32_t)problem->tile;
    tiles->row_tiles = (uint32_t)duet__tile_count(shape->rows, problem->tile);
    tiles->col_tiles = (uint32_t)duet__tile_count(shape->cols, problem->tile);
    size_t count = (size_t)tiles->row_tiles * tiles->col_tiles;
    tiles->handles = calloc(count, sizeof *tiles->handles);
    if (!tiles->handles)
        return duet_fail(message, DUET_ENOMEM, "no memory for the %zu tiles of a matrix", count);

    int error = 0;
    for (uint32_t j = 0; !error && j < tiles->col_tiles; j++) {
        for (uint32_t i = shape->lower ? j : 0; !error && i < tiles->row_tiles; i++) {
            uint32_t tile_rows = duet__tile_rows(tiles, i);
            error = duet_matrix(runtime, NULL, tile_rows, duet__tile_cols(tiles, j), tile_rows,
                                duet__element_bytes(problem),
                                &tiles->handles[i + (size_t)j * tiles->row_tiles]);
        }
    }
    return error;
}

static int register_kernel(struct duet_runtime *runtime, const struct duet_problem *problem,
                           const char *base, bool cpu_only, double (*flops)(const void *args),
                           struct duet_codelet **out)
{
    static const struct duet_implementation implementations[] = {
        {.arch = "cpu", .run = NULL},
        {.arch = "cuda", .run = NULL},
    };
    char name[32]; /* as long as a kernel's name may be; the core copies it */
    int length = snprintf(name, sizeof name, "%c%s", problem->precision, base);
    if (length < 0 || (size_t)length >= sizeof name)
        return DUET_EINVAL;
    const struct duet_codelet_desc desc = {
        .name = name,
        .implementations = implementations,
        .implementation_count = cpu_only ? 1 : 2,
        .flops = flops,
    };
    return duet_codelet(runtime, &desc, out);
}

static int register_codelets(struct duet__build *build, const struct duet__tiled *tiled)
{
    bool cpu_only =
        tiled->placement &&
        !strcmp(duet__setting(build->problem, tiled->parameters, tiled->placement), "cpu");
    int error = 0;
    for (size_t i = 0; !error && i < DUET__KERNELS_MAX && tiled->kernels[i]; i++)
        error = register_kernel(build->runtime, build->problem, tiled->kernels[i],
                                cpu_only && i == 0, tiled->flops[i], &build->codelets[i]);
    return error;
}

static int register_matrices(const struct duet__build *build, const struct duet__tiled *tiled,
                             struct duet__tiles *matrices, struct duet_message *message)
{
    struct duet__shape shapes[DUET__MATRICES_MAX] = {0};
    tiled->shapes(build->problem, shapes);
    int error = 0;
    for (size_t i = 0; !error && i < DUET__MATRICES_MAX && shapes[i].rows; i++)
        error = tiles_init(&matrices[i], &shapes[i], build->runtime, build->problem, message);
    return error;
}

int duet__tiled_build(const struct duet__tiled *tiled, struct duet_runtime *runtime,
                      const struct duet_problem *problem, void **state,
                      struct duet_message *message)
{
    *state = NULL;
    int error = tiled->check(problem, message);
    if (error)
        return error;
    struct duet__tiles *matrices = calloc(DUET__MATRICES_MAX, sizeof *matrices);
    if (!matrices)
        return duet_fail(message, DUET_ENOMEM, "no memory for the workload's matrices");
    struct duet__build build = {.runtime = runtime, .problem = problem, .matrices = matrices};
    error = register_codelets(&build, tiled);
    if (!error)
        error = register_matrices(&build, tiled, matrices, message);
    if (!error)
        error = tiled->submit(&build);
    if (error)
        duet__tiled_fini(matrices);
    else
        *state = matrices;
    return error;
}

void duet__tiled_fini(void *state)
{
    struct duet__tiles *matrices = state;
    for (size_t i = 0; matrices && i < DUET__MATRICES_MAX; i++)
        free(matrices[i].handles);
    free(matrices);
}

int duet__tile_task(struct duet_runtime *runtime, const struct duet_codelet *codelet,
                    struct duet__tile_args args, int priority, const struct duet_access *accesses,
                    size_t access_count)
{
    const struct duet_task_desc task = {
        .codelet = codelet,
        .accesses = accesses,
        .access_count = access_count,
        .args = &args,
        .args_bytes = sizeof args,
        .priority = priority,
    };
    return duet_submit(runtime, &task);
}

int duet__factor_task(const struct duet__build *build, unsigned kernel, struct duet__tile_args args,
                      uint32_t k, uint32_t distance, const struct duet_access *accesses,
                      size_t access_count)
{
    int priority = 2 * (int)build->matrices->row_tiles - 2 * (int)k - (int)distance;
    return duet__tile_task(build->runtime, build->codelets[kernel], args, priority, accesses,
                           access_count);
}

int duet__factor_diagonal(const struct duet__build *build, unsigned kernel, uint32_t k)
{
    const struct duet__tiles *a = build->matrices;
    const struct duet_access access = {duet__tile(a, k, k), DUET_RW};
    const struct duet__tile_args args = {.n = duet__tile_cols(a, k)};
    return duet__factor_task(build, kernel, args, k, 0, &access, 1);
}

int duet__factor_solve(const struct duet__build *build, unsigned kernel, uint32_t i, uint32_t j)
{
    const struct duet__tiles *a = build->matrices;
    uint32_t k = i < j ? i : j, distance = i < j ? j : i;
    const struct duet_access accesses[] = {
        {duet__tile(a, k, k), DUET_R},
        {duet__tile(a, i, j), DUET_RW},
    };
    const struct duet__tile_args args = {.m = duet__tile_rows(a, i), .n = duet__tile_cols(a, j)};
    return duet__factor_task(build, kernel, args, k, distance, accesses, 2);
}

int duet__factor_update(const struct duet__build *build, unsigned kernel, uint32_t m, uint32_t n,
                        uint32_t k, struct duet_handle *b)
{
    const struct duet__tiles *a = build->matrices;
    const struct duet_access accesses[] = {
        {duet__tile(a, m, k), DUET_R},
        {b, DUET_R},
        {duet__tile(a, m, n), DUET_RW},
    };
    const struct duet__tile_args args = {
        .m = duet__tile_rows(a, m),
        .n = duet__tile_cols(a, n),
        .k = duet__tile_cols(a, k),
    };
    return duet__factor_task(build, kernel, args, k, m + n, accesses, 3);
}

double duet__flops_gemm(const void *args)
{
    const struct duet__tile_args *size = args;
    return 2.0 * size->m * size->n * size->k;
}

double duet__flops_syrk(const void *args)
{
    const struct duet__tile_args *size = args;
    return size->n * (size->n + 1.0) * size->k;
}

double duet__flops_trsm_right(const void *args)
{
    const struct duet__tile_args *size = args;
    return (double)size->m * size->n * size->n;
}

double duet__flops_trsm_left(const void *args)
{
    const struct duet__tile_args *size = args;
    return (double)size->m * size->m * size->n;
}

double duet__flops_potrf(const void *args)
{
    double n = ((const struct duet__tile_args *)args)->n;
    return n * n * n / 3 + n * n / 2 + n / 6;
}

double duet__flops_getrf(const void *args)
{
    double n = ((const struct duet__tile_args *)args)->n;
    return n > 1 ? 2 * n * n * n / 3 - n * n / 2 - n / 6 : 1;
}
