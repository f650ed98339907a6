/* SPDX-License-Identifier: Apache-2.0 */
/* Making, filling and freeing the matrices that the tiled workloads compute on. */
#include <stdlib.h>
#include <string.h>

#include "workloads/kernels.h"
#include "workloads/tiles.h"

/* DUET_EABSENT if one of the kernels cannot be run. */
static int check_kernels(const char *const *kernels, struct duet_message *message)
{
    for (; *kernels; kernels++) {
        if (!duet__kernel(*kernels))
            return duet_fail(message, DUET_EABSENT,
                             "there is no code for kernel %s: this duet was built without BLAS, so "
                             "that the workload can only be simulated",
                             *kernels);
    }
    return 0;
}

void duet__tiled_describe(const struct duet__tiled *tiled, const struct duet__problem *problem,
                          struct duet__storage *matrices)
{
    memset(matrices, 0, DUET__MATRICES_MAX * sizeof *matrices);
    tiled->shapes(problem, matrices);
    for (unsigned i = 0; i < DUET__MATRICES_MAX && matrices[i].rows; i++) {
        struct duet__storage *matrix = &matrices[i];
        if (!matrix->tile_rows)
            matrix->tile_rows = (uint32_t)problem->tile;
        if (!matrix->tile_cols)
            matrix->tile_cols = (uint32_t)problem->tile;
        if (!matrix->element_bytes)
            matrix->element_bytes = duet__element_bytes(problem);
        matrix->dealt = duet__several_nodes(problem);
        matrix->key = duet__data_key(problem->seed, i);
    }
}

/* Returns the elements in those tiles of a matrix that are there. */
static uint64_t count_there(const struct duet__storage *matrix)
{
    uint64_t count = 0;
    for (uint32_t j = 0; j < duet__tile_count(matrix->cols, matrix->tile_cols); j++)
        for (uint32_t i = 0; i < duet__tile_count(matrix->rows, matrix->tile_rows); i++)
            if (matrix->is_there(i, j))
                count += duet__piece(matrix->rows, matrix->tile_rows, i) *
                         duet__piece(matrix->cols, matrix->tile_cols, j);
    return count;
}

uint64_t duet__tiled_bytes(const struct duet__workload *workload,
                           const struct duet__problem *problem)
{
    struct duet__storage matrices[DUET__MATRICES_MAX] = {0};
    uint64_t bytes = 0;
    if (workload->tiled)
        duet__tiled_describe(workload->tiled, problem, matrices);
    for (unsigned i = 0; i < DUET__MATRICES_MAX && matrices[i].rows; i++)
        bytes += matrices[i].is_there ? count_there(&matrices[i]) * matrices[i].element_bytes
                                      : duet__storage_bytes(&matrices[i]);
    return bytes;
}

int duet__tiled_generate(const struct duet__workload *self, const struct duet__problem *problem,
                         void **out, struct duet_message *message)
{
    const struct duet__tiled *tiled = self->tiled;
    *out = NULL;
    int error = check_kernels(self->kernels, message);
    if (error)
        return error;
    struct duet__tiled_data *data = calloc(1, sizeof *data);
    if (!data)
        return duet_fail(message, DUET_ENOMEM, "no memory for a problem of %zu bytes",
                         sizeof *data);
    data->tiled = tiled;
    data->problem = *problem;
    data->problem.settings = NULL;
    data->problem.setting_count = 0;
    data->problem.data = NULL;
    data->iterations = duet__setting_number(problem, self->parameters, "iterations", 0);
    duet__tiled_describe(tiled, problem, data->matrices);
    data->cuts = tiled->cuts ? tiled->cuts(problem, self->parameters) : NULL;
    if (tiled->cuts && !data->cuts)
        error = duet_fail(message, DUET_ENOMEM, "no memory for where the pieces begin");
    bool whole =
        tiled->cuts || !strcmp(duet__setting(problem, self->parameters, "layout"), "lapack");
    for (unsigned i = 0; !error && i < DUET__MATRICES_MAX && data->matrices[i].rows; i++) {
        data->matrices[i].whole = whole;
        error = duet__storage_allocate(&data->matrices[i], message);
    }
    if (error)
        duet__tiled_discard(data);
    else
        *out = data;
    return error;
}

struct filling {
    const struct duet__tiled_data *data;
    const struct duet_runtime *runtime;
    unsigned matrix;
};

static bool is_here(const void *self, uint32_t i, uint32_t j)
{
    const struct filling *filling = self;
    return duet__tiled_here(filling->data, filling->runtime, filling->matrix, i, j);
}

void duet__tiled_fill(void *data, const struct duet_runtime *runtime)
{
    const struct duet__tiled_data *made = data;
    for (unsigned i = 0; i < DUET__MATRICES_MAX && made->matrices[i].rows; i++) {
        const struct filling filling = {made, runtime, i};
        duet__storage_fill(&made->matrices[i], is_here, &filling);
    }
}

void duet__tiled_discard(void *data)
{
    struct duet__tiled_data *made = data;
    for (size_t i = 0; made && i < DUET__MATRICES_MAX; i++)
        duet__storage_free(&made->matrices[i]);
    if (made)
        free(made->cuts);
    free(made);
}

/* ------------------------------------------------------------------------------------------- */
/* Cutting elements into pieces of uneven length, for workloads that are hard to balance        */

enum { STREAM = 1000 /* of random numbers, which no matrix has */ };

int duet__uneven_check(const struct duet__problem *problem,
                       const struct duet__parameter *parameters, const char *name, uint64_t most,
                       struct duet_message *message)
{
    int error = duet__problem_check(problem, parameters, message);
    if (error)
        return error;
    uint64_t count = duet__tile_count(problem->n, problem->tile);
    if (problem->tile <= problem->n && count <= most)
        return 0;
    return duet_fail(message, DUET_EINVAL,
                     "n = %llu in %s of %llu in the mean makes %llu of them, 1 to %llu are "
                     "possible: use a tile of %llu to %llu",
                     (unsigned long long)problem->n, name, (unsigned long long)problem->tile,
                     (unsigned long long)(problem->tile > problem->n ? 0 : count),
                     (unsigned long long)most,
                     (unsigned long long)duet__tile_count(problem->n, most),
                     (unsigned long long)problem->n);
}

/* Length of a piece relative to the mean, from a number drawn from [-1/2, 1/2). */
static double length(char sizes, double drawn)
{
    if (sizes == 'f')
        return 1;
    if (sizes == 'u')
        return 1 + 1.75 * drawn;
    return drawn < -0.4 ? 5.5 : 0.5;
}

uint64_t *duet__uneven_cuts(const struct duet__problem *problem,
                            const struct duet__parameter *parameters)
{
    const struct duet__storage drawn = {.element_bytes = sizeof(double),
                                        .contents = DUET__RANDOM,
                                        .key = duet__data_key(problem->seed, STREAM)};
    const char sizes = *duet__setting(problem, parameters, "sizes");
    uint64_t count = duet__tile_count(problem->n, problem->tile);
    uint64_t *cuts = malloc((count + 1) * sizeof *cuts);
    double total = 0, before = 0;
    if (!cuts)
        return NULL;
    for (uint64_t i = 0; i < count; i++)
        total += length(sizes, duet__storage_initial(&drawn, i, 0));
    for (uint64_t i = 0; i < count; i++) {
        cuts[i] = i + (uint64_t)((double)(problem->n - count) * before / total);
        before += length(sizes, duet__storage_initial(&drawn, i, 0));
    }
    cuts[count] = problem->n;
    return cuts;
}
