/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of the fit where there is little to fit: devices, single executions, streams of data. */
#include "calibrate/testing_model.h"

/* Adds an execution of a kernel, by itself, with up to two operands of `bytes`. */
static void add(struct made *made, int worker, int kernel, double work, double start_s,
                double seconds, unsigned operands, uint64_t bytes)
{
    struct duet_event event = {.kind = DUET_EVENT_TASK,
                               .worker = worker,
                               .kernel = (unsigned)kernel,
                               .id = made->events->len + 1,
                               .start_s = start_s,
                               .end_s = start_s + seconds,
                               .work = work};
    g_array_append_val(made->events, event);
    for (unsigned i = 0; i < operands; i++) {
        struct duet_trace_access access = {.task = event.id,
                                           .index = i,
                                           .handle = operands * event.id + i,
                                           .bytes = bytes,
                                           .reads = true,
                                           .writes = i == 1};
        g_array_append_val(made->accesses, access);
    }
}

static const struct duet__curve *curve_of(const struct duet__model *model, int kernel,
                                          const char *arch)
{
    const struct duet__curve *curve =
        duet__calibration_find(&model->calibration, kernel_names[kernel], arch);
    g_assert_nonnull(curve);
    return curve;
}

/* Vectors that are read once never are in a cache, so the cost of a miss cannot be told. */
static void test_stream(void)
{
    OWNED(made_free) struct made made;
    OWNED(duet__model_fini) struct duet__model model;
    struct duet_sharing sharing = {8 * MIB, 10e9};
    made_init(&made, 1, &sharing);
    for (int i = 0; i < 100; i++)
        add(&made, 0, GEMM, 2 * MIB, i, 1e-3 * (i % 2 ? 1.01 : 0.99), 2, MIB);
    made_observe(&made, "saxpy");
    fit_runs(&made, 1, &sharing, &model);
    const struct duet__point *point = point_of(&model, GEMM);
    /* memory gets the time by its bandwidth, the base the rest */
    g_assert_cmpfloat(fabs(point->memory_s / (2 * MIB / 10e9) - 1), <, 0.01);
    g_assert_cmpfloat(fabs((point->base_s + point->memory_s) / 1e-3 - 1), <, 1e-9);
    g_assert_cmpuint(model.quality[0].conditions[DUET__CONDITION_COLD].count, ==, 100);
    g_assert_cmpuint(model.sharing.shared_bytes, ==, 8 * MIB);
    g_assert_cmpfloat(model.sharing.bandwidth_Bps, ==, 10e9);
}

static void test_devices(void)
{
    OWNED(made_free) struct made made;
    OWNED(duet__model_fini) struct duet__model model;
    struct duet_sharing sharing = {8 * MIB, 10e9};
    made_init(&made, 2, &sharing);
    made.machine.workers[1].node = 1;
    made.machine.workers[1].arch = 1;
    for (int i = 0; i < 100; i++)
        add(&made, 1, GEMM, 1e6, i, i == 50 ? 1 : 1e-3 * (i % 2 ? 1.1 : 0.9), 2, MIB);
    made_observe(&made, "gemm");
    fit_runs(&made, 1, &sharing, &model);
    const struct duet__curve *curve = curve_of(&model, GEMM, "device");
    const struct duet__point *point = &curve->points[0];
    g_assert_cmpuint(curve->count, ==, 1);
    g_assert_cmpuint(point->samples, ==, 99);
    g_assert_cmpuint(point->rejected, ==, 1);
    g_assert_cmpfloat(fabs(point->mean_s - 1e-3), <, 2e-6);
    g_assert_cmpfloat(fabs(point->deviation_s - 1e-4), <, 2e-6);
    g_assert_cmpfloat(point->base_s, ==, 0);
    g_assert_cmpfloat(point->busy_ratio, ==, 0);
    g_assert_cmpfloat(fabs(point->noise - 0.1), <, 2e-3);
    g_assert_cmpfloat(model.quality[0].error.execution, <, 0.12);
}

/* Few executions give a mean and finite figures. */
static void test_few(void)
{
    for (unsigned count = 1; count < 15; count++) {
        OWNED(made_free) struct made made;
        OWNED(duet__model_fini) struct duet__model model;
        struct duet_sharing sharing = {8 * MIB, 10e9};
        double sum = 0;
        made_init(&made, 1, &sharing);
        for (unsigned i = 0; i < count; i++) {
            double seconds = 1e-3 * (1 + 0.01 * (i * 5 % 7));
            add(&made, 0, TRSM, 1e6, i, seconds, 1 + i % 2, 80000);
            sum += seconds;
        }
        made_observe(&made, NULL);
        fit_runs(&made, 1, &sharing, &model);
        const struct duet__point *point = point_of(&model, TRSM);
        g_assert_cmpuint(point->samples, ==, count);
        g_assert_cmpfloat(fabs(point->mean_s * count / sum - 1), <, 1e-12);
        g_assert_cmpfloat(point->base_s, >, 0);
        g_assert_cmpfloat(point->base_s, <=, point->mean_s * 1.0000001);
        if (count < 10)
            g_assert_cmpfloat(fabs(point->base_s / point->mean_s - 1), <, 1e-12);
        g_assert_cmpfloat(point->size, ==, 100);
        if (count == 1) { /* nothing is left to predict it from */
            g_assert_cmpfloat(point->deviation_s, ==, 0);
            g_assert_cmpfloat(point->noise, ==, 0);
            g_assert_true(isnan(model.quality[0].error.execution));
            g_assert_true(isnan(model.quality[0].error.sum));
        } else {
            g_assert_cmpfloat(model.quality[0].error.execution, <, 0.1);
            g_assert_cmpfloat(fabs(model.quality[0].error.sum), <, 0.1);
        }
    }
}

/* The edge of square tiles; vectors have none. */
static void test_size(void)
{
    static const struct {
        uint64_t bytes;
        double work, size;
    } cases[] = {{80000, 1e6, 100}, {80000, 160000, 100}, {80008, 1e6, 0}, {0, 1e6, 0}};
    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        OWNED(made_free) struct made made;
        OWNED(duet__model_fini) struct duet__model model;
        made_init(&made, 1, &(struct duet_sharing){0});
        add(&made, 0, TRSM, cases[i].work, 0, 1, 2, cases[i].bytes);
        made_observe(&made, NULL);
        fit_runs(&made, 1, &(struct duet_sharing){0}, &model);
        g_assert_cmpfloat(point_of(&model, TRSM)->size, ==, cases[i].size);
    }
}

/* Runs without recorded accesses give means; no runs are refused. */
static void test_refused(void)
{
    OWNED(made_free) struct made made;
    struct duet__model model;
    struct duet__model_options options = {.folds = 1};
    make_run(&made, (struct plan){.workers = 1, .tiles = 5});
    made.observation.recording.access_count = 0;
    WORKS(duet__model_fit(&made.observation, 1, &options, &model, hear()));
    const struct duet__point *point = point_of(&model, GEMM);
    g_assert_cmpfloat(fabs(point->base_s / point->mean_s - 1), <, 1e-12);
    g_assert_true(isnan(model.quality[0].error.sum));
    duet__model_fini(&model);
    made.observation.recording.event_count = 0;
    FAILS(duet__model_fit(&made.observation, 1, &options, &model, hear()), DUET_EINVAL,
          "no execution");
    g_assert_null(model.quality);
    g_assert_cmpint(duet__model_fit(NULL, 0, &options, &model, NULL), ==, DUET_EINVAL);
}

/* duet__kernel_seconds, which is for fitting, and duet__rates, which is for predicting, agree.
 * `predict` of the other tests uses the latter. */
static void test_forward(void)
{
    struct made made[3];
    OWNED(duet__model_fini) struct duet__model model;
    double ratio[KERNELS];
    struct duet_sharing sharing = {4 * MIB, 1.2e9};
    for (unsigned i = 0; i < 3; i++)
        make_run(&made[i], (struct plan){.workers = i ? 4 : 1,
                                         .tiles = 12,
                                         .sharing = sharing,
                                         .busy_ratio = i ? 1.4 : 1});
    fit_runs(made, 2, &sharing, &model);
    predict(&model, &made[2], ratio);
    for (int k = 1; k < KERNELS; k++) /* no noise: the last tasks of the run remain */
        g_assert_cmpfloat(fabs(ratio[k] - 1), <, 0.01);
    for (int i = 0; i < 3; i++)
        made_free(&made[i]);
}

/* Parts of the model may be left out, to see their worth. */
static void fit_nothing(const struct duet__rows *rows, const bool *used, double bandwidth_Bps,
                        struct duet__kernel_fit *out, bool *rejected)
{
    *out = (struct duet__kernel_fit){.fit = {.base_s = 7}, .busy_ratio = 1};
}

static void test_parts(void)
{
    struct made made[3];
    struct duet__recorded_run runs[3];
    struct duet__model model;
    struct duet__model_options options = {.sharing = {32 * MIB, 0}, .keep_size = true};
    for (uint32_t i = 0; i < 3; i++) {
        make_run(&made[i], (struct plan){.workers = 1, .tiles = 14, .scale = i ? 1 : 2});
        made[i].observation.repeats = 1;
        runs[i] = made[i].observation;
    }
    g_assert_cmpint(duet__model_fit(runs, 3, &options, &model, NULL), ==, 0);
    g_assert_cmpuint(model.sharing.shared_bytes, ==, 32 * MIB);
    double state = model.quality[0].point.mean_s;
    duet__model_fini(&model);
    options.keep_states = true;
    g_assert_cmpint(duet__model_fit(runs, 3, &options, &model, NULL), ==, 0);
    g_assert_cmpfloat(fabs(model.quality[0].point.mean_s / state - 4.0 / 3), <, 0.01);
    duet__model_fini(&model);
    options.fit = fit_nothing;
    g_assert_cmpint(duet__model_fit(runs, 3, &options, &model, NULL), ==, 0);
    g_assert_cmpfloat(model.quality[0].point.base_s, ==, 7);
    duet__model_fini(&model);
    for (size_t i = 0; i < 3; i++)
        made_free(&made[i]);
}

TEST_MAIN(test_stream, test_devices, test_few, test_size, test_refused, test_forward, test_parts)
