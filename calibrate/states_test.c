/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of the machine's state: whole runs that are slower or faster. */
#include "calibrate/testing_model.h"

enum { RUNS = 7 };

static const struct duet_sharing sizes = {8 * MIB, 0};

/* States of 7 runs; in two a neighbour has the machine's memory. The median of log is 0. */
static const double states[RUNS] = {1, 1.5, 0.98, 1.02, 1.6, 1, 0.97};

/* `outliers`: share of the executions of the first `poisoned` runs. */
static void make_runs(struct made *made, uint64_t item, double outliers, uint32_t poisoned,
                      double factor)
{
    for (uint32_t i = 0; i < RUNS; i++) {
        make_run(&made[i], (struct plan){.workers = 1,
                                         .tiles = 8,
                                         .noise = 0.02,
                                         .scale = states[i],
                                         .outliers = i < poisoned ? outliers : 0,
                                         .factor = factor,
                                         .poisoned = -1,
                                         .seed = i + 1});
        made[i].observation.repeats = item;
    }
}

static void free_runs(struct made *made, struct duet__model *model)
{
    for (size_t i = 0; i < RUNS; i++)
        made_free(&made[i]);
    duet__model_fini(model);
}

/*
 * The fit finds kernel times in the median state, which is 1: within 2 % of noise by the root of 8
 * executions in each of the runs, for the kernel with the fewest. Without knowing equal runs it is
 * nearer to the mean of the states, 1.15 (some slow executions are outliers).
 */
static void test_median(void)
{
    for (unsigned known = 0; known < 2; known++) {
        struct made made[RUNS];
        struct duet__model model;
        double ratio[KERNELS];
        make_runs(made, known, 0, 0, 1);
        fit_runs(made, RUNS, &sizes, &model);
        predict(&model, &made[0], ratio);
        for (int k = 0; k < KERNELS; k++) {
            const struct duet__point *point = point_of(&model, k);
            if (!known) {
                g_assert_cmpfloat(ratio[k], >, 1.03);
                continue;
            }
            g_assert_cmpfloat(fabs(ratio[k] - 1), <, 0.02);
            /* variations within a run remain: 2 %, not 60 */
            g_assert_cmpfloat(point->noise, <, 0.03);
        }
        free_runs(made, &model);
    }
}

/*
 * The distribution of the states is kept: of three times seven runs, the quantiles of the seven
 * states, within the noise of a run, and no drift, as all fifths of them are alike but for which of
 * the states they have. Runs that are like no other have the states of kernels that they share.
 * Outliers, which kernel times leave out, make all runs longer by the time that they take.
 */
static void check_distribution(bool equal, double outliers, double within)
{
    /* where no runs are equal, times are those of the mean of all states but 1.6, an outlier */
    const double factor = 3, longer = (1 + outliers * (factor - 1)) / (equal ? 1 : 1.08);
    enum { TIMES = 3 };
    struct made made[TIMES * RUNS];
    struct duet__model model;
    const struct duet__states *found = &model.calibration.states;
    double sorted[TIMES * RUNS];
    for (size_t i = 0; i < TIMES; i++)
        make_runs(made + i * RUNS, 1, outliers, RUNS, factor);
    for (size_t i = 0; i < TIMES * RUNS; i++) {
        sorted[i] = states[i % RUNS];
        if (!equal)
            made[i].observation.repeats = 0;
    }
    duet__sort(sorted, TIMES * RUNS);
    fit_runs(made, TIMES * RUNS, &sizes, &model);
    g_assert_cmpuint(found->runs, ==, TIMES * RUNS);
    for (size_t i = 0; i < DUET__STATES; i++) {
        double quantile = duet__quantile(sorted, TIMES * RUNS, (double)i / (DUET__STATES - 1));
        g_assert_cmpfloat(fabs(found->factor[i] / quantile - 1), <, within);
    }
    g_assert_cmpfloat(fabs(found->alone / longer - 1), <, within);
    g_assert_cmpfloat(found->busy, ==, found->alone); /* there are no runs on several workers */
    g_assert_cmpfloat(found->drift, <, 0.1);
    duet__model_fini(&model);
    for (size_t i = 0; i < TIMES * RUNS; i++)
        made_free(&made[i]);
}

static void test_distribution(void)
{
    check_distribution(true, 0, 0.03);
    check_distribution(true, 0.1, 0.08);
}

static void test_unlike(void)
{
    check_distribution(false, 0, 0.03);
}

/* Stalls of short kernels, which a fit keeps in their times, make no run longer beside that. */
static void test_stalls(void)
{
    struct made made[RUNS];
    struct duet__model model;
    for (uint32_t i = 0; i < RUNS; i++) {
        make_run(&made[i], (struct plan){.workers = 1,
                                         .tiles = 8,
                                         .noise = 0.02,
                                         .scale = 0.01,
                                         .outliers = 0.02,
                                         .factor = 3,
                                         .poisoned = -1,
                                         .seed = i + 1});
        made[i].observation.repeats = 1;
    }
    fit_runs(made, RUNS, &sizes, &model);
    g_assert_cmpfloat(fabs(model.calibration.states.alone - 1), <, 0.01);
    free_runs(made, &model);
}

/* Too few runs have no distribution of states. */
static void test_no_distribution(void)
{
    struct made made[RUNS];
    struct duet__model model;
    make_runs(made, 1, 0, 0, 1);
    fit_runs(made, RUNS, &sizes, &model);
    g_assert_cmpuint(model.calibration.states.runs, ==, 0);
    free_runs(made, &model);
}

/* Delayed executions do not change kernel times. */
static void test_outliers(void)
{
    struct made made[RUNS];
    struct duet__model model;
    double ratio[KERNELS];
    make_runs(made, 1, 0.05, 1, 20);
    fit_runs(made, RUNS, &sizes, &model);
    predict(&model, &made[5], ratio);
    for (int k = 0; k < KERNELS; k++)
        g_assert_cmpfloat(fabs(ratio[k] - 1), <, 0.02);
    free_runs(made, &model);
}

/* Two equal runs do not tell which is the usual one. */
static void test_few(void)
{
    struct made made[RUNS];
    struct duet__model model, unlike;
    make_runs(made, 1, 0, 0, 1);
    fit_runs(made, 2, &sizes, &model);
    made[0].observation.repeats = made[1].observation.repeats = 0;
    fit_runs(made, 2, &sizes, &unlike);
    for (int k = 0; k < KERNELS; k++)
        g_assert_cmpfloat(point_of(&model, k)->mean_s, ==, point_of(&unlike, k)->mean_s);
    duet__model_fini(&unlike);
    free_runs(made, &model);
}

/* Runs of other problems have states of their own: half the size is not half the state. */
static void test_items(void)
{
    struct made made[RUNS];
    struct duet__model model;
    double ratio[KERNELS];
    for (uint32_t i = 0; i < RUNS; i++) {
        make_run(&made[i], (struct plan){.workers = 1, .tiles = i % 2 ? 4 : 16, .seed = i + 1});
        made[i].observation.repeats = 1 + i % 2;
    }
    fit_runs(made, RUNS, &sizes, &model);
    for (unsigned i = 0; i < 2; i++) {
        predict(&model, &made[i], ratio);
        for (int k = 0; k < KERNELS; k++)
            g_assert_cmpfloat(fabs(ratio[k] - 1), <, 0.001);
    }
    free_runs(made, &model);
}

TEST_MAIN(test_median, test_distribution, test_unlike, test_stalls, test_no_distribution,
          test_outliers, test_few, test_items)
