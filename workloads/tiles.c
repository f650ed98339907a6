/* SPDX-License-Identifier: Apache-2.0 */
/* Registered tiles, tiled kernels and their flops, shared by the tiled workloads. */
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

int duet__tiles_init(struct duet__tiles *tiles, struct duet_runtime *runtime, uint64_t rows,
                     uint64_t cols, const struct duet_problem *problem, bool lower,
                     struct duet_message *message)
{
    tiles->rows = rows;
    tiles->cols = cols;
    tiles->tile = (uint32_t)problem->tile;
    tiles->row_tiles = (uint32_t)duet__tile_count(rows, problem->tile);
    tiles->col_tiles = (uint32_t)duet__tile_count(cols, problem->tile);
    size_t count = (size_t)tiles->row_tiles * tiles->col_tiles;
    tiles->handles = calloc(count, sizeof *tiles->handles);
    if (!tiles->handles)
        return duet_fail(message, DUET_ENOMEM, "no memory for the %zu tiles of a matrix", count);

    for (uint32_t j = 0; j < tiles->col_tiles; j++) {
        for (uint32_t i = lower ? j : 0; i < tiles->row_tiles; i++) {
            uint32_t tile_rows = duet__tile_rows(tiles, i);
            int error = duet_matrix(runtime, NULL, tile_rows, duet__tile_cols(tiles, j), tile_rows,
                                    duet__element_bytes(problem),
                                    &tiles->handles[i + (size_t)j * tiles->row_tiles]);
            if (error) {
                duet__tiles_fini(tiles);
                return error;
            }
        }
    }
    return 0;
}

void duet__tiles_fini(struct duet__tiles *tiles)
{
    free(tiles->handles);
    *tiles = (struct duet__tiles){0};
}

int duet__tile_codelet(struct duet_runtime *runtime, const struct duet_problem *problem,
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
