/* SPDX-License-Identifier: Apache-2.0 */
/* The matrix product's graph: counts, flops, settings; its tasks compute the product. */
#include "workloads/test_recorder.h"

#include "workloads/tiles.c" /* NOLINT(bugprone-suspicious-include) */

#include "workloads/gemm.c" /* NOLINT(bugprone-suspicious-include) */

#include "workloads/test_compute.h"

static int run_gemm(const struct duet_call *call)
{
    const struct duet_buffer *a = &call->buffers[0], *b = &call->buffers[1], *c = &call->buffers[2];
    const struct duet__tile_args *args = call->args;
    g_assert_cmpuint(call->buffer_count, ==, 3);
    g_assert_true(c->rows == args->m && c->cols == args->n);
    g_assert_true(a->rows == args->m && a->cols == args->k);
    g_assert_true(b->rows == args->k && b->cols == args->n);
    for (size_t j = 0; j < args->n; j++) {
        for (size_t i = 0; i < args->m; i++) {
            for (size_t k = 0; k < args->k; k++)
                *recorder_at(c, i, j) += *recorder_at(a, i, k) * *recorder_at(b, k, j);
        }
    }
    return 0;
}

static const struct recorder_kernel naive[] = {{"dgemm", run_gemm}, {0}};

static const struct duet__setting sizes[] = {{"m", "13"}, {"k", "9"}};

/* Small whole numbers: sums are exact. */
static double *numbers(size_t count, unsigned seed)
{
    double *a = g_new0(double, count);
    for (size_t i = 0; i < count; i++)
        a[i] = (double)((i * 7 + seed) % 11) - 5;
    return a;
}

static void product_is_right(struct duet_runtime *recorder, const struct duet__tiles *matrices,
                             GRand *random)
{
    const struct duet__tiles *tiles = &matrices[C];
    size_t m = tiles->rows, n = tiles->cols, k = matrices[A].cols;
    double *a = numbers(m * k, 1), *b = numbers(k * n, 2), *c = numbers(m * n, 3);
    double *result = numbers(m * n, 0);
    move_tiles(&matrices[A], a, NULL, false);
    move_tiles(&matrices[B], b, NULL, false);
    move_tiles(&matrices[C], c, NULL, false);
    recorder_execute(recorder, naive, random);
    move_tiles(tiles, NULL, result, false);
    for (size_t j = 0; j < n; j++) {
        for (size_t i = 0; i < m; i++) {
            double sum = c[i + j * m];
            for (size_t l = 0; l < k; l++)
                sum += a[i + l * m] * b[l + j * k];
            g_assert_cmpfloat(result[i + j * m], ==, sum);
        }
    }
    g_free(a);
    g_free(b);
    g_free(c);
    g_free(result);
}

static void test_product(void)
{
    for (size_t settings = 0; settings <= 2; settings++) {
        struct duet__problem problem = {.n = 10,
                                        .tile = 4,
                                        .precision = 'd',
                                        .settings = sizes,
                                        .setting_count = settings};
        void *state;
        struct duet_runtime *recorder = build_graph(&recorded_gemm, &problem, &state);
        g_assert_cmpfloat(recorder_flops(recorder), ==, recorded_gemm.flops(&problem));
        g_assert_cmpuint(recorder->codelets[0].implementation_count, ==, 3);
        GRand *random = g_rand_new_with_seed(1);
        product_is_right(recorder, state, NULL);
        product_is_right(recorder, state, random);
        g_rand_free(random);
        free_graph(&recorded_gemm, recorder, state);
    }
}

static void test_figures(void)
{
    struct duet__problem problem = {.n = 10,
                                    .tile = 4,
                                    .precision = 's',
                                    .settings = sizes,
                                    .setting_count = 2};
    g_assert_cmpuint(recorded_gemm.tasks(&problem), ==, 4 * 3 * 3);
    g_assert_cmpfloat(recorded_gemm.flops(&problem), ==, 2.0 * 13 * 10 * 9);
    g_assert_cmpuint(recorded_gemm.bytes(&problem), ==, 4 * (13 * 9 + 9 * 10 + 13 * 10));
}

static void test_failures(void)
{
    struct duet__problem problem = {.n = 10, .tile = 4, .precision = 'd'};
    check_failures(&recorded_gemm, &problem, 1 + 27 + 27, NULL);
}

static int check_setting_of(const char *name, const char *value, struct duet_message *message)
{
    struct duet__setting setting = {name, value};
    struct duet__problem problem = {.n = 10,
                                    .tile = 4,
                                    .precision = 'd',
                                    .settings = &setting,
                                    .setting_count = 1};
    return recorded_gemm.check(&problem, message);
}

static void test_settings(void)
{
    static const char *const wrong[] = {"",     "0",   "-1",
                                        "1.5",  " 7",  "7x",
                                        "0x10", "1e3", "99999999999999999999999"};
    struct duet_message message = {""};
    for (size_t i = 0; i < G_N_ELEMENTS(wrong); i++)
        g_assert_cmpint(check_setting_of("m", wrong[i], &message), ==, DUET_EINVAL);
    g_assert_cmpstr(message.text, ==,
                    "parameter m = '99999999999999999999999' is not possible: give 1..536870912 "
                    "(default n)");
    g_assert_cmpint(check_setting_of("m", "100000", &message), ==, DUET_EINVAL);
    g_assert_cmpstr(message.text, ==,
                    "m = 100000 in tiles of 4 makes 25000 tiles, at most 8192 are possible: use "
                    "tiles of 13 or more");
    g_assert_cmpint(check_setting_of("m", "n", &message), ==, 0);
    g_assert_cmpint(check_setting_of("k", "1", &message), ==, 0);
}

static struct duet__problem computed(const struct duet__setting *settings, size_t count,
                                     char precision)
{
    return (struct duet__problem){.n = 70,
                                  .tile = 32,
                                  .precision = precision,
                                  .seed = 3,
                                  .settings = settings,
                                  .setting_count = count};
}

static void test_compute(void)
{
    static const struct duet__setting settings[] = {{"m", "13"},
                                                    {"k", "200"},
                                                    {"layout", "lapack"}};
    if (!can_compute(&recorded_gemm))
        return;
    for (size_t i = 0; i < 8; i++) {
        struct duet__problem problem = computed(settings, i % 4, i < 4 ? 'd' : 's');
        recorded_gemm.discard(compute_right(&recorded_gemm, &problem));
    }
}

static void test_damage(void)
{
    static const struct change changes[] = {{C, 31, 40, 1e-3},
                                            {C, 0, 0, 1e-3},
                                            {C, 69, 69, -1e-3},
                                            {C, 31, 40, 1e-10},
                                            {C, 5, 50, NAN}};
    check_damage(&recorded_gemm, computed(NULL, 0, 'd'), changes, G_N_ELEMENTS(changes));
    check_damage(&recorded_gemm, computed(NULL, 0, 's'), changes, 1);
}

TEST_MAIN(test_product, test_figures, test_failures, test_settings, test_compute, test_damage)
