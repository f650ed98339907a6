/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of the fit: runs made with a known model, which has to be found again. */
#include "calibrate/testing_model.h"

static const struct duet_sharing sizes = {8 * MIB, 0};

/* Returns the relative distance. */
static double distance(double value, double right)
{
    return fabs(value / right - 1);
}

/* Checks that all kernels of a run are predicted within `bound`; the one with by far the fewest
 * executions, one a column of tiles, within twice that. */
static void assert_predicts(const struct duet__model *model, const struct made *made, double bound)
{
    double ratio[KERNELS];
    predict(model, made, ratio);
    for (int k = 0; k < KERNELS; k++) {
        if (!(fabs(ratio[k] - 1) <= bound))
            g_test_message("%s: %g", kernel_names[k], ratio[k]);
        g_assert_cmpfloat(fabs(ratio[k] - 1), <=, k == POTRF ? 2 * bound : bound);
    }
}

static void free_all(struct made *made, size_t count, struct duet__model *model)
{
    for (size_t i = 0; i < count; i++)
        made_free(&made[i]);
    duet__model_fini(model);
    duet__model_fini(model);
}

/* Without noise the model is found again, up to the effect of the prior (spread 0.001). */
static void test_exact(void)
{
    struct made made[3];
    struct duet__model model;
    make_run(&made[0], (struct plan){.workers = 1, .tiles = 16});
    make_run(&made[1], (struct plan){.workers = 1, .tiles = 4});
    make_run(&made[2], (struct plan){.workers = 1, .tiles = 20}); /* not seen by the fit */
    fit_runs(made, 2, &sizes, &model);
    g_assert_cmpuint(model.sharing.shared_bytes, ==, sizes.shared_bytes);
    for (int k = 0; k < KERNELS; k++) {
        const struct duet__point *point = point_of(&model, k);
        g_assert_cmpfloat(distance(point->base_s, truth[k].base_s), <, 0.001);
        g_assert_cmpfloat(distance(point->memory_s, truth[k].memory_s), <, 0.005);
        g_assert_cmpfloat(point->noise, <, 0.001);
        g_assert_cmpuint(point->rejected, ==, 0);
        g_assert_cmpfloat(point->size, ==, 256);
        g_assert_cmpfloat(point->busy_ratio, ==, 1);
    }
    assert_predicts(&model, &made[2], 0.001);
    g_assert_cmpuint(model.quality_count, ==, KERNELS);
    for (size_t i = 0; i < model.quality_count; i++)
        g_assert_cmpfloat(model.quality[i].error.execution, <, 0.01);
    free_all(made, 3, &model);
}

/* With noise as on a real machine, other sizes of the problem, with other misses, are predicted. */
static void test_noise(void)
{
    struct made made[6];
    struct duet__model model;
    for (uint32_t i = 0; i < 3; i++)
        make_run(&made[i], (struct plan){.workers = 1,
                                         .tiles = i == 0 ? 5 : 14,
                                         .noise = 0.05,
                                         .outliers = 0.01,
                                         .factor = 10,
                                         .poisoned = -1,
                                         .drift = 0.02,
                                         .seed = i + 1});
    make_run(&made[3], (struct plan){.workers = 1, .tiles = 24, .drift = 0.02});
    make_run(&made[4], (struct plan){.workers = 1, .tiles = 4, .drift = 0.02});
    make_run(&made[5], (struct plan){.workers = 1, .tiles = 8, .drift = 0.02});
    fit_runs(made, 3, &sizes, &model);
    g_assert_cmpfloat(distance(point_of(&model, GEMM)->memory_s, truth[GEMM].memory_s), <, 0.1);
    g_assert_cmpfloat(distance(point_of(&model, GEMM)->base_s, truth[GEMM].base_s), <, 0.05);
    g_assert_cmpfloat(distance(point_of(&model, GEMM)->noise, 0.05), <, 0.1);
    for (int k = 0; k < KERNELS; k++) {
        uint64_t put = made[0].outliers[k] + made[1].outliers[k] + made[2].outliers[k];
        g_assert_cmpuint(point_of(&model, k)->rejected, ==, put);
    }
    /* the rarest kernel has 33 executions: 5 % of noise leave an error of 1 % in its mean */
    for (int i = 3; i < 6; i++)
        assert_predicts(&model, &made[i], 0.03);
    for (size_t i = 0; i < model.quality_count; i++) {
        const struct duet__quality *quality = &model.quality[i];
        g_assert_cmpfloat(fabs(quality->error.sum), <, 0.03);
        g_assert_cmpfloat(quality->error.execution, <, 0.06);
        g_assert_cmpfloat(quality->error.execution, >, 0.01);
        if (!strcmp(quality->kernel, "dgemm")) /* most of its spread is explained by the cache */
            g_assert_cmpfloat(quality->point.noise, <,
                              quality->point.deviation_s / quality->point.mean_s);
    }
    free_all(made, 6, &model);
}

/* Neighbours, and a memory that is too slow for all. */
static void test_busy(void)
{
    for (int slow = 0; slow < 2; slow++) {
        struct made made[3];
        struct duet__model model;
        /* a tile from memory takes 350 us then, and a task with two of them 700 us */
        struct duet_sharing sharing = {8 * MIB, slow ? 1.5e9 : 0};
        struct plan plan = {.workers = 1,
                            .tiles = 14,
                            .sharing = sharing,
                            .noise = 0.02,
                            .busy_ratio = 1.2,
                            .seed = 7};
        make_run(&made[0], plan);
        plan.workers = 2;
        make_run(&made[1], plan);
        plan.tiles = 18;
        plan.noise = 0;
        make_run(&made[2], plan);
        fit_runs(made, 2, &sharing, &model);
        for (int k = 0; k < KERNELS && !slow; k++)
            g_assert_cmpfloat(distance(point_of(&model, k)->busy_ratio, 1.2), <, 0.02);
        assert_predicts(&model, &made[2], 0.03);
        const struct duet__quality *gemm = &model.quality[0]; /* "dgemm" */
        uint64_t samples = 0;
        for (int i = 0; i < DUET__CONDITIONS; i++)
            samples += gemm->conditions[i].count;
        g_assert_cmpuint(samples, ==, gemm->point.samples);
        g_assert_cmpuint(gemm->conditions[0].count, >, 0);
        g_assert_cmpuint(gemm->conditions[DUET__CONDITION_BUSY].count, >, 0);
        g_assert_cmpfloat(gemm->conditions[DUET__CONDITION_BUSY].mean, >, gemm->conditions[0].mean);
        free_all(made, 3, &model);
    }
}

/* Executions that lost much time beside others are outliers, and tell nothing of neighbours. */
static void test_busy_stalled(void)
{
    struct made made[2];
    struct duet__model model;
    struct plan plan = {.workers = 1, .tiles = 12, .noise = 0.02, .seed = 7};
    make_run(&made[0], plan);
    plan = (struct plan){.workers = 2, .tiles = 14, .noise = 0.02, .busy_ratio = 0.95, .seed = 7};
    plan.outliers = 0.02;
    plan.factor = 1000;
    plan.poisoned = GEMM;
    make_run(&made[1], plan);
    fit_runs(made, 2, &sizes, &model);
    g_assert_cmpuint(made[1].outliers[GEMM], >, 0);
    g_assert_cmpuint(point_of(&model, GEMM)->rejected, ==, made[1].outliers[GEMM]);
    const struct duet__quality *gemm = &model.quality[0];
    double out_s = 0;
    for (guint i = 0; i < made[1].events->len; i++) {
        const struct duet_event *event = &g_array_index(made[1].events, struct duet_event, i);
        const double seconds = event->end_s - event->start_s;
        out_s += event->kernel == GEMM && seconds > 100 * gemm->point.mean_s ? seconds : 0;
    }
    g_assert_cmpfloat(out_s, >, 0.8 * gemm->all_s);
    g_assert_cmpfloat(distance(gemm->rejected_s, out_s), <, 1e-9);
    g_assert_cmpfloat(distance(point_of(&model, GEMM)->busy_ratio, 0.95), <, 0.02);
    free_all(made, 2, &model);
}

/* First writes are blamed for their outliers, but not if every execution writes first, nor in
 * disturbed runs. */
static void test_first_writes(void)
{
    enum { SLOW, DISTURBED, ALL_FIRST, CASES };
    for (int which = SLOW; which < CASES; which++) {
        struct made made;
        struct duet__model model;
        make_run(&made, (struct plan){.workers = 1, .tiles = 14, .noise = 0.02, .seed = 7});
        for (guint i = 0, gemms = 0; i < made.events->len; i++) {
            struct duet_event *event = &g_array_index(made.events, struct duet_event, i);
            if (event->kernel == GEMM && gemms++ < 13 * 12 / 2) /* of the first step */
                event->end_s += 10 * (event->end_s - event->start_s);
        }
        for (guint i = 0; i < made.accesses->len && which == ALL_FIRST; i++)
            g_array_index(made.accesses, struct duet_trace_access, i).handle = 1000 + i;
        made.observation.disturbed = which == DISTURBED;
        fit_runs(&made, 1, &sizes, &model);
        const struct duet__quality *gemm = &model.quality[0];
        g_assert_cmpuint(gemm->point.rejected, ==, 13 * 12 / 2);
        g_assert_cmpfloat(gemm->fresh_s, ==, which == SLOW ? gemm->rejected_s : 0);
        free_all(&made, 1, &model);
    }
}

/* Neighbours cannot make an execution twice as fast: such times have another cause. */
static void test_busy_absurd(void)
{
    struct made made[2];
    struct duet__model model;
    make_run(&made[0], (struct plan){.workers = 1, .tiles = 14});
    make_run(&made[1], (struct plan){.workers = 2, .tiles = 14, .busy_ratio = 0.5});
    fit_runs(made, 2, &sizes, &model);
    g_assert_cmpfloat(point_of(&model, GEMM)->busy_ratio, ==, 1);
    free_all(made, 2, &model);
}

/* Runs on all workers alone give base and misses. */
static void test_only_busy(void)
{
    struct made made[2];
    struct duet__model model;
    make_run(&made[0], (struct plan){.workers = 2, .tiles = 16, .busy_ratio = 1.3, .noise = 0.02});
    make_run(&made[1], (struct plan){.workers = 2, .tiles = 10, .busy_ratio = 1.3});
    fit_runs(made, 1, &sizes, &model);
    g_assert_cmpfloat(point_of(&model, GEMM)->busy_ratio, ==, 1);
    g_assert_cmpfloat(distance(point_of(&model, GEMM)->base_s, 1.3 * truth[GEMM].base_s), <, 0.03);
    assert_predicts(&model, &made[1], 0.03);
    free_all(made, 2, &model);
}

/* One kernel that was disturbed, and only that one. */
static void test_poisoned(void)
{
    static const double scales[] = {1, 0.02};
    for (size_t i = 0; i < G_N_ELEMENTS(scales); i++) {
        struct made made[2];
        struct duet__model model;
        struct plan plan = {.workers = 1,
                            .tiles = 16,
                            .noise = 0.03,
                            .outliers = 0.05,
                            .factor = 20,
                            .poisoned = GEMM,
                            .scale = scales[i]};
        make_run(&made[0], plan);
        plan.outliers = 0;
        make_run(&made[1], plan);
        fit_runs(made, 1, &sizes, &model);
        for (int k = 0; k < KERNELS; k++)
            g_assert_cmpuint(point_of(&model, k)->rejected, ==, made[0].outliers[k]);
        g_assert_cmpuint(point_of(&model, GEMM)->rejected, >, 10);
        assert_predicts(&model, &made[1], 0.02);
        free_all(made, 2, &model);
    }
}

/* The size of the cache is found, whatever was guessed; if the data does not tell, the guess
 * stays. */
static void test_sharing(void)
{
    for (unsigned i = 0; i < 3; i++) {
        struct made made[2];
        struct duet__model model;
        struct duet_sharing real = {(4U << i) * MIB, 0}, guess = {32 * MIB, 0};
        for (uint32_t r = 0; r < 2; r++)
            make_run(&made[r], (struct plan){.workers = 1,
                                             .tiles = r ? 6 : 16,
                                             .sharing = real,
                                             .noise = 0.05,
                                             .outliers = 0.01,
                                             .factor = 4,
                                             .poisoned = -1,
                                             .seed = 3 + r});
        fit_runs(made, 2, &guess, &model);
        /* steps of the search are factors of the square root of two */
        g_assert_cmpfloat((double)model.sharing.shared_bytes, >, 0.7 * (double)real.shared_bytes);
        g_assert_cmpfloat((double)model.sharing.shared_bytes, <, 1.42 * (double)real.shared_bytes);
        duet__model_fini(&model);
        fit_runs(made, 2, &(struct duet_sharing){0}, &model);
        g_assert_cmpuint(model.sharing.shared_bytes, ==, 0);
        g_assert_cmpfloat(point_of(&model, GEMM)->memory_s, ==, 0);
        free_all(made, 2, &model);
    }
}

/* Executions are predicted from other runs, if there are enough runs. */
static void test_by_run(void)
{
    struct made made[2];
    struct duet__recorded_run runs[2];
    struct duet__model model;
    for (int r = 0; r < 2; r++) {
        make_run(&made[r], (struct plan){.workers = 1, .tiles = 12, .scale = r ? 1.25 : 1});
        runs[r] = made[r].observation;
    }
    struct duet__model_options options = {.sharing = sizes, .folds = 2};
    g_assert_cmpint(duet__model_fit(runs, 2, &options, &model, NULL), ==, 0);
    for (size_t i = 0; i < model.quality_count; i++) {
        /* one run is predicted a quarter too high, the other a fifth too low, and some percent by
         * the prior */
        g_assert_cmpfloat(model.quality[i].error.execution, >, 0.19);
        g_assert_cmpfloat(model.quality[i].error.execution, <, 0.26);
        g_assert_cmpfloat(fabs(model.quality[i].error.sum), <, 0.02);
    }
    free_all(made, 2, &model);
}

/* Equal runs give equal figures, to the last bit. */
static void test_deterministic(void)
{
    struct made made[2];
    struct duet__model models[2];
    for (uint32_t r = 0; r < 2; r++)
        make_run(&made[r], (struct plan){.workers = r + 1, .tiles = 10, .noise = 0.05, .seed = r});
    for (int m = 0; m < 2; m++)
        fit_runs(made, 2, &sizes, &models[m]);
    for (int k = 0; k < KERNELS; k++) {
        const struct duet__point *a = point_of(&models[0], k), *b = point_of(&models[1], k);
        g_assert_cmpfloat(a->mean_s, ==, b->mean_s);
        g_assert_cmpfloat(a->base_s, ==, b->base_s);
        g_assert_cmpfloat(a->memory_s, ==, b->memory_s);
        g_assert_cmpfloat(a->busy_ratio, ==, b->busy_ratio);
        g_assert_cmpfloat(a->noise, ==, b->noise);
        g_assert_cmpfloat(models[0].quality[k].error.sum, ==, models[1].quality[k].error.sum);
    }
    duet__model_fini(&models[1]);
    free_all(made, 2, &models[0]);
}

/* Workloads are kept apart, runs of one workload are put together, sizes are points of a curve. */
static void test_contexts(void)
{
    struct made made[4];
    struct duet__model model;
    make_run(&made[0], (struct plan){.workers = 1, .tiles = 6, .context = "one"});
    make_run(&made[1], (struct plan){.workers = 1, .tiles = 6, .context = "two", .scale = 2});
    make_run(&made[2], (struct plan){.workers = 1, .tiles = 8, .context = "one"});
    make_run(&made[3], (struct plan){.workers = 1, .tiles = 6, .context = "one", .edge = 100});
    fit_runs(made, 4, &sizes, &model);
    g_assert_cmpuint(model.calibration.count, ==, 2 * KERNELS);
    g_assert_cmpuint(model.quality_count, ==, 3 * KERNELS);
    for (size_t i = 0; i < model.calibration.count; i++) {
        const struct duet__curve *curve = &model.calibration.curves[i];
        g_assert_cmpuint(curve->count, ==, strcmp(curve->context, "one") == 0 ? 2 : 1);
        if (strcmp(curve->context, "one") != 0 || strcmp(curve->kernel, "dpotrf") != 0)
            continue;
        g_assert_cmpuint(curve->points[0].samples, ==, 6);
        g_assert_cmpfloat(curve->points[0].size, ==, 100);
        g_assert_cmpuint(curve->points[1].samples, ==, 6 + 8);
        g_assert_cmpfloat(curve->points[1].size, ==, 256);
    }
    for (size_t i = 0; i < model.quality_count; i++)
        g_assert_cmpfloat(model.quality[i].point.mean_s, >, 0);
    free_all(made, 4, &model);
}

/* A kernel that was measured alone only, or beside others but for one execution at the end of a
 * run, is uncertain on other numbers of workers. */
static void test_other_neighbours(void)
{
    struct made made[2];
    for (unsigned i = 0; i < 2; i++)
        make_run(&made[i], (struct plan){.workers = 2 - i, .tiles = 12});
    for (guint last = made[0].events->len; last-- > 0;) {
        struct duet_event *event = &g_array_index(made[0].events, struct duet_event, last);
        if (event->kernel != GEMM)
            continue;
        event->start_s += 1;
        event->end_s += 1;
        break;
    }
    for (unsigned i = 0; i < 3; i++) {
        OWNED(duet__model_fini) struct duet__model model;
        fit_runs(&made[i % 2], i ? 1 : 2, &sizes, &model);
        g_assert_true((point_of(&model, GEMM)->uncertainty > 0.12) == (i > 0));
    }
    for (unsigned i = 0; i < 2; i++)
        made_free(&made[i]);
}

TEST_MAIN(test_exact, test_noise, test_busy, test_busy_stalled, test_first_writes, test_busy_absurd,
          test_only_busy, test_poisoned, test_sharing, test_by_run, test_deterministic,
          test_contexts, test_other_neighbours)
