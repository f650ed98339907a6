/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Computing with a workload's own kernels on its own data, under the recorder, for the tests of
 * workloads: a right result passes its check, a damaged one does not. Included after
 * test_recorder.h and the files under test.
 */
#ifndef DUET_TEST_COMPUTE_H
#define DUET_TEST_COMPUTE_H

#include "workloads/kernels.h"

/* Can the workload's kernels be run? Otherwise the test is skipped. */
static inline bool can_compute(const struct duet__workload *workload)
{
    for (size_t i = 0; workload->kernels[i]; i++) {
        if (!duet__kernel(workload->kernels[i])) {
            g_test_skip("built without BLAS");
            return false;
        }
    }
    return true;
}

/* Fills the data, builds the graph, executes it (in a random order if `random`), and retrieves. */
static inline void compute(const struct duet__workload *workload, struct duet__problem problem,
                           void *data, GRand *random)
{
    struct duet_message message = {""};
    struct duet_runtime *recorder = recorder_new();
    void *state;
    problem.data = data;
    workload->fill(data, NULL);
    g_assert_cmpint(workload->build(workload, recorder, &problem, &state, &message), ==, 0);
    g_assert_cmpuint(recorder_count(recorder, NULL), ==, workload->tasks(&problem));
    g_assert_cmpuint(recorder_bytes(recorder), ==, workload->bytes(&problem));
    recorder_execute(recorder, NULL, random);
    g_assert_cmpint(workload->retrieve(recorder, state), ==, 0);
    workload->fini(state);
    recorder_free(recorder);
}

static const struct duet__judging exactly = {.exact = true};

static inline double judged(const struct duet__workload *workload, void *data, bool *passes)
{
    struct duet__verdict verdict = {0};
    struct duet_message message = {""};
    g_assert_cmpint(workload->verify(data, &exactly, &verdict, &message), ==, 0);
    g_assert_nonnull(verdict.formula);
    *passes = verdict.residual < verdict.threshold;
    return verdict.residual;
}

/* Adds `change` to element (i,j) of the number-th matrix; NaN: makes it NaN. */
static inline void damage(void *data, unsigned number, uint64_t i, uint64_t j, double change)
{
    const struct duet__tiled_data *made = data;
    const struct duet__storage *matrix = &made->matrices[number];
    double value = duet__storage_value(matrix, i, j) + change;
    duet__store_values(duet__storage_at(matrix, i, j), &value, 1, matrix->element_bytes);
}

/* Computes twice, the second time in random order, and checks that the result passes. */
static inline void *compute_right(const struct duet__workload *workload,
                                  const struct duet__problem *problem)
{
    void *data;
    bool passes;
    GRand *random = g_rand_new_with_seed(7);
    struct duet_message message = {""};
    g_assert_cmpint(workload->check(problem, &message), ==, 0);
    g_assert_cmpint(workload->generate(workload, problem, &data, &message), ==, 0);
    for (int round = 0; round < 2; round++) {
        compute(workload, *problem, data, round ? random : NULL);
        double residual = judged(workload, data, &passes);
        g_test_message("n %u, tile %u, %c: residual %g", (unsigned)problem->n,
                       (unsigned)problem->tile, problem->precision, residual);
        g_assert_true(passes);
        g_assert_cmpfloat(residual, >=, 0);
    }
    g_rand_free(random);
    return data;
}

/* Does the check find that element (i,j) of a right result was changed? */
static inline void check_finds(const struct duet__workload *workload,
                               const struct duet__problem *problem, void *data, unsigned number,
                               uint64_t i, uint64_t j, double change)
{
    bool passes;
    compute(workload, *problem, data, NULL);
    judged(workload, data, &passes);
    g_assert_true(passes);
    damage(data, number, i, j, change);
    judged(workload, data, &passes);
    g_assert_false(passes);
}

#endif
