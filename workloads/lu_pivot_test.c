/* SPDX-License-Identifier: Apache-2.0 */
/* LU with partial pivoting: counts, accesses; its tasks compute LAPACK's factors and interchanges
 * in any order that the accesses allow. */
#include "workloads/test_recorder.h"

#include "workloads/tiles.c" /* NOLINT(bugprone-suspicious-include) */

#include "workloads/lu_pivot.c" /* NOLINT(bugprone-suspicious-include) */

#include "workloads/test_compute.h"

static const struct duet__setting lapack = {"layout", "lapack"};

static uint64_t handles(uint64_t t)
{
    return t * t + t;
}

static void test_counts(void)
{
    static const char *const names[] = {"dgetrf", "dlaswp", "dtrsm_l", "dgemm"};
    check_counts(&recorded_lu_pivot, names, 2, handles, 1e-12);
}

/* Panels and interchanges are on CPUs; the first panel writes its interchanges and all tiles of its
 * column, the interchanges of the next column read them. */
static void test_accesses(void)
{
    struct duet__problem problem = sized(25, 10, 's');
    OWNED(recorder_end) struct duet_runtime *recorder = build_graph(&recorded_lu_pivot, &problem);
    for (unsigned i = 0; i < 4; i++)
        g_assert_cmpuint(recorder->codelets[i].implementation_count, ==, i < 2 ? 1 : 3);
    const struct recorded *getrf = recorder_task(recorder, 0), *laswp = recorder_task(recorder, 1);
    g_assert_cmpstr(getrf->codelet->name, ==, "sgetrf");
    g_assert_cmpstr(laswp->codelet->name, ==, "slaswp");
    g_assert_cmpuint(getrf->access_count, ==, 4);
    g_assert_cmpuint(laswp->access_count, ==, 4);
    g_assert_true(getrf->accesses[0].handle == laswp->accesses[0].handle);
    g_assert_cmpint(getrf->accesses[0].mode, ==, DUET_W);
    g_assert_cmpint(laswp->accesses[0].mode, ==, DUET_R);
    g_assert_cmpuint(getrf->accesses[0].handle->rows, ==, 10);
    g_assert_cmpuint(getrf->accesses[0].handle->element_bytes, ==, 4);
    for (size_t i = 1; i < 4; i++) {
        g_assert_cmpint(getrf->accesses[i].mode, ==, DUET_RW);
        g_assert_cmpint(laswp->accesses[i].mode, ==, DUET_RW);
        g_assert_cmpuint(getrf->accesses[i].handle->rows, ==, i < 3 ? 10 : 5);
    }
    g_assert_cmpint(getrf->priority, ==, 6);
    g_assert_cmpint(laswp->priority, ==, 5);
    /* the last task: interchanges of the last panel in the second column, on its last tile only */
    const struct recorded *last = recorder_task(recorder, recorder->tasks->len - 1);
    g_assert_cmpstr(last->codelet->name, ==, "slaswp");
    g_assert_cmpuint(last->access_count, ==, 2);
    g_assert_cmpint(last->priority, ==, 0);
}

static void test_failures(void)
{
    struct duet__problem problem = sized(20, 10, 'd');
    check_failures(&recorded_lu_pivot, &problem, 4 + 6 + recorded_lu_pivot.tasks(&problem), NULL);
}

static void test_compute(void)
{
    static const uint64_t sizes[][2] = {{1, 1}, {2, 1}, {7, 3}, {40, 40}, {64, 16}, {131, 48}};
    compute_all(&recorded_lu_pivot, sizes, G_N_ELEMENTS(sizes), &lapack, 1);
}

static void test_same_as_by_hand(void)
{
    enum { N = 90, TILE = 20 };
    if (!can_compute(&recorded_lu_pivot))
        return;
    g_autofree double *a = g_new(double, N *N);
    int pivots[N];
    struct duet__problem problem = sized(N, TILE, 'd');
    struct duet__tiled_data *data = compute_right(&recorded_lu_pivot, &problem);
    for (uint64_t i = 0; i < (uint64_t)N * N; i++)
        a[i] = duet__storage_initial(&data->matrices[A], i % N, i / N);
    eliminate(a, pivots, N);
    for (uint64_t j = 0; j < N; j++) {
        int32_t pivot = *(int32_t *)duet__storage_at(&data->matrices[PIVOTS], j, 0);
        g_assert_cmpint(pivot - 1 + (int)(j / TILE * TILE), ==, pivots[j]);
        for (uint64_t i = 0; i < N; i++)
            g_assert_cmpfloat_with_epsilon(duet__storage_value(&data->matrices[A], i, j),
                                           a[i + j * N], 1e-11);
    }
    recorded_lu_pivot.discard(data);
}

static void set_pivot(void *data, uint64_t i, int32_t pivot)
{
    struct duet__tiled_data *made = data;
    *(int32_t *)duet__storage_at(&made->matrices[PIVOTS], i, 0) = pivot;
}

static void test_damage(void)
{
    static const int32_t wrong[] = {0, -1, 48, 1000, INT32_MAX, INT32_MIN};
    struct duet__problem problem = sized(131, 48, 'd');
    if (!can_compute(&recorded_lu_pivot))
        return;
    void *data = compute_right(&recorded_lu_pivot, &problem);
    check_finds(&recorded_lu_pivot, &problem, data, A, 130, 0, 1e-3);
    check_finds(&recorded_lu_pivot, &problem, data, A, 0, 130, 1e-3);
    check_finds(&recorded_lu_pivot, &problem, data, A, 130, 130, -1e-3);
    check_finds(&recorded_lu_pivot, &problem, data, A, 70, 50, NAN);
    for (size_t i = 0; i < G_N_ELEMENTS(wrong); i++) {
        bool passes;
        compute(&recorded_lu_pivot, problem, data, NULL);
        set_pivot(data, 96, wrong[i]);
        judged(&recorded_lu_pivot, data, &passes);
        g_assert_false(passes);
    }
    recorded_lu_pivot.discard(data);
}

TEST_MAIN(test_counts, test_accesses, test_failures, test_compute, test_same_as_by_hand,
          test_damage)
