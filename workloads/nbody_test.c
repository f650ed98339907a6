/* SPDX-License-Identifier: Apache-2.0 */
/* nbody: counts and hints, dependences, two bodies by hand, momentum, checks. */
#include "workloads/test_recorder.h"

#include "workloads/tiles.c" /* NOLINT(bugprone-suspicious-include) */

#include "workloads/nbody.c" /* NOLINT(bugprone-suspicious-include) */

#include "workloads/test_compute.h"

static const struct duet__setting steps[][2] = {{{"iterations", "4"}, {"sizes", "uniform"}},
                                                {{"iterations", "1"}, {"sizes", "bimodal"}},
                                                {{"iterations", "7"}, {"sizes", "fixed"}}};

static struct duet__problem problem_of(uint64_t n, uint64_t tile, char precision, size_t setting)
{
    return set_as(n, tile, precision, steps[setting], 2);
}

/* Every task of a step reads all places; tasks of the next step wait for those that they read. */
static void test_tasks(void)
{
    struct duet__problem problem = problem_of(95, 10, 's', 0);
    OWNED(recorder_end) struct duet_runtime *recorder = build_graph(&recorded_nbody, &problem);
    g_assert_cmpuint(recorder_count(recorder, "snbody"), ==, 40);
    g_assert_cmpfloat(recorder_flops(recorder), ==, recorded_nbody.flops(&problem));
    for (size_t i = 0; i < 40; i++) {
        const struct recorded *task = recorder_task(recorder, i);
        double bodies = (double)task->accesses[i % 10].handle->rows;
        g_assert_cmpuint(task->access_count, ==, 12);
        g_assert_cmpint(task->accesses[9].mode, ==, DUET_R);
        g_assert_cmpint(task->accesses[10].mode, ==, DUET_W);
        g_assert_cmpint(task->accesses[11].mode, ==, DUET_RW);
        g_assert_cmpuint(task->accesses[11].handle->cols, ==, 3);
        g_assert_cmpfloat(task->complexity, ==, bodies);
        g_assert_cmpfloat(task->codelet->flops(task->args), ==, 20 * bodies * 95);
        for (size_t j = 0; j < i; j++)
            g_assert_true(recorder_conflict(recorder_task(recorder, j), task) ==
                          (j / 10 < i / 10 &&
                           (i / 10 - j / 10 == 1 || i % 10 == j % 10 || (i / 10 - j / 10) % 2)));
    }
}

/* A step of two bodies, each in a subset of its own. */
static void test_two(void)
{
    struct duet__problem problem = problem_of(2, 1, 'd', 1);
    struct duet__tiled_data *data = compute_right(&recorded_nbody, &problem);
    const struct duet__storage *places = &data->matrices[0], *speeds = &data->matrices[SPEEDS];
    double square = DUET__SOFTENING, away[3];
    for (unsigned axis = 0; axis < 3; axis++) {
        away[axis] =
            duet__storage_initial(places, 1, axis) - duet__storage_initial(places, 0, axis);
        square += away[axis] * away[axis];
    }
    for (unsigned axis = 0; axis < 3; axis++) {
        double pull = away[axis] / pow(square, 1.5), mass = duet__storage_initial(places, 1, 3);
        double speed = duet__storage_initial(speeds, 0, axis) + 0.01 * (1 + mass) / 2 * pull;
        double place = duet__storage_initial(places, 0, axis) + 0.01 * speed;
        g_assert_cmpfloat_with_epsilon(duet__storage_value(speeds, 0, axis), speed, 1e-14);
        g_assert_cmpfloat_with_epsilon(duet__storage_value(&data->matrices[1], 0, axis), place,
                                       1e-14);
    }
    recorded_nbody.discard(data);
}

/* The momentum that one body gains another one loses. */
static void test_momentum(void)
{
    struct duet__problem problem = problem_of(150, 20, 'd', 2);
    struct duet__tiled_data *data = compute_right(&recorded_nbody, &problem);
    const struct duet__storage *places = &data->matrices[0], *speeds = &data->matrices[SPEEDS];
    for (unsigned axis = 0; axis < 3; axis++) {
        double gained = 0;
        for (uint64_t i = 0; i < 150; i++)
            gained +=
                (1 + duet__storage_initial(places, i, 3)) *
                (duet__storage_value(speeds, i, axis) - duet__storage_initial(speeds, i, axis));
        g_assert_cmpfloat_with_epsilon(gained, 0, 1e-12);
    }
    recorded_nbody.discard(data);
}

static void test_compute(void)
{
    static const uint64_t edges[][2] = {{1, 1}, {100, 100}, {130, 11}, {200, 70}, {10, 1}};
    for (size_t i = 0; i < G_N_ELEMENTS(edges) * 6; i++) {
        struct duet__problem problem =
            problem_of(edges[i / 6][0], edges[i / 6][1], i % 2 ? 's' : 'd', i % 3);
        recorded_nbody.discard(compute_right(&recorded_nbody, &problem));
    }
}

static void test_damage(void)
{
    struct duet__problem problem = problem_of(100, 30, 'd', 0);
    void *data = compute_right(&recorded_nbody, &problem);
    check_finds(&recorded_nbody, &problem, data, 0, 0, 0, 1e-13);
    check_finds(&recorded_nbody, &problem, data, 0, 99, 3, 1e-13);
    check_finds(&recorded_nbody, &problem, data, 0, 50, 2, NAN);
    ((struct duet__tiled_data *)data)->iterations = 6;
    bool passes;
    judged(&recorded_nbody, data, &passes);
    g_assert_false(passes);
    recorded_nbody.discard(data);
}

static void test_check(void)
{
    struct duet__problem problem = problem_of(1000, 7, 'd', 0);
    FAILS(recorded_nbody.check(&problem, hear()), DUET_EINVAL,
          "makes 143 of them, 1 to 128 are possible: use a tile of 8 "
          "to 1000");
}

TEST_MAIN(test_tasks, test_two, test_momentum, test_compute, test_damage, test_check)
