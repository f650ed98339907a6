/* SPDX-License-Identifier: Apache-2.0 */
/* sort: counts and hints, lengths of lists, sorted results, and damage that is found. */
#include "workloads/test_recorder.h"

#include "workloads/tiles.c" /* NOLINT(bugprone-suspicious-include) */

#include "workloads/sort.c" /* NOLINT(bugprone-suspicious-include) */

#include "workloads/test_compute.h"

static const struct duet__setting sizes[] = {{"sizes", "fixed"},
                                             {"sizes", "uniform"},
                                             {"sizes", "bimodal"}};

enum { FIXED, UNIFORM, BIMODAL };

static struct duet__problem problem_of(uint64_t n, uint64_t tile, char precision, unsigned which)
{
    return set_as(n, tile, precision, &sizes[which], 1);
}

static void test_counts(void)
{
    struct duet__problem problem = problem_of(1010, 100, 's', UNIFORM);
    OWNED(recorder_end) struct duet_runtime *recorder = build_graph(&recorded_sort, &problem);
    g_assert_cmpuint(recorder_count(recorder, "ssort"), ==, 11);
    g_assert_cmpuint(recorder_bytes(recorder), ==, 4040);
    g_assert_cmpfloat(recorder_flops(recorder), ==, recorded_sort.flops(&problem));
    for (size_t i = 0; i < 11; i++) {
        const struct recorded *task = recorder_task(recorder, i);
        double m = (double)task->accesses[0].handle->rows;
        g_assert_cmpint(task->accesses[0].mode, ==, DUET_RW);
        g_assert_cmpfloat(task->complexity, ==, m);
        g_assert_cmpfloat(task->codelet->flops(task->args), ==, m > 1 ? m * (m - 1) / 2 : 1);
    }
}

/* Finds the shortest and longest of many lists, relative to the mean, and checks that they follow
 * each other. */
static void lengths(unsigned which, uint64_t seed, double *shortest, double *longest)
{
    enum { LISTS = 1000, MEAN = 4000 };
    struct duet__problem problem = problem_of((uint64_t)LISTS * MEAN, MEAN, 'd', which);
    problem.seed = seed;
    g_autofree uint64_t *begins = duet__uneven_cuts(&problem, parameters);
    *shortest = INFINITY;
    *longest = 0;
    g_assert_cmpuint(begins[0], ==, 0);
    g_assert_cmpuint(begins[LISTS], ==, problem.n);
    for (size_t i = 0; i < LISTS; i++) {
        g_assert_cmpuint(begins[i], <, begins[i + 1]);
        *shortest = fmin(*shortest, (double)(begins[i + 1] - begins[i]) / MEAN);
        *longest = fmax(*longest, (double)(begins[i + 1] - begins[i]) / MEAN);
    }
}

static void test_lengths(void)
{
    for (uint64_t seed = 1; seed <= 20; seed++) {
        double shortest, longest;
        lengths(FIXED, seed, &shortest, &longest);
        g_assert_cmpfloat(shortest, ==, 1);
        g_assert_cmpfloat(longest, ==, 1);
        lengths(UNIFORM, seed, &shortest, &longest);
        g_assert_cmpfloat_with_epsilon(shortest, 0.13, 0.02);
        g_assert_cmpfloat_with_epsilon(longest, 1.87, 0.08);
        lengths(BIMODAL, seed, &shortest, &longest);
        g_assert_cmpfloat_with_epsilon(longest / shortest, 11, 0.05);
    }
}

/* Lengths depend on the seed alone, down to lists of one element. */
static void test_seeds(void)
{
    struct duet__problem problem = problem_of(50, 1, 'd', BIMODAL), other = problem;
    uint64_t *ones = duet__uneven_cuts(&problem, parameters);
    for (uint64_t i = 0; i <= 50; i++)
        g_assert_cmpuint(ones[i], ==, i);
    free(ones);
    problem.n = other.n = 1000;
    problem.tile = other.tile = 10;
    other.seed++;
    g_autofree uint64_t *first = duet__uneven_cuts(&problem, parameters),
                        *again = duet__uneven_cuts(&problem, parameters),
                        *others = duet__uneven_cuts(&other, parameters);
    g_assert_cmpmem(first, 101 * sizeof *first, again, 101 * sizeof *again);
    g_assert_cmpint(memcmp(first, others, 101 * sizeof *first), !=, 0);
}

static void test_compute(void)
{
    static const uint64_t edges[][2] = {{1, 1}, {100, 100}, {1000, 30}, {500, 499}, {64, 1}};
    for (size_t i = 0; i < G_N_ELEMENTS(edges) * 6; i++) {
        struct duet__problem problem =
            problem_of(edges[i / 6][0], edges[i / 6][1], i % 2 ? 's' : 'd', i % 3);
        recorded_sort.discard(compute_right(&recorded_sort, &problem));
    }
}

static void test_damage(void)
{
    static const struct change changes[] = {{0, 0, 0, 1e-15}, {0, 999, 0, 1}, {0, 500, 0, NAN}};
    check_damage(&recorded_sort, problem_of(1000, 300, 'd', UNIFORM), changes,
                 G_N_ELEMENTS(changes));
}

static void test_failures(void)
{
    struct duet__problem problem = problem_of(100, 10, 'd', UNIFORM);
    check_failures(&recorded_sort, &problem, 1 + 10 + 10, NULL);
    recorded_sort.discard(NULL);
}

static void refuse(struct duet__problem problem, const char *text)
{
    FAILS(recorded_sort.check(&problem, hear()), DUET_EINVAL, text);
}

static void test_check(void)
{
    refuse(problem_of(0, 1, 'd', FIXED), "size n is 0");
    refuse(problem_of(10, 0, 'd', FIXED), "tile edge 0 is not possible");
    refuse(problem_of(10, 11, 'd', FIXED),
           "n = 10 in lists of 11 in the mean makes 0 of them, 1 to "
           "1000000 are possible: use a tile of 1 to 10");
    refuse(problem_of(5000000, 4, 'd', FIXED), "use a tile of 5 to 5000000");
    refuse(problem_of(UINT64_MAX, 1, 'd', FIXED), "use a tile of");
    refuse(problem_of(10, 1, 'q', FIXED), "precision 'q'");
}

TEST_MAIN(test_counts, test_lengths, test_seeds, test_compute, test_damage, test_failures,
          test_check)
