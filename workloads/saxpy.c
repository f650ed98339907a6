/* SPDX-License-Identifier: Apache-2.0 */
/*
 * y := alpha x + y on vectors of n elements, in blocks of `tile` elements, over and over: nearly no
 * computation for the data, so that the data's transfers take the time of a run.
 *
 * The updates of a block follow each other; blocks are independent of each other.
 */
#include <float.h>
#include <math.h>

#include "workloads/kernels.h"
#include "workloads/tiles.h"

enum {
    BLOCK_MAX = 1 << 28, /* most elements of a block */
    BLOCKS_MAX = 10000000,
    TASKS_MAX = 100000000,
    CHUNK = 512, /* elements judged at a time */
};

/* Not a power of two, whose products would be exact; all its multiples up to the number of updates
 * are exact. */
static const double alpha = 0.75;

static const struct duet__parameter parameters[] = {
    {"iterations", "1..1000000", "1", "how many times y is updated"},
    {0},
};

static const char *const kernels[] = {"axpy", NULL};

/* Indices of the vectors of a build. */
enum { X, Y };

static uint64_t iterations(const struct duet__problem *problem)
{
    return duet__setting_number(problem, parameters, "iterations", 1);
}

static int saxpy_check(const struct duet__problem *problem, struct duet_message *message)
{
    int error = duet__settings_check(problem, parameters, message);
    if (error)
        return error;
    if (!problem->n)
        return duet_fail(message, DUET_EINVAL, "size n is 0: give 1 or more");
    if (!problem->tile || problem->tile > BLOCK_MAX || problem->tile > problem->n)
        return duet_fail(message, DUET_EINVAL,
                         "blocks of %llu elements are not possible: give a tile of 1 to %llu",
                         (unsigned long long)problem->tile,
                         (unsigned long long)(problem->n < BLOCK_MAX ? problem->n : BLOCK_MAX));
    uint64_t blocks = duet__tile_count(problem->n, problem->tile);
    if (blocks > BLOCKS_MAX || blocks * iterations(problem) > TASKS_MAX)
        return duet_fail(
            message, DUET_EINVAL,
            "%llu blocks, each updated %llu times, are too many: at most %d blocks and "
            "%d tasks are possible, use a larger tile",
            (unsigned long long)blocks, (unsigned long long)iterations(problem), BLOCKS_MAX,
            TASKS_MAX);
    return 0;
}

static double saxpy_flops(const struct duet__problem *problem)
{
    return 2 * (double)problem->n * (double)iterations(problem);
}

static uint64_t saxpy_tasks(const struct duet__problem *problem)
{
    return duet__tile_count(problem->n, problem->tile) * iterations(problem);
}

static double flops_axpy(const void *args)
{
    return 2 * (double)((const struct duet__axpy_args *)args)->count;
}

static int saxpy_submit(const struct duet__build *build)
{
    const struct duet__tiles *x = &build->matrices[X], *y = &build->matrices[Y];
    uint64_t count = iterations(build->problem);
    int error = 0;
    for (uint64_t k = 0; !error && k < count; k++) {
        for (uint32_t i = 0; !error && i < y->row_tiles; i++) {
            const struct duet_access accesses[] = {
                {duet__tile(x, i, 0), DUET_R},
                {duet__tile(y, i, 0), DUET_RW},
            };
            const struct duet__axpy_args args = {duet__tile_rows(y, i), alpha};
            error = duet__build_task(build, 0, &args, sizeof args, 0, accesses, 2);
        }
    }
    return error;
}

static void saxpy_shapes(const struct duet__problem *problem, struct duet__storage *out)
{
    out[X] = (struct duet__storage){problem->n, 1, .contents = DUET__RANDOM};
    out[Y] = (struct duet__storage){problem->n, 1, .contents = DUET__RANDOM};
}

static const struct duet__tiled tiled = {
    .shapes = saxpy_shapes,
    .owner = duet__owner_in_turn,
    .flops = {flops_axpy},
    .submit = saxpy_submit,
};

/*
 * Error of an element, scaled. K updates, each with a rounded product and a rounded sum or with one
 * rounding (the kernel decides), err by at most 2 K eps (|y0| + K |alpha x|) to first order
 * (Higham, Accuracy and Stability of Numerical Algorithms, section 3.1); one eps is for the
 * reference.
 */
static double element_error(double x, double y0, double y, double count, double roundoff)
{
    double difference = fabs(y - fma(count * alpha, x, y0));
    double bound = (2 * count + 1) * roundoff * (fabs(y0) + count * fabs(alpha * x));
    return difference == 0 ? 0 : difference / bound;
}

/* Returns the larger of `worst` and the error of `count` elements from `first` on; NaN if one
 * is. */
static double block_error(const struct duet__tiled_data *data, uint64_t first, size_t count,
                          double worst)
{
    const struct duet__storage *x = &data->matrices[X], *y = &data->matrices[Y];
    double roundoff = data->problem.precision == 's' ? (double)FLT_EPSILON / 2 : DBL_EPSILON / 2;
    double initial_x[CHUNK], initial_y[CHUNK];
    duet__storage_initial_column(x, first, 0, count, initial_x);
    duet__storage_initial_column(y, first, 0, count, initial_y);
    for (size_t i = 0; i < count; i++) {
        double error =
            element_error(initial_x[i], initial_y[i], duet__storage_value(y, first + i, 0),
                          (double)data->iterations, roundoff);
        if (isnan(error))
            return error;
        worst = fmax(worst, error);
    }
    return worst;
}

static int saxpy_verify(void *data, const struct duet__judging *how, struct duet__verdict *verdict,
                        struct duet_message *message)
{
    const struct duet__tiled_data *made = data;
    *verdict = (struct duet__verdict){
        .formula = "max |y - (y0 + K alpha x)| / ((2 K + 1) eps (|y0| + K |alpha x|))",
        .threshold = 1,
    };
    uint64_t n = made->problem.n;
    for (uint64_t first = 0; first < n && !isnan(verdict->residual) && !duet__judging_stopped(how);
         first += CHUNK)
        verdict->residual =
            block_error(made, first, n - first < CHUNK ? n - first : CHUNK, verdict->residual);
    return 0;
}

const struct duet__workload duet__workload_saxpy = {
    .name = "saxpy",
    .description = "y := alpha x + y on vectors of n elements in blocks of tile elements",
    .source = "Lawson, Hanson, Kincaid, Krogh, Basic linear algebra subprograms for Fortran usage, "
              "ACM Transactions on Mathematical Software 5, 1979",
    .parameters = parameters,
    .kernels = kernels,
    .default_n = 1 << 26,
    .default_tile = 1 << 20,
    .real_n = 1 << 24,
    .real_tile = 1 << 18,
    .check = saxpy_check,
    .flops = saxpy_flops,
    .tasks = saxpy_tasks,
    DUET__TILED_SLOTS(tiled, duet__tiled_fill),
    .verify = saxpy_verify,
};
