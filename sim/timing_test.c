/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Times of kernels on the simulated machine: calibrated means (draws around them are in
 * effects_runs_test.c), unknown sizes and architectures, SetArch; and the message of a run that is
 * stuck.
 */
#include "sim/testing.h"

static double one(const void *args)
{
    return *(const double *)args;
}

/* Kernel "k" on the CPU: 100 flops in 1 ms, 10,000 flops in 16 ms. */
static struct duet__calibration calibrate(const char *arch)
{
    struct duet__calibration calibration = {0};
    struct duet__point points[] = {
        {.work = 100, .mean_s = 1e-3, .samples = 10},
        {.work = 10000, .mean_s = 16e-3, .samples = 10},
    };
    struct duet__curve curve = {.kernel = "k", .points = points, .count = 2};
    g_strlcpy(curve.arch, arch, sizeof curve.arch);
    g_assert_cmpint(duet__calibration_add(&calibration, &curve, NULL), ==, DUET_OK);
    return calibration;
}

static int submit(struct lab *lab, const struct duet_codelet *codelet, double flops)
{
    const struct duet_task_desc task = {.codelet = codelet,
                                        .args = &flops,
                                        .args_bytes = sizeof flops};
    return duet_submit(lab->duet, &task);
}

/*
 * Times without noise are the measured means, and between them a power law: 1,000 flops lie
 * half-way in the logarithm between 1 and 16 ms: 4 ms.
 */
static void test_means(void)
{
    OWNED(duet__calibration_fini) struct duet__calibration calibration = calibrate("cpu0");
    OWNED(lab_close)
    struct lab lab = lab_open(&(struct lab_options){.cpus = 1, .calibration = &calibration});
    struct duet_codelet *k = lab_codelet(&lab, "k", one, NULL);
    g_assert_cmpint(submit(&lab, k, 100), ==, DUET_OK);
    g_assert_cmpint(submit(&lab, k, 1000), ==, DUET_OK);
    g_assert_cmpint(submit(&lab, k, 10000), ==, DUET_OK);
    lab_finish(&lab);
    assert_kernel(&lab, 1, "cpu0", 0, 0.001);
    assert_kernel(&lab, 2, "cpu0", 0.001, 0.005);
    assert_kernel(&lab, 3, "cpu0", 0.005, 0.021);
}

/* Sizes that were not measured are refused, and the message says what was measured. */
static void test_outside(void)
{
    OWNED(duet__calibration_fini) struct duet__calibration calibration = calibrate("cpu0");
    OWNED(lab_close)
    struct lab lab = lab_open(&(struct lab_options){.cpus = 1, .calibration = &calibration});
    struct duet_codelet *k = lab_codelet(&lab, "k", one, NULL);
    g_assert_cmpint(submit(&lab, k, 99), ==, DUET_ENOMODEL);
    const char *message = duet_last_message(lab.duet);
    g_assert_nonnull(strstr(message, "kernel k with 99 flops"));
    g_assert_nonnull(strstr(message, "100 to 1e+04 flops"));
    g_assert_nonnull(strstr(message, "cpu0"));
    g_assert_nonnull(strstr(message, "extrapolation"));
    g_assert_cmpint(submit(&lab, k, 10001), ==, DUET_ENOMODEL);
    g_assert_cmpint(submit(&lab, k, 100), ==, DUET_OK); /* the run goes on */
    lab_finish(&lab);
    g_assert_cmpuint(lab.event_count, ==, 1);
}

/* If allowed, the rate of the nearest measured size is used: 50 flops in 0.5 ms. */
static void test_extrapolate(void)
{
    OWNED(duet__calibration_fini) struct duet__calibration calibration = calibrate("cpu0");
    OWNED(lab_close)
    struct lab lab = lab_open(
        &(struct lab_options){.cpus = 1, .calibration = &calibration, .extrapolate = true});
    struct duet_codelet *k = lab_codelet(&lab, "k", one, NULL);
    g_assert_cmpint(submit(&lab, k, 50), ==, DUET_OK);
    g_assert_cmpint(submit(&lab, k, 20000), ==, DUET_OK);
    lab_finish(&lab);
    assert_kernel(&lab, 1, "cpu0", 0, 0.0005);
    assert_kernel(&lab, 2, "cpu0", 0.0005, 0.0325);
}

/* A kernel that nobody has timed, and one that is timed on one architecture alone. */
static void test_unknown(void)
{
    OWNED(duet__calibration_fini) struct duet__calibration calibration = calibrate("gpu0");
    OWNED(lab_close)
    struct lab lab =
        lab_open(&(struct lab_options){.cpus = 2, .gpus = 1, .calibration = &calibration});
    struct duet_codelet *k = lab_codelet(&lab, "k", one, NULL);
    struct duet_codelet *mystery = lab_codelet(&lab, "mystery", one, NULL);
    REFUSED(lab.duet, submit(&lab, mystery, 100), DUET_ENOMODEL, "kernel mystery");
    for (unsigned i = 0; i < 3; i++)
        g_assert_cmpint(submit(&lab, k, 100), ==, DUET_OK);
    lab_finish(&lab);
    assert_kernel(&lab, 3, "gpu0", 0.002, 0.003); /* never on the idle CPUs */
}

/*
 * Tasks that GPUs can run wait for the GPU although a CPU is idle; the others are for the CPU, and
 * so are those that name it.
 */
static void test_set_arch(void)
{
    OWNED(lab_close)
    struct lab lab = lab_open(&(struct lab_options){.cpus = 1, .gpus = 1, .set_arch = true});
    for (unsigned i = 0; i < 3; i++)
        lab_task(&lab, NULL, 0.001, 0);
    g_assert_cmpint(lab_try(&lab, (struct lab_seconds){.cpu = 0.001}, NULL, 0), ==, DUET_OK);
    g_assert_cmpint(lab_try(&lab, (struct lab_seconds){1, 1}, "cpu0", 0), ==, DUET_OK);
    REFUSED(lab.duet, lab_try(&lab, (struct lab_seconds){.gpu = 1}, "cpu0", 0), DUET_ENOWORKER,
            "with this restriction");
    lab_finish(&lab);
    assert_kernel(&lab, 3, "gpu0", 0.002, 0.003);
    assert_kernel(&lab, 4, "cpu0", 0, 0.001);
    assert_kernel(&lab, 5, "cpu0", 0.001, 1.001);
}

/* A kernel of which only the cost tells how long it takes: every task takes its own. */
static double seconds_of(const void *args, const char *arch)
{
    return one(args);
}

static void test_costs(void)
{
    OWNED(lab_close) struct lab lab = lab_open(&(struct lab_options){.cpus = 1, .policy = "heft"});
    struct duet_codelet *kernel = lab_codelet(&lab, "kernel", NULL, seconds_of);
    for (unsigned i = 0; i < 3; i++)
        g_assert_cmpint(submit(&lab, kernel, 0.001 + i), ==, DUET_OK);
    g_assert_cmpint(submit(&lab, kernel, 0), ==, DUET_ENOMODEL);
    lab_finish(&lab);
    assert_kernel(&lab, 1, "cpu0", 0, 0.001);
    assert_kernel(&lab, 2, "cpu0", 0.001, 1.002);
    assert_kernel(&lab, 3, "cpu0", 1.002, 3.003);
}

/*
 * 4,000 sizes, more than the core tells apart: each takes what the calibration says of it, what it
 * does not cover is refused, and the bounds count no task as longer than it is.
 */
static void test_many_sizes(void)
{
    enum { SIZES = 4000 };
    OWNED(duet__calibration_fini) struct duet__calibration calibration = calibrate("cpu0");
    OWNED(lab_close)
    struct lab lab = lab_open(&(struct lab_options){.cpus = 1, .calibration = &calibration});
    struct duet_codelet *k = lab_codelet(&lab, "k", one, NULL);
    double exponent = log(16) / log(100), sum_s = 0, least_s = 0;
    for (unsigned i = 0; i < SIZES; i++)
        g_assert_cmpint(submit(&lab, k, 100 + 9900.0 * i / SIZES), ==, DUET_OK);
    g_assert_cmpint(submit(&lab, k, 10001), ==, DUET_ENOMODEL);
    lab_finish(&lab);
    for (unsigned i = 0; i < SIZES; i++) {
        const struct duet_event *event = lab_find(&lab, DUET_EVENT_TASK, i + 1, 1);
        double seconds = 1e-3 * pow(event->work / 100, exponent);
        g_assert_cmpfloat(event->work, ==, 100 + 9900.0 * i / SIZES);
        g_assert_cmpfloat_with_epsilon((event->end_s - event->start_s) / seconds, 1, 1e-6);
        sum_s += seconds;
    }
    for (size_t i = 0; i < duet_class_count(lab.duet); i++) {
        struct duet_class_stats stats;
        g_assert_cmpint(duet_class_stats(lab.duet, i, &stats), ==, DUET_OK);
        least_s += (double)stats.tasks * stats.expected_s[0];
    }
    g_assert_cmpfloat(least_s, <=, sum_s * (1 + 1e-9));
    g_assert_cmpfloat(least_s, >, 0.9 * sum_s);
    g_assert_cmpuint(duet_class_count(lab.duet), <, 2000);
}

/* ------------------------------------------------------------------------------------------- */
/* A policy that loses tasks                                                                    */

static void lose(void *self, struct duet_view *view, struct duet_task **batch, size_t count, int by,
                 double now)
{
    for (size_t i = 0; i < count; i++)
        if (duet_task_id(batch[i]) != 2)
            duet_push_tail(view, duet_view_shared(view), batch[i]);
}

static struct duet_task *pop_shared(void *self, struct duet_view *view, unsigned worker, double now)
{
    return duet_pop_head(view, duet_view_shared(view), worker);
}

static const struct duet_policy loses = {.name = "loses",
                                         .description = "forgets task 2",
                                         .source = "this test",
                                         .order = DUET_DEQUE,
                                         .push = lose,
                                         .pop = pop_shared};

/* Task 1 runs, 2 is lost, 3 needs what 2 writes. The wait ends, and says that something is wrong.
 */
static void test_stuck(void)
{
    OWNED(lab_close) struct lab lab = lab_open(&(struct lab_options){.cpus = 2, .custom = &loses});
    struct duet_handle *a = lab_data(&lab, 1000);
    lab_task(&lab, NULL, 0.001, 0);
    lab_task(&lab, NULL, 0.001, 1, a, DUET_W);
    lab_task(&lab, NULL, 0.001, 1, a, DUET_R);
    g_assert_cmpint(duet_wait(lab.duet), ==, DUET_ESTUCK);
    const char *message = duet_last_message(lab.duet);
    g_assert_nonnull(strstr(message, "2 tasks cannot go on: no worker has"));
    g_assert_cmpuint(duet_tasks_done(lab.duet), ==, 1);
    g_assert_cmpint(duet_acquire(lab.duet, a, DUET_R), ==, DUET_ESTUCK);
    g_assert_cmpint(duet_release(lab.duet, a), ==, DUET_EINVAL); /* it never was acquired */
    g_assert_cmpint(duet_unregister(lab.duet, a), ==, DUET_ESTUCK);
}

/* A wait of the application for everything does not end while it holds data itself. */
static void test_stuck_by_application(void)
{
    OWNED(lab_close) struct lab lab = lab_open(&(struct lab_options){.cpus = 1});
    struct duet_handle *a = lab_data(&lab, 1000);
    g_assert_cmpint(duet_acquire(lab.duet, a, DUET_RW), ==, DUET_OK);
    lab_task(&lab, NULL, 0.001, 1, a, DUET_R);
    REFUSED(lab.duet, duet_wait(lab.duet), DUET_ESTUCK, "the application has acquired");
    g_assert_cmpint(duet_release(lab.duet, a), ==, DUET_OK);
    lab_finish(&lab); /* it can still be put right */
    assert_kernel(&lab, 1, "cpu0", 0, 0.001);
}

LAB_MAIN(test_means, test_outside, test_extrapolate, test_unknown, test_set_arch, test_costs,
         test_many_sizes, test_stuck, test_stuck_by_application)
