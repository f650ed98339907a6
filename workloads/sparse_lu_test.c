/* SPDX-License-Identifier: Apache-2.0 */
/* Sparse LU: its tiles are those that elimination fills, and its tasks compute the elimination of
 * the whole matrix, in any order that the accesses allow. */
#include "workloads/test_recorder.h"

#include "workloads/tiles.c" /* NOLINT(bugprone-suspicious-include) */

#include "workloads/lu.c" /* NOLINT(bugprone-suspicious-include) */

#include "workloads/test_compute.h"

static const struct duet__setting settings[] = {{"getrf", "any"}, {"layout", "lapack"}};

/* True if the benchmark's description has tile (i,j) at the beginning. */
static bool is_at_first(unsigned i, unsigned j)
{
    if (i == j || i + 1 == j || j + 1 == i)
        return true;
    if (i % 2 || j % 2)
        return false;
    return i < j ? i % 3 == 0 : j % 3 == 0;
}

static void test_pattern(void)
{
    enum { T = 50 };
    bool there[T][T];
    const struct duet__storage storage = {.rows = T,
                                          .cols = T,
                                          .tile_rows = 1,
                                          .tile_cols = 1,
                                          .element_bytes = 8,
                                          .contents = DUET__SPARSE};
    for (unsigned i = 0; i < T; i++) {
        for (unsigned j = 0; j < T; j++) {
            there[i][j] = is_at_first(i, j);
            g_assert_true(there[i][j] == (duet__storage_initial(&storage, i, j) != 0));
        }
    }
    for (unsigned k = 0; k < T; k++) {
        for (unsigned i = k + 1; i < T; i++) {
            for (unsigned j = k + 1; j < T; j++)
                there[i][j] |= there[i][k] && there[k][j];
        }
    }
    for (unsigned i = 0; i < T; i++) {
        for (unsigned j = 0; j < T; j++)
            g_assert_true(is_there(i, j) == there[i][j]);
    }
}

static void test_counts(void)
{
    static const uint64_t sizes[][2] = {{7, 7}, {20, 10}, {960 * 12, 960}, {960 * 11 + 17, 960}};
    static const unsigned gemms[] = {0, 1, 146, 146};
    for (size_t i = 0; i < G_N_ELEMENTS(sizes); i++) {
        struct duet__problem problem = sized(sizes[i][0], sizes[i][1], i % 2 ? 's' : 'd');
        OWNED(recorder_end)
        struct duet_runtime *recorder = build_graph(&recorded_sparse_lu, &problem);
        g_assert_cmpuint(recorder_count(recorder, i % 2 ? "sgemm" : "dgemm"), ==, gemms[i]);
        g_assert_cmpfloat_with_epsilon(recorder_flops(recorder) /
                                           recorded_sparse_lu.flops(&problem),
                                       1, 1e-12);
    }
}

static void test_failures(void)
{
    struct duet__problem problem = sized(40, 10, 'd');
    /* codelets, tiles, tasks */
    check_failures(&recorded_sparse_lu, &problem, 4 + 12 + recorded_sparse_lu.tasks(&problem),
                   NULL);
}

static void test_compute(void)
{
    static const uint64_t sizes[][2] = {{1, 1}, {2, 1}, {7, 3}, {40, 40}, {64, 8}, {131, 10}};
    compute_all(&recorded_sparse_lu, sizes, G_N_ELEMENTS(sizes), settings, 2);
}

/* Compares each element with Gauss's elimination of the whole matrix, zeros included. */
static void test_same_as_by_hand(void)
{
    enum { N = 90, TILE = 7 };
    static double a[N][N];
    if (!can_compute(&recorded_sparse_lu))
        return;
    struct duet__problem problem = sized(N, TILE, 'd');
    struct duet__tiled_data *data = compute_right(&recorded_sparse_lu, &problem);
    const struct duet__storage *of = &data->matrices[0];
    for (size_t i = 0; i < N; i++) {
        for (size_t j = 0; j < N; j++)
            a[i][j] = duet__storage_initial(of, i, j);
    }
    for (size_t k = 0; k < N; k++) {
        for (size_t i = k + 1; i < N; i++) {
            a[i][k] /= a[k][k];
            for (size_t j = k + 1; j < N; j++)
                a[i][j] -= a[i][k] * a[k][j];
        }
    }
    for (size_t i = 0; i < N; i++) {
        for (size_t j = 0; j < N; j++)
            g_assert_cmpfloat_with_epsilon(a[i][j], duet__storage_value(of, i, j), 1e-13 * N);
    }
    recorded_sparse_lu.discard(data);
}

/* The check finds damage in an initial tile, in one that was filled in, and in one that does not
 * exist. */
static void test_damage(void)
{
    static const struct change changes[] = {{0, 0, 125, 1e-6},
                                            {0, 15, 125, 1e-6},
                                            {0, 15, 35, 1e-6},
                                            {0, 65, 65, NAN}};
    check_damage(&recorded_sparse_lu, sized(131, 10, 'd'), changes, G_N_ELEMENTS(changes));
}

TEST_MAIN(test_pattern, test_counts, test_failures, test_compute, test_same_as_by_hand, test_damage)
