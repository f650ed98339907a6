/* SPDX-License-Identifier: Apache-2.0 */
/* saxpy: counts; its tasks compute the sum, and a wrong element is found. */
#include "workloads/test_recorder.h"

#include "workloads/tiles.c" /* NOLINT(bugprone-suspicious-include) */

#include "workloads/saxpy.c" /* NOLINT(bugprone-suspicious-include) */

#include "workloads/test_compute.h"

static const struct duet__setting thrice = {"iterations", "3"};

static struct duet__problem problem_of(uint64_t n, uint64_t tile, char precision)
{
    return set_as(n, tile, precision, &thrice, 1);
}

static void test_counts(void)
{
    struct duet__problem problem = problem_of(1000, 300, 's');
    OWNED(recorder_end) struct duet_runtime *recorder = build_graph(&recorded_saxpy, &problem);
    g_assert_cmpuint(recorder_count(recorder, "saxpy"), ==, 12);
    g_assert_cmpuint(recorder_bytes(recorder), ==, 8000);
    g_assert_cmpfloat(recorder_flops(recorder), ==, recorded_saxpy.flops(&problem));
    const struct recorded *task = recorder_task(recorder, 11);
    g_assert_cmpint(task->accesses[0].mode, ==, DUET_R);
    g_assert_cmpint(task->accesses[1].mode, ==, DUET_RW);
    g_assert_cmpuint(task->accesses[1].handle->rows, ==, 100);
}

static void test_compute(void)
{
    if (!can_compute(&recorded_saxpy))
        return;
    static const uint64_t sizes[][2] = {{1, 1}, {100, 100}, {1000, 300}, {5000, 4999}};
    for (size_t i = 0; i < G_N_ELEMENTS(sizes) * 2; i++) {
        struct duet__problem problem =
            problem_of(sizes[i / 2][0], sizes[i / 2][1], i % 2 ? 's' : 'd');
        struct duet__tiled_data *data = compute_right(&recorded_saxpy, &problem);
        for (uint64_t j = 0; j < problem.n; j++) {
            double x = duet__storage_initial(&data->matrices[X], j, 0);
            double y = duet__storage_initial(&data->matrices[Y], j, 0);
            g_assert_cmpfloat_with_epsilon(duet__storage_value(&data->matrices[Y], j, 0),
                                           y + 2.25 * x, i % 2 ? 1e-6 : 1e-14);
        }
        recorded_saxpy.discard(data);
    }
}

static void test_damage(void)
{
    static const struct change changes[] = {{Y, 999, 0, 1e-5},  {Y, 0, 0, 1e-3},
                                            {Y, 999, 0, 1e-13}, {Y, 511, 0, NAN},
                                            {Y, 512, 0, NAN},   {Y, 512, 0, -INFINITY}};
    check_damage(&recorded_saxpy, problem_of(1000, 300, 'd'), changes, G_N_ELEMENTS(changes));
    check_damage(&recorded_saxpy, problem_of(1000, 300, 's'), changes, 1);
}

/* One update too many or too few is an error of alpha x. */
static void test_iterations(void)
{
    if (!can_compute(&recorded_saxpy))
        return;
    bool passes;
    struct duet__problem problem = problem_of(1000, 300, 'd');
    struct duet__tiled_data *data = compute_right(&recorded_saxpy, &problem);
    data->iterations = 4;
    judged(&recorded_saxpy, data, &passes);
    g_assert_false(passes);
    recorded_saxpy.discard(data);
}

static void refuse(struct duet__problem problem, const char *text)
{
    FAILS(recorded_saxpy.check(&problem, hear()), DUET_EINVAL, text);
}

static void test_check(void)
{
    static const struct duet__setting many = {"iterations", "1000000"}, none = {"iterations", "0"};
    struct duet__problem often = problem_of(1000, 1, 'd'), never = often;
    often.settings = &many;
    never.settings = &none;
    refuse(problem_of(0, 1, 'd'), "size n is 0");
    refuse(problem_of(10, 0, 'd'), "give a tile of 1 to 10");
    refuse(problem_of(10, 11, 'd'), "give a tile of 1 to 10");
    refuse(problem_of(UINT64_MAX, UINT64_MAX, 'd'), "give a tile of 1 to 268435456");
    refuse(problem_of(UINT64_MAX, 1, 'd'), "use a larger tile");
    refuse(problem_of(10, 1, 'q'), "precision 'q'");
    refuse(often, "updated 1000000 times");
    refuse(never, "give 1..1000000");
}

TEST_MAIN(test_counts, test_compute, test_damage, test_iterations, test_check)
