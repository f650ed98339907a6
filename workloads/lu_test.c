/* SPDX-License-Identifier: Apache-2.0 */
/* The LU graph: counts, flops; its tasks factorise a matrix. */
#include "workloads/test_recorder.h"

#include "workloads/tiles.c" /* NOLINT(bugprone-suspicious-include) */

#include "workloads/lu.c" /* NOLINT(bugprone-suspicious-include) */

#include "workloads/test_compute.h"

static void test_counts(void)
{
    static const char *const names[] = {"dgetrf_nopiv", "dtrsm_l", "dtrsm_r", "dgemm"};
    check_counts(&recorded_lu, names, 1, NULL, 1e-13);
}

static void test_kernels(void)
{
    static const struct duet__setting any = {"getrf", "any"};
    for (size_t settings = 0; settings < 2; settings++) {
        struct duet__problem problem = set_as(20, 10, 's', &any, settings);
        OWNED(recorder_end) struct duet_runtime *recorder = build_graph(&recorded_lu, &problem);
        g_assert_cmpstr(recorder->codelets[0].name, ==, "sgetrf_nopiv");
        g_assert_cmpuint(recorder->codelets[0].implementation_count, ==, settings ? 3 : 1);
        g_assert_cmpuint(recorder->codelets[1].implementation_count, ==, 3);
        g_assert_cmpuint(recorder_bytes(recorder), ==, 1600);
    }
}

/* Priorities with T = 2 tiles: panel 4 and 3, row 3, update 2; then the last panel, 2. */
static void test_priorities(void)
{
    static const int expected[] = {4, 3, 3, 2, 2};
    struct duet__problem problem = sized(20, 10, 'd');
    OWNED(recorder_end) struct duet_runtime *recorder = build_graph(&recorded_lu, &problem);
    g_assert_cmpuint(recorder->tasks->len, ==, G_N_ELEMENTS(expected));
    for (size_t i = 0; i < G_N_ELEMENTS(expected); i++)
        g_assert_cmpint(recorder_task(recorder, i)->priority, ==, expected[i]);
}

/* Without CPUs, diagonal tiles have to be allowed on GPUs, and the message says how. */
static void test_no_cpus(void)
{
    struct duet__setting setting = {"getrf", "cpu"};
    struct duet__problem problem = set_as(20, 10, 's', &setting, 1);
    struct duet_worker gpu = {.node = 1, .window = 2};
    const struct duet_machine gpus = {.worker_count = 1, .workers = &gpu};
    struct duet_runtime *recorder = recorder_new();
    void *state = &problem;
    recorder->machine = &gpus;
    g_assert_cmpint(recorded_lu.build(&recorded_lu, recorder, &problem, &state, hear()), ==,
                    DUET_ENOWORKER);
    g_assert_null(state);
    SAYS("kernel sgetrf_nopiv is for CPUs only");
    SAYS("--param getrf=any");
    setting.value = "any";
    WORKS(recorded_lu.build(&recorded_lu, recorder, &problem, &state, hear()));
    recorder_free(recorder);
    recorded_lu.fini(state);
}

static void test_failures(void)
{
    struct duet__problem problem = sized(20, 10, 'd');
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
    check_damage(&recorded_lu, sized(131, 48, 'd'), changes, G_N_ELEMENTS(changes));
}

TEST_MAIN(test_counts, test_kernels, test_priorities, test_no_cpus, test_failures, test_compute,
          test_damage)
