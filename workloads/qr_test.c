/* SPDX-License-Identifier: Apache-2.0 */
/* QR along a flat tree: counts, accesses; its tasks compute the R of Householder's factorisation in
 * any order that the accesses allow. */
#include "workloads/test_recorder.h"

#include "workloads/tiles.c" /* NOLINT(bugprone-suspicious-include) */

#include "workloads/flat_tree.c" /* NOLINT(bugprone-suspicious-include) */

#include "workloads/test_compute.h"

static const struct duet__setting settings[] = {{"inner", "5"}, {"layout", "lapack"}};

static uint64_t handles(uint64_t t)
{
    return t * t + t * (t + 1) / 2 + 2 * (t - 1);
}

static void test_counts(void)
{
    static const char *const names[] = {"dgeqrt", "dormqr", "dtsqrt", "dtsmqr"};
    check_counts(&recorded_qr, names, 1, handles, 0);
}

/* The first tasks of the first step, for three rows of tiles, the last one short. */
static void test_accesses(void)
{
    struct duet__problem problem = sized(25, 10, 's');
    OWNED(recorder_end) struct duet_runtime *recorder = build_graph(&recorded_qr, &problem);
    for (unsigned i = 0; i < 4; i++)
        g_assert_cmpuint(recorder->codelets[i].implementation_count, ==, 3);
    const struct recorded *geqrt = recorder_task(recorder, 0), *ormqr = recorder_task(recorder, 1);
    const struct recorded *tsqrt = recorder_task(recorder, 6), *tsmqr = recorder_task(recorder, 7);
    g_assert_cmpstr(geqrt->codelet->name, ==, "sgeqrt");
    g_assert_cmpstr(ormqr->codelet->name, ==, "sormqr");
    g_assert_cmpstr(tsqrt->codelet->name, ==, "stsqrt");
    g_assert_cmpstr(tsmqr->codelet->name, ==, "stsmqr");
    g_assert_cmpint(geqrt->accesses[1].mode, ==, DUET_W);
    g_assert_true(ormqr->accesses[1].handle == geqrt->accesses[1].handle);
    /* triangles do not wait for each other */
    g_assert_true(ormqr->accesses[0].handle->whole == geqrt->accesses[0].handle);
    g_assert_true(tsqrt->accesses[0].handle->whole == geqrt->accesses[0].handle);
    g_assert_false(recorder_conflict(ormqr, tsqrt));
    g_assert_true(recorder_conflict(geqrt, tsqrt) && recorder_conflict(tsqrt, tsmqr));
    /* the last row of tiles is short */
    g_assert_cmpuint(tsqrt->accesses[1].handle->rows, ==, 5);
    g_assert_cmpuint(tsqrt->accesses[2].handle->rows, ==, 10);
    g_assert_true(tsmqr->accesses[0].handle == tsqrt->accesses[1].handle);
    g_assert_true(tsmqr->accesses[1].handle == tsqrt->accesses[2].handle);
    g_assert_true(tsmqr->accesses[2].handle == ormqr->accesses[2].handle);
    g_assert_cmpint(geqrt->priority, ==, 6);
    g_assert_cmpint(ormqr->priority, ==, 5);
    g_assert_cmpint(tsqrt->priority, ==, 4);
    g_assert_cmpint(tsmqr->priority, ==, 3);
}

/* Panels are on CPUs only; the refusal without CPUs says how to allow them elsewhere. */
static void test_panels(void)
{
    static const struct duet__setting cpu = {"panel", "cpu"};
    static struct duet_worker gpu = {.node = 1, .window = 1};
    static const struct duet_machine none = {.worker_count = 1, .workers = &gpu};
    struct duet__problem problem = sized(25, 10, 'd');
    void *state = NULL;
    problem.settings = &cpu;
    problem.setting_count = 1;
    OWNED(recorder_end) struct duet_runtime *recorder = build_graph(&recorded_qr, &problem);
    for (unsigned i = 0; i < 4; i++)
        g_assert_cmpuint(recorder->codelets[i].implementation_count, ==, i % 2 ? 3 : 1);
    recorder->machine = &none;
    FAILS(recorded_qr.build(&recorded_qr, recorder, &problem, &state, hear()), DUET_ENOWORKER,
          "dgeqrt");
    SAYS("--param panel=any");
}

static void test_failures(void)
{
    struct duet__problem problem = sized(20, 10, 'd');
    check_failures(&recorded_qr, &problem, 4 + 4 + 3 + 1 + recorded_qr.tasks(&problem), NULL);
}

static void test_compute(void)
{
    static const uint64_t sizes[][2] = {{1, 1}, {2, 1}, {7, 3}, {40, 40}, {64, 16}, {131, 48}};
    compute_all(&recorded_qr, sizes, G_N_ELEMENTS(sizes), settings, 2);
}

/* R is that of any other QR factorisation except for the signs of its rows: R'R = A'A. */
static void test_same_as_by_hand(void)
{
    enum { N = 90, TILE = 20 };
    if (!can_compute(&recorded_qr))
        return;
    struct duet__problem problem = sized(N, TILE, 'd');
    struct duet__tiled_data *data = compute_right(&recorded_qr, &problem);
    const struct duet__storage *r = &data->matrices[A];
    for (uint64_t j = 0; j < N; j++) {
        for (uint64_t i = 0; i <= j; i++) {
            double of_a = 0, of_r = 0;
            for (uint64_t k = 0; k < N; k++)
                of_a += duet__storage_initial(r, k, i) * duet__storage_initial(r, k, j);
            for (uint64_t k = 0; k <= i; k++)
                of_r += duet__storage_value(r, k, i) * duet__storage_value(r, k, j);
            g_assert_cmpfloat_with_epsilon(of_a, of_r, 1e-13);
        }
    }
    recorded_qr.discard(data);
}

/* The check finds damage in R, in a reflector, and in the factor of a block of reflectors. */
static void test_damage(void)
{
    static const struct change changes[] = {{A, 0, 130, 1e-6},     {A, 130, 130, 1e-6},
                                            {A, 130, 0, 1e-6},     {A, 70, 50, NAN},
                                            {FACTORS, 0, 0, 1e-6}, {FACTORS, 64, 1, NAN}};
    check_damage(&recorded_qr, sized(131, 48, 'd'), changes, G_N_ELEMENTS(changes));
}

TEST_MAIN(test_counts, test_accesses, test_panels, test_failures, test_compute,
          test_same_as_by_hand, test_damage)
