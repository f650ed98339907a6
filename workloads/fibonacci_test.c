/* SPDX-License-Identifier: Apache-2.0 */
/* fibonacci: counts, the number it finds, refused problems. Runs on all devices: run_test.c. */
#include <duet/trace.h>

#include "workloads/test_run.h"

static struct duet__problem of(uint64_t n, uint64_t tile)
{
    return (struct duet__problem){.n = n, .tile = tile, .precision = 'd'};
}

/* Tasks and additions are as many as stated; the run computes the right number. */
static void test_counts(void)
{
    static const struct {
        uint64_t n, tile, tasks, flops;
    } cases[] = {{1, 1, 1, 0},
                 {2, 1, 3, 1},
                 {5, 1, 15, 7},
                 {10, 4, 41, 88},
                 {30, 15, 3193, 1346268}};
    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        const struct duet__workload *w = duet__workload_find("fibonacci");
        struct duet__problem problem = of(cases[i].n, cases[i].tile);
        struct duet_runtime *runtime = open_runtime(&(struct place){.cpus = 2});
        struct duet__verdict verdict;
        struct duet_stats stats;
        g_assert_cmpint(w->check(&problem, NULL), ==, DUET_OK);
        g_assert_cmpint(w->generate(w, &problem, &problem.data, NULL), ==, DUET_OK);
        w->fill(problem.data, NULL);
        g_assert_cmpint(once(w, runtime, &problem), ==, DUET_OK);
        duet_stats(runtime, &stats);
        g_assert_cmpuint(stats.tasks, ==, cases[i].tasks);
        g_assert_cmpuint(w->tasks(&problem), ==, cases[i].tasks);
        g_assert_cmpfloat(w->flops(&problem), ==, (double)cases[i].flops);
        g_assert_cmpint(w->verify(problem.data, NULL, &verdict, NULL), ==, DUET_OK);
        g_assert_cmpfloat(verdict.residual, ==, 0);
        w->fill(problem.data, NULL); /* a result that was not computed is not right */
        g_assert_cmpint(w->verify(problem.data, NULL, &verdict, NULL), ==, DUET_OK);
        g_assert_cmpfloat(verdict.residual, >=, verdict.threshold);
        g_assert_cmpint(duet_close(runtime), ==, DUET_OK);
        w->discard(problem.data);
    }
}

static void refuse(struct duet__problem problem, const char *text)
{
    g_assert_cmpint(duet__workload_find("fibonacci")->check(&problem, hear()), ==, DUET_EINVAL);
    g_test_message("%s", heard());
    SAYS(text);
}

static void test_check(void)
{
    refuse(of(0, 1), "the Fibonacci number 0 by calls of up to 1");
    refuse(of(91, 80), "an n of 1 to 90");
    refuse(of(10, 0), "a tile of 1 to n");
    refuse(of(10, 11), "a tile of 1 to n");
    refuse(of(50, 3), "tasks are too many: at most 100000000 are possible, use a larger tile");
}

TEST_MAIN(test_counts, test_check)
