/* SPDX-License-Identifier: Apache-2.0 */
/* The matrix product's graph: counts, flops, settings; its tasks compute the product. */
#include "workloads/test_recorder.h"

#include "workloads/tiles.c" /* NOLINT(bugprone-suspicious-include) */

#include "workloads/gemm.c" /* NOLINT(bugprone-suspicious-include) */

#include "workloads/test_compute.h"

static const struct duet__setting sizes[] = {{"m", "13"}, {"k", "9"}};

static void test_graph(void)
{
    for (size_t settings = 0; settings <= 2; settings++) {
        struct duet__problem problem = set_as(10, 4, 'd', sizes, settings);
        OWNED(recorder_end) struct duet_runtime *recorder = build_graph(&recorded_gemm, &problem);
        g_assert_cmpfloat(recorder_flops(recorder), ==, recorded_gemm.flops(&problem));
        g_assert_cmpuint(recorder->codelets[0].implementation_count, ==, 3);
    }
}

static void test_figures(void)
{
    struct duet__problem problem = set_as(10, 4, 's', sizes, 2);
    g_assert_cmpuint(recorded_gemm.tasks(&problem), ==, 4 * 3 * 3);
    g_assert_cmpfloat(recorded_gemm.flops(&problem), ==, 2.0 * 13 * 10 * 9);
    g_assert_cmpuint(duet__tiled_bytes(&recorded_gemm, &problem), ==,
                     4 * (13 * 9 + 9 * 10 + 13 * 10));
}

static void test_failures(void)
{
    struct duet__problem problem = sized(10, 4, 'd');
    check_failures(&recorded_gemm, &problem, 1 + 27 + 27, NULL);
}

static int check_setting_of(const char *name, const char *value, struct duet_message *message)
{
    struct duet__setting setting = {name, value};
    struct duet__problem problem = set_as(10, 4, 'd', &setting, 1);
    return recorded_gemm.check(&problem, message);
}

static void test_settings(void)
{
    static const char *const wrong[] = {"",     "0",   "-1",
                                        "1.5",  " 7",  "7x",
                                        "0x10", "1e3", "99999999999999999999999"};
    for (size_t i = 0; i < G_N_ELEMENTS(wrong); i++)
        g_assert_cmpint(check_setting_of("m", wrong[i], hear()), ==, DUET_EINVAL);
    g_assert_cmpstr(heard(), ==,
                    "parameter m = '99999999999999999999999' is not possible: give 1..536870912 "
                    "(default n)");
    g_assert_cmpint(check_setting_of("m", "100000", hear()), ==, DUET_EINVAL);
    g_assert_cmpstr(heard(), ==,
                    "m = 100000 in tiles of 4 makes 25000 tiles, at most 8192 are possible: use "
                    "tiles of 13 or more");
    WORKS(check_setting_of("m", "n", hear()));
    WORKS(check_setting_of("k", "1", hear()));
}

static void test_compute(void)
{
    static const struct duet__setting settings[] = {{"m", "13"},
                                                    {"k", "200"},
                                                    {"layout", "lapack"}};
    if (!can_compute(&recorded_gemm))
        return;
    for (size_t i = 0; i < 8; i++) {
        struct duet__problem problem = set_as(70, 32, i < 4 ? 'd' : 's', settings, i % 4);
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
    check_damage(&recorded_gemm, sized(70, 32, 'd'), changes, G_N_ELEMENTS(changes));
    check_damage(&recorded_gemm, sized(70, 32, 's'), changes, 1);
}

TEST_MAIN(test_graph, test_figures, test_failures, test_settings, test_compute, test_damage)
