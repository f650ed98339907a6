/* SPDX-License-Identifier: Apache-2.0 */
/* LU with incremental pivoting: counts; its tasks, in any order that the accesses allow, choose the
 * largest possible pivots. Properties of every flat tree are tested in qr_test.c. */
#include "workloads/test_recorder.h"

#include "workloads/tiles.c" /* NOLINT(bugprone-suspicious-include) */

#include "workloads/flat_tree.c" /* NOLINT(bugprone-suspicious-include) */

#include "workloads/test_compute.h"

static const struct duet__setting settings[] = {{"inner", "5"}, {"layout", "lapack"}};

static void test_counts(void)
{
    static const char *const names[] = {"dgetrf_incpiv", "dgessm", "dtstrf", "dssssm"};
    check_counts(&recorded_lu_incremental, names, 1, NULL, 0);
}

static void test_compute(void)
{
    static const uint64_t sizes[][2] = {{1, 1}, {2, 1}, {7, 3}, {40, 40}, {64, 16}, {131, 48}};
    compute_all(&recorded_lu_incremental, sizes, G_N_ELEMENTS(sizes), settings, 2);
}

/* Returns log |det A|; destroys A of order n. */
static double log_determinant(double *a, size_t n)
{
    int *pivots = g_new(int, n);
    double sum = 0;
    eliminate(a, pivots, n);
    g_free(pivots);
    for (size_t k = 0; k < n; k++)
        sum += log(fabs(a[k + k * n]));
    return sum;
}

/* A and U have the same determinant but for the sign, as L has 1 on its diagonal; no multiplier,
 * wherever it stands, is larger than 1. */
static void test_same_as_by_hand(void)
{
    enum { N = 90, TILE = 20 };
    if (!can_compute(&recorded_lu_incremental))
        return;
    struct duet__problem problem = sized(N, TILE, 'd');
    problem.settings = settings;
    problem.setting_count = 1;
    struct duet__tiled_data *data = compute_right(&recorded_lu_incremental, &problem);
    const struct duet__storage *a = &data->matrices[A];
    double initial[N * N], of_u = 0, largest = 0;
    for (size_t j = 0; j < N; j++) {
        for (size_t i = 0; i < N; i++) {
            initial[i + j * N] = duet__storage_initial(a, i, j);
            if (i > j)
                largest = fmax(largest, fabs(duet__storage_value(a, i, j)));
        }
        of_u += log(fabs(duet__storage_value(a, j, j)));
    }
    g_assert_cmpfloat_with_epsilon(log_determinant(initial, N), of_u, 1e-9);
    g_assert_cmpfloat(largest, <=, 1);
    g_assert_cmpfloat(largest, >, 0.9);
    recorded_lu_incremental.discard(data);
}

/* The check finds damage in U, in a multiplier of either place, and in an interchange. */
static void test_damage(void)
{
    static const struct change changes[] = {{A, 0, 130, 1e-6},          {A, 130, 130, 1e-6},
                                            {A, 130, 0, 1e-6},          {A, 70, 50, NAN},
                                            {FACTORS, 33 + 5, 2, 1e-6}, {FACTORS, 32, 1, 500},
                                            {FACTORS, 33 + 32, 1, NAN}};
    check_damage(&recorded_lu_incremental, sized(131, 48, 'd'), changes, G_N_ELEMENTS(changes));
}

/* Tiles without a pivot in any column, one or two of them; invalid interchanges. */
static void test_refusals(void)
{
    double a[9] = {1, 2, 3}, b[9] = {0}, t[9] = {0};
    const struct duet_buffer of_a = {.data = a, .rows = 3, .cols = 3, .ld = 3, .element_bytes = 8};
    struct duet_buffer buffers[] = {of_a, of_a, of_a, of_a};
    const struct duet_call call = {.buffers = buffers, .buffer_count = 4, .message = hear()};
    if (!can_compute(&recorded_lu_incremental))
        return;
    buffers[1].data = t;
    g_assert_cmpint(duet__kernel("getrf_incpiv")(&call), ==, DUET_ETASK);
    SAYS("column 2 of a tile has no pivot but 0");
    memset(t, 0, sizeof t);
    g_assert_cmpint(duet__kernel("gessm")(&call), ==, DUET_ETASK);
    SAYS("interchange 1 is with row -3, which is none of the 3");
    g_assert_cmpint(duet__kernel("ssssm")(&call), ==, DUET_ETASK);
    SAYS("interchange 1 is with row -2, which is none of the 3");
    buffers[1].data = b;
    buffers[2].data = t;
    g_assert_cmpint(duet__kernel("tstrf")(&call), ==, DUET_ETASK);
    SAYS("column 2 of a tile has no pivot but 0");
}

TEST_MAIN(test_counts, test_compute, test_same_as_by_hand, test_damage, test_refusals)
