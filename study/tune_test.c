/* SPDX-License-Identifier: Apache-2.0 */
/* Searches with made-up runs: their results, and how much is run for them. */
#include "study/tune.h"

#include <math.h>
#include <string.h>

#include <glib/gstdio.h>

#include "base/clock.h"

enum { TILES = 5, POLICIES = 8, WINDOWS = 4, ALL = TILES * POLICIES * WINDOWS };
enum { BEST = (3 * POLICIES + 5) * WINDOWS + 2, QUICK = BEST + 1 };

static const char policies[] = "eager,ws,data-aware,locality-aware,heft,no-prio,cp,dmdas";

/* A search under way, and the policy whose runs alone have results; 0: all have. */
struct trial {
    struct duet__tune tune;
    struct duet__plan plan;
    struct duet__store store;
    uint32_t only;
};

/*
 * Returns the seconds of a setting. The best is tile 3, policy 5, window 2, by 1 % and more. Small
 * problems take small tiles for much better, and policy 4 for the best; QUICK runs faster than it
 * is simulated.
 */
static double seconds_of(enum duet__fidelity fidelity, uint32_t setting)
{
    const uint32_t tile = setting / WINDOWS / POLICIES, window = setting % WINDOWS;
    const uint32_t policy = setting / WINDOWS % POLICIES;
    const double rough = fidelity < DUET__WHOLE;
    return 1 + 0.02 * fabs(tile - 3.0) + rough * 0.5 * tile + 0.01 * fabs(window - 2.0) +
           (policy == 5   ? 0.2 * rough
            : policy == 4 ? 0.03 * (1 - rough)
                          : 0.05 + 0.01 * policy) -
           (fidelity == DUET__RUN && setting == QUICK ? 0.1 : 0);
}

/* Makes up a run: a duet__execute_fn. */
static void execute(uint64_t job, FILE *result, void *data)
{
    const struct trial *trial = data;
    const struct duet__study *study = trial->tune.study;
    const uint64_t cell = job % study->count;
    int fidelity = DUET__FIDELITIES - 1;
    uint32_t setting;
    while (((struct duet__product *)study->products->pdata[fidelity])->first > cell)
        fidelity--;
    setting = (uint32_t)(cell - duet__study_product(study, cell)->first);
    if (fidelity == DUET__USUAL || fidelity == DUET__USUAL_RUN)
        fputs("{\"makespan_s\": 3, \"gflops\": 2, \"best_s\": 1}", result);
    else if (trial->only && setting / WINDOWS % POLICIES != trial->only)
        fputs("{\"status\": 2, \"error\": \"no such runs\"}", result);
    else
        fprintf(result, "{\"makespan_s\": %.17g}", seconds_of(fidelity, setting));
}

static int check(const struct duet__problem *problem, struct duet_message *message)
{
    return 0;
}

static uint64_t count_tasks(const struct duet__problem *problem)
{
    return UINT64_C(1) << 60; /* no budget has time for all */
}

static const struct duet__workload workload = {.name = "made-up",
                                               .check = check,
                                               .tasks = count_tasks};

static void add(struct trial *trial, const char *name, const char *values)
{
    if (duet__study_add(trial->tune.study->products->pdata[0],
                        duet__option_find(name, DUET__IN_TUNE), values, NULL))
        g_error("%s takes no %s", name, values);
}

/* Begins a search on a problem of size n with the results in a file, NULL: none. */
static void begin(struct trial *trial, uint64_t n, const char *path)
{
    g_autofree char *size = g_strdup_printf("%" G_GUINT64_FORMAT, n);
    *trial = (struct trial){.tune = {.study = duet__study_new(),
                                     .plan = &trial->plan,
                                     .store = &trial->store,
                                     .quiet = true,
                                     .start_s = duet__clock_s(),
                                     .budget_s = 1e6,
                                     .verified = 3,
                                     .usual_tile = 5},
                            .plan = {.study = NULL,
                                     .command = "simulate",
                                     .version = "1",
                                     .seed = 1,
                                     .part = 1,
                                     .parts = 1,
                                     .shards = 1,
                                     .jobs = 2,
                                     .execute = execute,
                                     .data = trial}};
    trial->plan.study = trial->tune.study;
    duet__request_init(&trial->tune.request);
    trial->tune.request.workload = &workload;
    trial->tune.request.problem.n = n;
    add(trial, "n", size);
    add(trial, "tile", "1..5");
    add(trial, "policy", policies);
    add(trial, "gpu-window", "1..4");
    g_assert_cmpint(duet__study_number(trial->tune.study, NULL), ==, 0);
    WORKS(duet__store_open(&trial->store, path, DUET__STORE_WRITE, hear()));
}

static void end(struct trial *trial)
{
    struct duet__study *study = trial->tune.study;
    duet__tune_fini(&trial->tune);
    g_assert_cmpint(duet__store_close(&trial->store, NULL), ==, 0);
    duet__study_free(study);
}

enum { SMALL = 10, LARGE = 100 }; /* sizes whose half, or eighth, has too few tiles */

/* The search finds the best by few large simulations, although no small one would name it. */
static void test_search(void)
{
    OWNED(end) struct trial trial;
    const uint64_t *made = trial.tune.made;
    begin(&trial, LARGE, NULL);
    g_assert_cmpint(duet__tune_search(&trial.tune), ==, 0);
    g_assert_cmpuint(trial.tune.chosen->setting, ==, BEST);
    g_assert_cmpfloat(trial.tune.chosen->predicted_s, ==, seconds_of(DUET__WHOLE, BEST));
    g_assert_cmpuint(trial.tune.chosen->reps, ==, 8); /* no spread: 8 are enough */
    g_assert_cmpfloat(trial.tune.usual.predicted_s, ==, 3);
    g_assert_cmpfloat(trial.tune.usual.flops, ==, 6e9);
    g_assert_false(trial.tune.cut);
    g_assert_cmpuint(made[DUET__EIGHTH], ==, 0);
    g_assert_cmpuint(made[DUET__QUARTER], ==, ALL);
    g_assert_cmpuint(made[DUET__HALF], ==, TILES * 4);
    g_assert_cmpuint(made[DUET__WHOLE], ==, trial.tune.found->len);
    g_assert_cmpuint(trial.tune.found->len, >, TILES * 2); /* those, and neighbours */
    g_assert_cmpuint(trial.tune.found->len, <, ALL / 2);
}

/* A search of one size simulates everything once; a second one finds it all in the file. */
static void test_one_level(void)
{
    g_autofree char *folder = g_dir_make_tmp(NULL, NULL);
    g_autofree char *path = g_build_filename(folder, "t.db", NULL);
    struct trial first, second;
    begin(&first, SMALL, path);
    g_assert_cmpint(duet__tune_search(&first.tune), ==, 0);
    g_assert_cmpuint(first.tune.found->len, ==, ALL);
    g_assert_cmpuint(first.tune.made[DUET__WHOLE], ==, ALL);
    g_assert_cmpuint(first.tune.chosen->setting, ==, BEST);
    end(&first);
    begin(&second, SMALL, path);
    g_assert_cmpint(duet__tune_search(&second.tune), ==, 0);
    for (int i = 0; i < DUET__FIDELITIES; i++)
        g_assert_cmpuint(second.tune.made[i], ==, 0);
    g_assert_cmpuint(second.tune.chosen->setting, ==, BEST);
    g_assert_cmpuint(second.tune.chosen->reps, ==, 8);
    end(&second);
    g_assert_cmpint(g_unlink(path), ==, 0);
    g_assert_cmpint(g_rmdir(folder), ==, 0);
}

/* Settings that are others in other words are left out: blocks as large as the tile are none, and
   without GPUs their window makes no difference. */
static void test_repeated(void)
{
    enum { BLOCK = 3, PLACES = WINDOWS + 1, DIVISIONS = 2 * (TILES - BLOCK) + BLOCK };
    OWNED(end) struct trial trial;
    begin(&trial, SMALL, NULL);
    trial.tune.blocks = true;
    add(&trial, "gpus", "0,4");
    add(&trial, "param", "block=0,3");
    g_assert_cmpint(duet__study_number(trial.tune.study, NULL), ==, 0);
    g_assert_cmpint(duet__tune_search(&trial.tune), ==, 0);
    g_assert_cmpuint(trial.tune.found->len, ==, POLICIES * PLACES * DIVISIONS);
    g_assert_cmpuint(trial.tune.repeated, ==, 4 * ALL - trial.tune.found->len);
    g_assert_cmpuint(trial.tune.barred, ==, 0);
}

/* A setting without a result goes no further, and is none that can be chosen. */
static void test_failures(void)
{
    struct trial some, none;
    begin(&some, LARGE, NULL);
    some.only = 4;
    g_assert_cmpint(duet__tune_search(&some.tune), ==, 0);
    g_assert_cmpuint(some.tune.chosen->setting, ==, BEST - WINDOWS);
    g_assert_cmpuint(some.tune.made[DUET__HALF], ==, TILES * 2);
    g_assert_nonnull(strstr(some.tune.left_out, "no such runs"));
    end(&some);
    begin(&none, LARGE, NULL);
    none.only = POLICIES;
    g_assert_cmpint(duet__tune_search(&none.tune), ==, 0);
    g_assert_cmpuint(none.tune.found->len, ==, 0);
    g_assert_cmpuint(none.tune.failed, ==, ALL);
    end(&none);
}

/* Without any time one setting is simulated in each size, and chosen. */
static void test_late(void)
{
    OWNED(end) struct trial trial;
    begin(&trial, LARGE, NULL);
    trial.tune.budget_s = 1e-9;
    g_assert_cmpint(duet__tune_search(&trial.tune), ==, 0);
    g_assert_true(trial.tune.cut);
    g_assert_cmpuint(trial.tune.found->len, ==, 1);
    g_assert_cmpuint(trial.tune.made[DUET__QUARTER], ==, 1);
    g_assert_cmpuint(trial.tune.made[DUET__WHOLE], ==, 1);
    g_assert_cmpuint(trial.tune.chosen->reps, ==, 0);
}

/* Runs decide among the best few. */
static void test_runs(void)
{
    OWNED(end) struct trial trial;
    begin(&trial, SMALL, NULL);
    g_assert_cmpint(duet__tune_search(&trial.tune), ==, 0);
    trial.plan.command = "run";
    g_assert_cmpint(duet__tune_run(&trial.tune), ==, 0);
    g_assert_cmpuint(trial.tune.made[DUET__RUN], ==, 4 * trial.tune.run_reps);
    g_assert_cmpuint(trial.tune.chosen->setting, ==, QUICK);
    g_assert_cmpfloat(trial.tune.chosen->measured_s, ==, seconds_of(DUET__RUN, QUICK));
    g_assert_cmpfloat(trial.tune.usual.measured_s, ==, 3);
}

TEST_MAIN(test_search, test_one_level, test_repeated, test_failures, test_late, test_runs)
