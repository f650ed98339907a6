/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bodies that attract each other, in steps of time: n bodies in subsets of uneven size, as UnMP's
 * paper has them, over 30 steps. A step has a task for each subset, which reads where all bodies
 * are and moves those of its own: the pull of every body on each (softened, as Aarseth 1963 does),
 * then velocity, then place (symplectic Euler). There are two of the places, for odd and even
 * steps.
 *
 * The work of a task is the product of its bodies and all bodies, 20 flops each as Nyland, Harris
 * and Prins count them (GPU Gems 3, chapter 31). How large the subsets are is drawn, as `sizes`
 * says; the hint of complexity is the number of bodies in the subset.
 */

#include <float.h>
#include <math.h>
#include <stdlib.h>

#include "workloads/kernels.h"
#include "workloads/tiles.h"

enum { SUBSETS_MAX = 128 };

static const struct duet__parameter parameters[] = {
    DUET__SIZES_PARAMETER,
    {"iterations", "1..100000", "30", "steps"},
    DUET__SUBMIT_PARAMETER,
    {0},
};

static const char *const kernels[] = {"nbody", NULL};

/* Matrices: x, y, z and mass of bodies in steps of either parity; velocities. */
enum { PLACES, SPEEDS = 2 };

static uint64_t iterations(const struct duet__problem *problem)
{
    return duet__setting_number(problem, parameters, "iterations", 1);
}

static uint64_t nbody_tasks(const struct duet__problem *problem)
{
    return duet__tile_count(problem->n, problem->tile) * iterations(problem);
}

static int nbody_check(const struct duet__problem *problem, struct duet_message *message)
{
    return duet__uneven_check(problem, parameters, "subsets", SUBSETS_MAX, message);
}

static double nbody_flops(const struct duet__problem *problem)
{
    return 20.0 * (double)problem->n * (double)problem->n * (double)iterations(problem);
}

static double flops_nbody(const void *args)
{
    const struct duet__tile_args *size = args;
    return 20.0 * size->m * size->n;
}

/* Submits the task of a subset in a step that reads the places `old` and writes `new`. */
static int step_subset(const struct duet__build *build, const struct duet__tiles *old,
                       const struct duet__tiles *new, uint32_t own)
{
    struct duet_access accesses[SUBSETS_MAX + 2];
    struct duet__build one = *build;
    const struct duet__tile_args args = {
        .m = duet__tile_rows(old, own),
        .n = (uint32_t)build->problem->n,
        .k = own,
    };
    uint32_t count = old->row_tiles;
    for (uint32_t i = 0; i < count; i++)
        accesses[i] = (struct duet_access){duet__tile(old, i, 0), DUET_R};
    accesses[count] = (struct duet_access){duet__tile(new, own, 0), DUET_W};
    accesses[count + 1] =
        (struct duet_access){duet__tile(&build->matrices[SPEEDS], own, 0), DUET_RW};
    one.complexity = args.m;
    return duet__tile_task(&one, 0, args, 0, accesses, count + 2);
}

static int step_all(const struct duet__build *build, unsigned parity)
{
    const struct duet__tiles *old = &build->matrices[PLACES + parity];
    const struct duet__tiles *new = &build->matrices[PLACES + 1 - parity];
    int error = 0;
    for (uint32_t i = 0; !error && i < old->row_tiles; i++)
        error = step_subset(build, old, new, i);
    return error;
}

static int nbody_submit(const struct duet__build *build)
{
    return duet__tiled_iterate(build, parameters, step_all);
}

static void nbody_shapes(const struct duet__problem *problem, struct duet__storage *out)
{
    out[PLACES] = out[PLACES + 1] =
        (struct duet__storage){problem->n, 4, .tile_cols = 4, .contents = DUET__RANDOM};
    out[SPEEDS] = (struct duet__storage){problem->n, 3, .tile_cols = 3, .contents = DUET__RANDOM};
}

static const struct duet__tiled tiled = {
    .shapes = nbody_shapes,
    .owner = duet__owner_in_turn,
    .cuts = duet__uneven_cuts,
    .flops = {flops_nbody},
    .submit = nbody_submit,
};

/* ------------------------------------------------------------------------------------------- */
/* Judging the result */

/* All bodies in double precision, as one array for each property. */
struct bodies {
    uint64_t count;
    double *old, *new, *speeds;
};

/* Moves bodies `first` to `end` by one step, one by one, by definition. */
static void step_bodies(void *pointer, uint64_t first, uint64_t end)
{
    const struct bodies *b = pointer;
    const uint64_t n = b->count;
    for (uint64_t i = first; i < end; i++) {
        double pull[3] = {0};
        for (uint64_t j = 0; j < n; j++) {
            double away[3], square = DUET__SOFTENING;
            for (unsigned axis = 0; axis < 3; axis++) {
                away[axis] = b->old[j + axis * n] - b->old[i + axis * n];
                square += away[axis] * away[axis];
            }
            for (unsigned axis = 0; axis < 3; axis++)
                pull[axis] += (1 + b->old[j + 3 * n]) * away[axis] / (square * sqrt(square));
        }
        for (unsigned axis = 0; axis < 3; axis++) {
            b->speeds[i + axis * n] += DUET__TIME_STEP / (double)n * pull[axis];
            b->new[i + axis * n] = b->old[i + axis * n] + DUET__TIME_STEP * b->speeds[i + axis * n];
        }
        b->new[i + 3 * n] = b->old[i + 3 * n];
    }
}

/* Returns the largest distance, along an axis, of a body from its right place; NaN if one is. */
static double largest_distance(const struct duet__tiled_data *data, const double *right)
{
    const struct duet__storage *found = &data->matrices[PLACES + data->iterations % 2];
    double worst = 0;
    for (uint64_t i = 0; i < found->rows * found->cols && !isnan(worst); i++) {
        double error =
            fabs(duet__storage_value(found, i % found->rows, i / found->rows) - right[i]);
        worst = error > worst || isnan(error) ? error : worst;
    }
    return worst;
}

static int nbody_verify(void *pointer, const struct duet__judging *how,
                        struct duet__verdict *verdict, struct duet_message *message)
{
    const struct duet__tiled_data *data = pointer;
    const uint64_t n = data->problem.n;
    double *memory = malloc(11 * n * sizeof *memory);
    struct bodies bodies = {n, memory, memory + 4 * n, memory + 8 * n};
    *verdict = (struct duet__verdict){.formula = "max |x - x'| / ((K + 1) eps)", .threshold = 30};
    if (!memory)
        return duet_fail(message, DUET_ENOMEM, "no memory to move %llu bodies again",
                         (unsigned long long)n);
    for (uint64_t col = 0; col < 4; col++)
        duet__storage_initial_column(&data->matrices[PLACES], 0, col, n, bodies.old + col * n);
    for (uint64_t col = 0; col < 3; col++)
        duet__storage_initial_column(&data->matrices[SPEEDS], 0, col, n, bodies.speeds + col * n);
    for (uint64_t step = 0; step < data->iterations && !duet__judging_stopped(how); step++) {
        double *old = bodies.old;
        duet__share(n, n * n, step_bodies, &bodies);
        bodies.old = bodies.new;
        bodies.new = old;
    }
    verdict->residual =
        largest_distance(data, bodies.old) / (double)(data->iterations + 1) /
        (data->problem.precision == 's' ? (double)FLT_EPSILON / 2 : DBL_EPSILON / 2);
    free(memory);
    return 0;
}

const struct duet__workload duet__workload_nbody = {
    .name = "nbody",
    .description = "steps of n bodies that attract each other, in uneven subsets of tile in the "
                   "mean",
    .source = "Podobas, Brorsson, Vlassov, Exploring heterogeneous scheduling using the "
              "task-centric programming model, HeteroPar 2012; Nyland, Harris, Prins, Fast N-body "
              "simulation with CUDA, GPU Gems 3, 2007",
    .parameters = parameters,
    .kernels = kernels,
    .default_n = 1 << 16,
    .default_tile = 1 << 10,
    .real_n = 1 << 11,
    .real_tile = 1 << 7,
    .check = nbody_check,
    .flops = nbody_flops,
    .tasks = nbody_tasks,
    DUET__TILED_SLOTS(tiled, duet__tiled_fill),
    .verify = nbody_verify,
};
