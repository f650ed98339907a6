/* SPDX-License-Identifier: Apache-2.0 */
/* jacobi2d: counts; blocks and borders compute the same as a sweep over the whole grid; checks. */
#include "workloads/test_recorder.h"

#include "workloads/tiles.c" /* NOLINT(bugprone-suspicious-include) */

#include "workloads/jacobi2d.c" /* NOLINT(bugprone-suspicious-include) */

#include "workloads/test_compute.h"

static const struct duet__setting steps[][2] = {{{"iterations", "4"}, {"submit", "graph"}},
                                                {{"iterations", "1"}, {"submit", "graph"}},
                                                {{"iterations", "7"}, {"submit", "graph"}},
                                                {{"iterations", "3"}, {"submit", "tasks"}}};

static struct duet__problem problem_of(uint64_t n, uint64_t tile, char precision, size_t setting)
{
    return set_as(n, tile, precision, steps[setting], 2);
}

static void test_counts(void)
{
    struct duet__problem problem = problem_of(25, 10, 's', 0);
    OWNED(recorder_end) struct duet_runtime *recorder = build_graph(&recorded_jacobi2d, &problem);
    g_assert_cmpuint(recorder_count(recorder, "sjacobi2d"), ==, 9 * 4);
    g_assert_cmpuint(recorder->handles->len, ==, 2 * (9 + 4 * 4 * 3));
    g_assert_cmpfloat(recorder_flops(recorder), ==, recorded_jacobi2d.flops(&problem));
    const struct recorded *task = recorder_task(recorder, 0);
    g_assert_cmpuint(task->access_count, ==, 10);
    for (size_t i = 0; i < 10; i++)
        g_assert_cmpint(task->accesses[i].mode, ==, i < 5 ? DUET_R : DUET_W);
}

/* Blocks that are no neighbours may step at the same time; neighbours of the next step wait. */
static void test_dependencies(void)
{
    struct duet__problem problem = problem_of(30, 10, 'd', 0);
    OWNED(recorder_end) struct duet_runtime *recorder = build_graph(&recorded_jacobi2d, &problem);
    for (size_t a = 0; a < 9; a++) {
        for (size_t b = 0; b < 9; b++) {
            int distance = abs((int)(a % 3) - (int)(b % 3)) + abs((int)(a / 3) - (int)(b / 3));
            g_assert_false(a != b && recorder_conflict(recorder_task(recorder, a),
                                                       recorder_task(recorder, b)));
            g_assert_true(recorder_conflict(recorder_task(recorder, a),
                                            recorder_task(recorder, 9 + b)) == (distance < 2));
        }
    }
}

static void test_failures(void)
{
    struct duet__problem problem = problem_of(20, 10, 'd', 1);
    check_failures(&recorded_jacobi2d, &problem, 1 + 2 * (4 + 4 * 6) + 4, NULL);
    problem.settings = steps[0]; /* a graph's beginning and end, and two steps before and after */
    check_failures(&recorded_jacobi2d, &problem, 1 + 2 * (4 + 4 * 6) + 1 + 8 + 1 + 8, NULL);
}

/* Returns the mean of the neighbours' values of the step before, by definition. */
static double point(const struct duet__tiled_data *data, unsigned step, uint64_t i, uint64_t j)
{
    struct duet__storage frame = framed(data);
    uint64_t n = data->problem.n;
    if (step == 0 || i == 0 || j == 0 || i == n + 1 || j == n + 1)
        return duet__storage_initial(&frame, i, j);
    return ((point(data, step - 1, i - 1, j) + point(data, step - 1, i + 1, j)) +
            (point(data, step - 1, i, j - 1) + point(data, step - 1, i, j + 1))) *
           0.25;
}

static void test_definition(void)
{
    struct duet__problem problem = problem_of(13, 5, 'd', 0);
    struct duet__tiled_data *data = compute_right(&recorded_jacobi2d, &problem);
    for (uint64_t j = 0; j < 13; j++) {
        for (uint64_t i = 0; i < 13; i++)
            g_assert_cmpfloat(duet__storage_value(&data->matrices[GRID], i, j), ==,
                              point(data, 4, i + 1, j + 1));
    }
    recorded_jacobi2d.discard(data);
}

static void test_compute(void)
{
    static const uint64_t sizes[][2] = {{1, 1}, {5, 1}, {8, 8}, {9, 4}, {100, 30}};
    for (size_t i = 0; i < G_N_ELEMENTS(sizes) * 8; i++) {
        struct duet__problem problem =
            problem_of(sizes[i / 8][0], sizes[i / 8][1], i % 2 ? 's' : 'd', i / 2 % 4);
        recorded_jacobi2d.discard(compute_right(&recorded_jacobi2d, &problem));
    }
}

static void test_damage(void)
{
    static const struct change changes[] = {{GRID, 0, 0, 1e-15},
                                            {GRID, 99, 99, 1e-3},
                                            {GRID, 50, 3, NAN}};
    check_damage(&recorded_jacobi2d, problem_of(100, 30, 'd', 0), changes, G_N_ELEMENTS(changes));
}

TEST_MAIN(test_counts, test_dependencies, test_failures, test_definition, test_compute, test_damage)
