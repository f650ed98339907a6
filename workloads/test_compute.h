/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For the tests of workloads: graphs in a recorder, and computing with a workload's own kernels on
 * its own data, where a right result passes its check and a damaged one does not. Included after
 * test_recorder.h and the files under test.
 */
#ifndef DUET_TEST_COMPUTE_H
#define DUET_TEST_COMPUTE_H

#include "workloads/kernels.h"

static inline struct duet__problem set_as(uint64_t n, uint64_t tile, char precision,
                                          const struct duet__setting *settings, size_t count)
{
    return (struct duet__problem){.n = n,
                                  .tile = tile,
                                  .precision = precision,
                                  .seed = 5,
                                  .settings = settings,
                                  .setting_count = count};
}

static inline struct duet__problem sized(uint64_t n, uint64_t tile, char precision)
{
    return set_as(n, tile, precision, NULL, 0);
}

/* Builds the workload's graph in a new recorder; tasks and bytes are as many as it states. */
static inline struct duet_runtime *build_graph(const struct duet__workload *workload,
                                               const struct duet__problem *problem)
{
    struct duet_runtime *recorder = recorder_new();
    WORKS(workload->build(workload, recorder, problem, &recorder->state, hear()));
    recorder->fini = workload->fini;
    g_assert_cmpuint(recorder_count(recorder, NULL), ==, workload->tasks(problem));
    g_assert_cmpuint(recorder_bytes(recorder), ==, duet__tiled_bytes(workload, problem));
    return recorder;
}

/* Fails each of so many calls in turn: the error is returned, nothing leaks and there is no
 * state. */
static inline void check_failures(const struct duet__workload *workload,
                                  const struct duet__problem *problem, uint64_t calls,
                                  const struct duet_machine *machine)
{
    for (unsigned good = 1; good < calls; good++) {
        struct duet_runtime *recorder = recorder_new();
        void *state = &good;
        recorder->machine = machine;
        recorder->fail_after = good;
        g_assert_cmpint(workload->build(workload, recorder, problem, &state, NULL), ==,
                        DUET_ENOMEM);
        g_assert_null(state);
        recorder_free(recorder);
    }
    workload->fini(NULL);
}

/* Flops that trsm_l counts for its unit diagonal: one too many for each element it works on. */
static inline double unit_flops(const struct duet_runtime *recorder)
{
    double extra = 0;
    for (size_t k = 0; k < recorder->tasks->len; k++) {
        const struct recorded *task = recorder_task(recorder, k);
        const struct duet__tile_args *args = (const void *)task->args;
        if (!strcmp(task->codelet->name, "dtrsm_l"))
            extra += (double)args->m * args->n;
    }
    return extra;
}

/*
 * Builds graphs of T x T tiles: the first kernel has T tasks, the second `times` as many as there
 * are pairs of different tiles, the third as many as pairs, the last one for each later step and
 * pair. There are so many handles (NULL: any), and as many flops as stated, to within epsilon (0:
 * to the third order).
 */
static inline void check_counts(const struct duet__workload *workload, const char *const *names,
                                uint64_t times, uint64_t (*handles)(uint64_t t), double epsilon)
{
    static const uint64_t sizes[][2] = {{7, 7}, {20, 10}, {960 * 5, 960}, {960 * 5 + 17, 960}};
    for (size_t i = 0; i < G_N_ELEMENTS(sizes); i++) {
        uint64_t n = sizes[i][0], t = (n + sizes[i][1] - 1) / sizes[i][1], pairs = t * (t - 1) / 2;
        const uint64_t counts[] = {t, times * pairs, pairs, t * (t - 1) * (2 * t - 1) / 6};
        struct duet__problem problem = sized(n, sizes[i][1], 'd');
        OWNED(recorder_end) struct duet_runtime *recorder = build_graph(workload, &problem);
        for (unsigned k = 0; k < G_N_ELEMENTS(counts); k++)
            g_assert_cmpuint(recorder_count(recorder, names[k]), ==, counts[k]);
        if (handles)
            g_assert_cmpuint(recorder->handles->len, ==, handles(t));
        double flops = recorder_flops(recorder) - unit_flops(recorder);
        g_assert_cmpfloat_with_epsilon(flops / workload->flops(&problem), 1,
                                       epsilon > 0 ? epsilon : 2 / (double)n);
    }
}

/* True if the workload's kernels can be run; otherwise the test is skipped. */
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
    struct duet_runtime *recorder = recorder_new();
    void *state;
    problem.data = data;
    workload->fill(data, NULL);
    WORKS(workload->build(workload, recorder, &problem, &state, hear()));
    g_assert_cmpuint(recorder_count(recorder, NULL), ==, workload->tasks(&problem));
    g_assert_cmpuint(recorder_bytes(recorder), ==, duet__tiled_bytes(workload, &problem));
    recorder_execute(recorder, random);
    g_assert_cmpint(workload->retrieve(recorder, state), ==, 0);
    workload->fini(state);
    recorder_free(recorder);
}

static const struct duet__judging exactly = {.exact = true};

static inline double judged(const struct duet__workload *workload, void *data, bool *passes)
{
    struct duet__verdict verdict = {0};
    int error = workload->verify(data, &exactly, &verdict, hear());
    g_assert_cmpint(error, ==, DUET_OK);
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
    WORKS(workload->check(problem, hear()));
    WORKS(workload->generate(workload, problem, &data, hear()));
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

/* Computes all sizes in all precisions, with none, one ... `most` of the settings. */
static inline void compute_all(const struct duet__workload *workload, const uint64_t (*sizes)[2],
                               size_t count, const struct duet__setting *settings, size_t most)
{
    for (size_t i = 0; i < count * 2 * (most + 1) && can_compute(workload); i++) {
        const uint64_t *size = sizes[i / (2 * (most + 1))];
        const struct duet__problem problem = {.n = size[0],
                                              .tile = size[1],
                                              .precision = i / (most + 1) % 2 ? 's' : 'd',
                                              .seed = i,
                                              .settings = settings,
                                              .setting_count = i % (most + 1)};
        workload->discard(compute_right(workload, &problem));
    }
}

/* Checks that a changed element (i,j) of a right result is found. */
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

struct change {
    unsigned number;
    uint64_t i, j;
    double change;
};

static inline void check_damage(const struct duet__workload *workload, struct duet__problem problem,
                                const struct change *changes, size_t count)
{
    if (!can_compute(workload))
        return;
    void *data = compute_right(workload, &problem);
    for (size_t c = 0; c < count; c++)
        check_finds(workload, &problem, data, changes[c].number, changes[c].i, changes[c].j,
                    changes[c].change);
    workload->discard(data);
}

/* Eliminates with partial pivoting by hand: interchanges are unique if no two candidates are
 * equal. */
static inline void eliminate(double *a, int *pivots, size_t n)
{
    for (size_t k = 0; k < n; k++) {
        size_t pivot = k;
        for (size_t i = k; i < n; i++)
            pivot = fabs(a[i + k * n]) > fabs(a[pivot + k * n]) ? i : pivot;
        pivots[k] = (int)pivot;
        for (size_t j = 0; j < n; j++) {
            double swapped = a[k + j * n];
            a[k + j * n] = a[pivot + j * n];
            a[pivot + j * n] = swapped;
        }
        for (size_t i = k + 1; i < n; i++)
            a[i + k * n] /= a[k + k * n];
        for (size_t j = k + 1; j < n; j++) {
            for (size_t i = k + 1; i < n; i++)
                a[i + j * n] -= a[i + k * n] * a[k + j * n];
        }
    }
}

#endif
