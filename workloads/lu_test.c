/* SPDX-License-Identifier: Apache-2.0 */
/* The LU graph: counts, flops; its tasks factorise a matrix. */
#include "workloads/test_recorder.h"

#include "workloads/tiles.c" /* NOLINT(bugprone-suspicious-include) */

#include "workloads/lu.c" /* NOLINT(bugprone-suspicious-include) */

#include "workloads/test_compute.h"

/* ------------------------------------------------------------------------------------------- */
/* Naive kernels                                                                                */

static int run_getrf(const struct duet_call *call)
{
    const struct duet_buffer *a = &call->buffers[0];
    const struct duet__tile_args *args = call->args;
    size_t n = args->n;
    g_assert_true(call->buffer_count == 1 && a->rows == n && a->cols == n);
    for (size_t k = 0; k < n; k++) {
        for (size_t i = k + 1; i < n; i++) {
            *recorder_at(a, i, k) /= *recorder_at(a, k, k);
            for (size_t j = k + 1; j < n; j++)
                *recorder_at(a, i, j) -= *recorder_at(a, i, k) * *recorder_at(a, k, j);
        }
    }
    return 0;
}

static int run_trsm_l(const struct duet_call *call)
{
    const struct duet_buffer *l = &call->buffers[0], *b = &call->buffers[1];
    const struct duet__tile_args *args = call->args;
    g_assert_true(l->rows == args->m && b->rows == args->m && b->cols == args->n);
    for (size_t j = 0; j < args->n; j++) {
        for (size_t i = 0; i < args->m; i++) {
            for (size_t k = 0; k < i; k++)
                *recorder_at(b, i, j) -= *recorder_at(l, i, k) * *recorder_at(b, k, j);
        }
    }
    return 0;
}

static int run_trsm_r(const struct duet_call *call)
{
    const struct duet_buffer *u = &call->buffers[0], *b = &call->buffers[1];
    const struct duet__tile_args *args = call->args;
    g_assert_true(u->cols == args->n && b->rows == args->m && b->cols == args->n);
    for (size_t i = 0; i < args->m; i++) {
        for (size_t j = 0; j < args->n; j++) {
            for (size_t k = 0; k < j; k++)
                *recorder_at(b, i, j) -= *recorder_at(b, i, k) * *recorder_at(u, k, j);
            *recorder_at(b, i, j) /= *recorder_at(u, j, j);
        }
    }
    return 0;
}

static int run_gemm(const struct duet_call *call)
{
    const struct duet_buffer *a = &call->buffers[0], *b = &call->buffers[1], *c = &call->buffers[2];
    const struct duet__tile_args *args = call->args;
    g_assert_true(c->rows == args->m && c->cols == args->n);
    g_assert_true(a->rows == args->m && a->cols == args->k);
    g_assert_true(b->rows == args->k && b->cols == args->n);
    for (size_t j = 0; j < args->n; j++) {
        for (size_t i = 0; i < args->m; i++) {
            for (size_t k = 0; k < args->k; k++)
                *recorder_at(c, i, j) -= *recorder_at(a, i, k) * *recorder_at(b, k, j);
        }
    }
    return 0;
}

static const struct recorder_kernel naive[] = {
    {"dgetrf_nopiv", run_getrf},
    {"dtrsm_l", run_trsm_l},
    {"dtrsm_r", run_trsm_r},
    {"dgemm", run_gemm},
    {0},
};

/* ------------------------------------------------------------------------------------------- */
/* Tests                                                                                        */

/* Element of a diagonally dominant matrix that is not symmetric. */
static double element(size_t i, size_t j, size_t n)
{
    return i == j ? (double)n + 1 : (double)((3 * i + 5 * j) % 7) / 7 - 0.4;
}

static void check_factors(const double *lu, size_t n)
{
    for (size_t j = 0; j < n; j++) {
        for (size_t i = 0; i < n; i++) {
            double sum = 0;
            for (size_t k = 0; k <= MIN(i, j); k++)
                sum += (k == i ? 1 : lu[i + k * n]) * lu[k + j * n];
            g_assert_cmpfloat_with_epsilon(sum, element(i, j, n), 1e-12 * (double)n);
        }
    }
}

static void factorise(uint64_t n, uint64_t tile)
{
    void *state;
    struct duet__problem problem = {.n = n, .tile = tile, .precision = 'd'};
    struct duet_runtime *recorder = build_graph(&recorded_lu, &problem, &state);
    size_t size = n * n;
    double *a = g_new0(double, size), *lu = g_new0(double, size), *again = g_new0(double, size);
    for (size_t i = 0; i < size; i++)
        a[i] = element(i % n, i / n, n);
    move_tiles(state, a, NULL, false);
    recorder_execute(recorder, naive, NULL);
    move_tiles(state, NULL, lu, false);
    check_factors(lu, n);

    GRand *random = g_rand_new_with_seed(1);
    move_tiles(state, a, NULL, false);
    recorder_execute(recorder, naive, random);
    move_tiles(state, NULL, again, false);
    g_assert_cmpmem(again, size * sizeof *again, lu, size * sizeof *lu); /* equal to the last bit */
    g_rand_free(random);
    g_free(a);
    g_free(lu);
    g_free(again);
    free_graph(&recorded_lu, recorder, state);
}

static void test_factorise(void)
{
    factorise(1, 1);
    factorise(5, 5);
    factorise(12, 4);
    factorise(23, 5);
}

static void test_counts(void)
{
    static const uint64_t sizes[][2] = {{7, 7}, {20, 10}, {960 * 5, 960}, {960 * 5 + 17, 960}};
    for (size_t i = 0; i < G_N_ELEMENTS(sizes); i++) {
        void *state;
        uint64_t n = sizes[i][0], tile = sizes[i][1], t = (n + tile - 1) / tile;
        struct duet__problem problem = {.n = n, .tile = tile, .precision = 'd'};
        struct duet_runtime *recorder = build_graph(&recorded_lu, &problem, &state);
        g_assert_cmpuint(recorder_count(recorder, "dgetrf_nopiv"), ==, t);
        g_assert_cmpuint(recorder_count(recorder, "dtrsm_l"), ==, t * (t - 1) / 2);
        g_assert_cmpuint(recorder_count(recorder, "dtrsm_r"), ==, t * (t - 1) / 2);
        g_assert_cmpuint(recorder_count(recorder, "dgemm"), ==, t * (t - 1) * (2 * t - 1) / 6);
        g_assert_cmpfloat_with_epsilon((recorder_flops(recorder) - unit_flops(recorder)) /
                                           recorded_lu.flops(&problem),
                                       1, 1e-13);
        free_graph(&recorded_lu, recorder, state);
    }
}

static void test_kernels(void)
{
    static const struct duet__setting any = {"getrf", "any"};
    for (size_t settings = 0; settings < 2; settings++) {
        void *state;
        struct duet__problem problem = {.n = 20,
                                        .tile = 10,
                                        .precision = 's',
                                        .settings = &any,
                                        .setting_count = settings};
        struct duet_runtime *recorder = build_graph(&recorded_lu, &problem, &state);
        g_assert_cmpstr(recorder->codelets[0].name, ==, "sgetrf_nopiv");
        g_assert_cmpuint(recorder->codelets[0].implementation_count, ==, settings ? 3 : 1);
        g_assert_cmpuint(recorder->codelets[1].implementation_count, ==, 3);
        g_assert_cmpuint(recorder_bytes(recorder), ==, 1600);
        free_graph(&recorded_lu, recorder, state);
    }
}

/* Priorities with T = 2 tiles: panel 4 and 3, row 3, update 2; then the last panel, 2. */
static void test_priorities(void)
{
    static const int expected[] = {4, 3, 3, 2, 2};
    void *state;
    struct duet__problem problem = {.n = 20, .tile = 10, .precision = 'd'};
    struct duet_runtime *recorder = build_graph(&recorded_lu, &problem, &state);
    g_assert_cmpuint(recorder->tasks->len, ==, G_N_ELEMENTS(expected));
    for (size_t i = 0; i < G_N_ELEMENTS(expected); i++)
        g_assert_cmpint(recorder_task(recorder, i)->priority, ==, expected[i]);
    free_graph(&recorded_lu, recorder, state);
}

/* Without CPUs, diagonal tiles have to be allowed on GPUs, and the message says how. */
static void test_no_cpus(void)
{
    struct duet__setting setting = {"getrf", "cpu"};
    struct duet__problem problem = {.n = 20,
                                    .tile = 10,
                                    .precision = 's',
                                    .settings = &setting,
                                    .setting_count = 1};
    struct duet_worker gpu = {.node = 1, .window = 2};
    const struct duet_machine gpus = {.worker_count = 1, .workers = &gpu};
    struct duet_message message = {""};
    struct duet_runtime *recorder = recorder_new();
    void *state = &problem;
    recorder->machine = &gpus;
    g_assert_cmpint(recorded_lu.build(&recorded_lu, recorder, &problem, &state, &message), ==,
                    DUET_ENOWORKER);
    g_assert_null(state);
    g_assert_nonnull(strstr(message.text, "kernel sgetrf_nopiv is for CPUs only"));
    g_assert_nonnull(strstr(message.text, "--param getrf=any"));
    setting.value = "any";
    g_assert_cmpint(recorded_lu.build(&recorded_lu, recorder, &problem, &state, &message), ==, 0);
    free_graph(&recorded_lu, recorder, state);
}

static void test_failures(void)
{
    struct duet__problem problem = {.n = 20, .tile = 10, .precision = 'd'};
    check_failures(&recorded_lu, &problem, 4 + 4 + 5, NULL);
}

static void test_compute(void)
{
    static const uint64_t sizes[][2] = {{1, 1}, {7, 3}, {40, 40}, {64, 16}, {131, 48}};
    static const struct duet__setting lapack = {"layout", "lapack"};
    compute_all(&recorded_lu, sizes, G_N_ELEMENTS(sizes), &lapack, 1);
}

static void test_damage(void)
{
    static const struct change changes[] = {{0, 130, 0, 1e-3},
                                            {0, 0, 130, 1e-3},
                                            {0, 100, 100, -1e-3},
                                            {0, 60, 50, -1e-3},
                                            {0, 50, 60, NAN}};
    check_damage(&recorded_lu,
                 (struct duet__problem){.n = 131, .tile = 48, .precision = 'd', .seed = 1}, changes,
                 G_N_ELEMENTS(changes));
}

TEST_MAIN(test_factorise, test_counts, test_kernels, test_priorities, test_no_cpus, test_failures,
          test_compute, test_damage)
