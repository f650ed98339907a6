/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sorts many lists of uneven length, n elements in all, each by one task: the multiple-list-sort of
 * UnMP's paper, whose tasks are independent but very different. Odd-even transposition compares m
 * (m - 1) / 2 pairs of a list of m elements, so that twice the length is four times the time; it
 * suits devices, the better the longer a list is.
 *
 * The paper does not give lengths: here `sizes` says how they are drawn. The hint of complexity is
 * the length.
 */
#include <stdlib.h>

#include "workloads/kernels.h"
#include "workloads/tiles.h"

enum { LISTS_MAX = 1000000 };

static const struct duet__parameter parameters[] = {DUET__SIZES_PARAMETER, {0}};

static const char *const kernels[] = {"sort", NULL};

static int sort_check(const struct duet__problem *problem, struct duet_message *message)
{
    return duet__uneven_check(problem, parameters, "lists", LISTS_MAX, message);
}

/* Flops: pairs that are compared; 1 for the list of one element, as models need some work. */
static double flops_sort(const void *args)
{
    double length = ((const struct duet__tile_args *)args)->m;
    return length > 1 ? length * (length - 1) / 2 : 1;
}

static uint64_t sort_tasks(const struct duet__problem *problem)
{
    return duet__tile_count(problem->n, problem->tile);
}

static double sort_flops(const struct duet__problem *problem)
{
    uint64_t *begins = duet__uneven_cuts(problem, parameters), count = sort_tasks(problem);
    double sum = 0;
    for (uint64_t i = 0; begins && i < count; i++) {
        const struct duet__tile_args args = {.m = (uint32_t)(begins[i + 1] - begins[i])};
        sum += flops_sort(&args);
    }
    free(begins);
    return sum;
}

static int sort_submit(const struct duet__build *build)
{
    const struct duet__tiles *lists = &build->matrices[0];
    int error = 0;
    for (uint32_t i = 0; !error && i < lists->row_tiles; i++) {
        const struct duet_access access = {duet__tile(lists, i, 0), DUET_RW};
        const struct duet__tile_args args = {.m = duet__tile_rows(lists, i)};
        struct duet__build one = *build;
        one.complexity = args.m;
        error = duet__tile_task(&one, 0, args, 0, &access, 1);
    }
    return error;
}

static void sort_shapes(const struct duet__problem *problem, struct duet__storage *out)
{
    out[0] = (struct duet__storage){problem->n, 1, .contents = DUET__RANDOM};
}

static const struct duet__tiled tiled = {
    .shapes = sort_shapes,
    .owner = duet__owner_in_turn,
    .cuts = duet__uneven_cuts,
    .flops = {flops_sort},
    .submit = sort_submit,
};

static int compare(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

static int sort_verify(void *data, const struct duet__judging *how, struct duet__verdict *verdict,
                       struct duet_message *message)
{
    const struct duet__tiled_data *made = data;
    const struct duet__storage *lists = &made->matrices[0];
    *verdict = (struct duet__verdict){.formula = "elements that differ from those of sorted lists",
                                      .threshold = 1};
    double *expected = malloc(lists->rows * sizeof *expected);
    if (!expected)
        return duet_fail(message, DUET_ENOMEM, "no memory to sort %llu elements again",
                         (unsigned long long)lists->rows);
    duet__storage_initial_column(lists, 0, 0, lists->rows, expected);
    for (uint64_t i = 0; made->cuts[i] < lists->rows; i++)
        qsort(expected + made->cuts[i], made->cuts[i + 1] - made->cuts[i], sizeof *expected,
              compare);
    for (uint64_t i = 0; i < lists->rows; i++)
        verdict->residual += expected[i] != duet__storage_value(lists, i, 0);
    free(expected);
    return 0;
}

const struct duet__workload duet__workload_sort = {
    .name = "sort",
    .description = "sorts lists of uneven length, tile elements in the mean and n in all",
    .source = "Podobas, Brorsson, Vlassov, Exploring heterogeneous scheduling using the "
              "task-centric programming model, HeteroPar 2012 (multiple-list-sort); Habermann, "
              "Parallel neighbor-sort, 1972",
    .parameters = parameters,
    .kernels = kernels,
    .default_n = 1 << 21,
    .default_tile = 1 << 13,
    .real_n = 1 << 18,
    .real_tile = 1 << 10,
    .check = sort_check,
    .flops = sort_flops,
    .tasks = sort_tasks,
    DUET__TILED_SLOTS(tiled, duet__tiled_fill),
    .verify = sort_verify,
};
