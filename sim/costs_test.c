/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Costs of the runtime itself, each alone and then all together: dates against sums worked out by
 * hand. The machine is that of sim/testing.h. A worker decides at the date of the event that woke
 * it; the costs of deciding and launching delay its command.
 */
#include "sim/testing.h"

static const uint64_t MB = 1000000;

/* The k-th task is submitted at k times 10 ms; the CPU is idle by then. */
static void test_submit(void)
{
    struct lab lab = lab_open(&(struct lab_options){.cpus = 1, .costs = {.submit_s = 0.010}});
    for (unsigned k = 1; k <= 5; k++) {
        lab_task(&lab, NULL, 0.001, 0);
        assert_seconds(duet_now(lab.duet), k * 0.010);
    }
    lab_finish(&lab);
    for (unsigned k = 1; k <= 5; k++) {
        assert_seconds(lab_find(&lab, DUET_EVENT_TASK, k, 1)->submit_s, k * 0.010);
        assert_kernel(&lab, k, "cpu0", k * 0.010, k * 0.010 + 0.001);
    }
    lab_close(&lab);
}

/*
 * Submissions of 10 ms while copies are under way and workers busy: a (5 MB) is wanted at 10 ms and
 * arrives at 16 ms, b is wanted at 30 ms; the CPU is busy from 20 to 45 ms and takes task 4,
 * submitted at 40 ms, then.
 */
static void test_submit_beside(void)
{
    struct lab lab =
        lab_open(&(struct lab_options){.cpus = 1, .gpus = 1, .costs = {.submit_s = 0.010}});
    struct duet_handle *a = lab_data(&lab, 5 * MB), *b = lab_data(&lab, 5 * MB);
    lab_task(&lab, "gpu0", 0.001, 1, a, DUET_R);
    lab_task(&lab, "cpu0", 0.025, 0);
    lab_task(&lab, "gpu0", 0.001, 1, b, DUET_R);
    lab_task(&lab, "cpu0", 0.001, 0);
    lab_finish(&lab);
    assert_copy(&lab, 1, 1, "host", "gpu0", 0.010, 0.016);
    assert_copy(&lab, 2, 1, "host", "gpu0", 0.030, 0.036);
    assert_kernel(&lab, 2, "cpu0", 0.020, 0.045);
    assert_kernel(&lab, 4, "cpu0", 0.045, 0.046);
    assert_seconds(lab_find(&lab, DUET_EVENT_TASK, 4, 1)->submit_s, 0.040);
    lab_close(&lab);
}

/* 1 ms for each task taken: 1 to 6 ms, 7 to 12 ms. */
static void test_pop(void)
{
    struct lab lab = lab_open(&(struct lab_options){.cpus = 1, .costs = {.pop_s = 0.001}});
    lab_task(&lab, NULL, 0.005, 0);
    lab_task(&lab, NULL, 0.005, 0);
    lab_finish(&lab);
    assert_kernel(&lab, 1, "cpu0", 0.001, 0.006);
    assert_kernel(&lab, 2, "cpu0", 0.007, 0.012);
    lab_close(&lab);
}

/*
 * Kernels of 20 us with a window of one: each is launched when the one before it has ended, and
 * begins 10 us later. That is so of the second one, which was not there yet when the GPU was asked,
 * and of the last one after one of 200 us; the others are short, launched ahead, up to 64.
 */
static void test_short_window(void)
{
    struct lab lab = lab_open(&(struct lab_options){.gpus = 1,
                                                    .gpu_window = 1,
                                                    .gpu_window_short = 64,
                                                    .costs = {.kernel_launch_s = 10e-6}});
    for (unsigned i = 0; i < 30; i++)
        lab_task(&lab, NULL, 20e-6, 0);
    for (unsigned i = 0; i < 30; i++)
        lab_task(&lab, NULL, 1e-9, 0);
    lab_task(&lab, NULL, 200e-6, 0);
    lab_task(&lab, NULL, 200e-6, 0);
    lab_finish(&lab);
    assert_kernel(&lab, 1, "gpu0", 10e-6, 30e-6);
    for (unsigned i = 0; i < 29; i++)
        assert_kernel(&lab, 2 + i, "gpu0", 40e-6 + i * 20e-6, 60e-6 + i * 20e-6);
    double first_s = lab_find(&lab, DUET_EVENT_TASK, 61, 1)->end_s;
    assert_kernel(&lab, 62, "gpu0", first_s + 10e-6, first_s + 210e-6);
    lab_close(&lab);
}

/* 1 ms for each task made ready: cpu0 makes two ready at 5 ms and goes on at 7 ms; cpu1 at once. */
static void test_push(void)
{
    struct lab lab = lab_open(&(struct lab_options){.cpus = 2, .costs = {.push_s = 0.001}});
    struct duet_handle *a = lab_data(&lab, MB);
    lab_task(&lab, "cpu0", 0.005, 1, a, DUET_W);
    lab_task(&lab, "cpu0", 0.001, 1, a, DUET_R);
    lab_task(&lab, "cpu1", 0.001, 1, a, DUET_R);
    lab_finish(&lab);
    assert_kernel(&lab, 1, "cpu0", 0, 0.005);
    assert_kernel(&lab, 2, "cpu0", 0.007, 0.008);
    assert_kernel(&lab, 3, "cpu1", 0.005, 0.006);
    lab_close(&lab);
}

/*
 * A submission that makes its task ready pushes it as well: 10 ms to submit, 2 ms to push, so that
 * the k-th task is there at 10 k + 2 (k - 1) ms. One that has to wait is pushed by somebody else:
 * task 4 at 46 ms, task 5 (which waits for task 4 until 146 ms) at 58 ms, task 6 at 68 ms.
 */
static void test_submit_and_push(void)
{
    struct lab lab =
        lab_open(&(struct lab_options){.cpus = 2, .costs = {.submit_s = 0.010, .push_s = 0.002}});
    struct duet_handle *a = lab_data(&lab, MB);
    static const double dates[] = {0.010, 0.022, 0.034, 0.046, 0.058, 0.068};
    for (unsigned k = 0; k < 3; k++)
        lab_task(&lab, "cpu0", 0.001, 0);
    lab_task(&lab, "cpu1", 0.100, 1, a, DUET_RW);
    lab_task(&lab, "cpu1", 0.001, 1, a, DUET_RW);
    lab_task(&lab, "cpu0", 0.001, 0);
    lab_finish(&lab);
    for (unsigned k = 0; k < G_N_ELEMENTS(dates); k++)
        assert_seconds(lab_find(&lab, DUET_EVENT_TASK, k + 1, 1)->submit_s, dates[k]);
    assert_kernel(&lab, 3, "cpu0", 0.034, 0.035);
    assert_kernel(&lab, 5, "cpu1", 0.148, 0.149);
    assert_kernel(&lab, 6, "cpu0", 0.068, 0.069);
    lab_close(&lab);
}

/* 1 ms for each victim asked; there is one: a submission is local to worker 0, cpu1 may run it. */
static void test_steal(void)
{
    struct lab lab =
        lab_open(&(struct lab_options){.cpus = 2, .policy = "ws", .costs = {.steal_s = 0.001}});
    struct duet_stats stats;
    lab_task(&lab, "cpu1", 0.005, 0);
    lab_finish(&lab);
    assert_kernel(&lab, 1, "cpu1", 0.001, 0.006);
    duet_stats(lab.duet, &stats);
    g_assert_cmpuint(stats.steals, ==, 1);
    g_assert_cmpuint(stats.steal_attempts, ==, 1);
    g_assert_cmpuint(stats.pops, ==, 0);
    lab_close(&lab);
}

/* Launches are behind one another: 1 ms, 2 ms; the second kernel is launched during the first. */
static void test_kernel_launch(void)
{
    struct lab lab =
        lab_open(&(struct lab_options){.gpus = 1, .costs = {.kernel_launch_s = 0.001}});
    lab_task(&lab, NULL, 0.005, 0);
    lab_task(&lab, NULL, 0.005, 0);
    lab_task(&lab, NULL, 0.005, 0);
    lab_finish(&lab);
    assert_kernel(&lab, 1, "gpu0", 0.001, 0.006);
    assert_kernel(&lab, 2, "gpu0", 0.006, 0.011);
    /* taken at 6 ms, when the first one has ended: launched at 7 ms */
    assert_kernel(&lab, 3, "gpu0", 0.011, 0.016);
    lab_close(&lab);
}

/* 1 ms a copy: a starts at 1 ms and ends at 7 ms; b, launched at 2 ms, follows until 13 ms. */
static void test_copy_launch(void)
{
    struct lab lab = lab_open(&(struct lab_options){.gpus = 1, .costs = {.copy_launch_s = 0.001}});
    struct duet_handle *a = lab_data(&lab, 5 * MB), *b = lab_data(&lab, 5 * MB);
    lab_task(&lab, NULL, 0.005, 2, a, DUET_R, b, DUET_R);
    lab_finish(&lab);
    assert_copy(&lab, 1, 1, "host", "gpu0", 0.001, 0.007);
    assert_copy(&lab, 2, 1, "host", "gpu0", 0.007, 0.013);
    assert_kernel(&lab, 1, "gpu0", 0.013, 0.018);
    lab_close(&lab);
}

/*
 * All of them, in ms: submit 10, push 1, pop 2, kernel launch 3, copy launch 4. Task 1 is submitted
 * at 10 and taken at 12; the copy of a (5 MB) is launched at 16 and ends at 22; the kernel is
 * launched at 25 and ends at 35. Task 2 needs a, and was submitted at 21 (10 + push 1 + 10); made
 * ready at 35, it is pushed by 36, taken by 38, its kernel launched at 41 and ends at 51.
 */
static void test_all(void)
{
    struct lab lab = lab_open(&(struct lab_options){.gpus = 1,
                                                    .costs = {.submit_s = 0.010,
                                                              .push_s = 0.001,
                                                              .pop_s = 0.002,
                                                              .kernel_launch_s = 0.003,
                                                              .copy_launch_s = 0.004}});
    struct duet_handle *a = lab_data(&lab, 5 * MB);
    struct duet_stats stats;
    lab_task(&lab, NULL, 0.010, 1, a, DUET_RW);
    lab_task(&lab, NULL, 0.010, 1, a, DUET_RW);
    lab_finish(&lab);
    assert_copy(&lab, 1, 1, "host", "gpu0", 0.016, 0.022);
    assert_kernel(&lab, 1, "gpu0", 0.025, 0.035);
    assert_kernel(&lab, 2, "gpu0", 0.041, 0.051);
    assert_seconds(lab_find(&lab, DUET_EVENT_TASK, 2, 1)->submit_s, 0.021);
    assert_seconds(lab_find(&lab, DUET_EVENT_TASK, 2, 1)->ready_s, 0.035);
    duet_stats(lab.duet, &stats);
    g_assert_cmpuint(stats.pushes, ==, 1); /* by workers */
    g_assert_cmpuint(stats.pops, ==, 2);
    assert_seconds(stats.first_submit_s, 0.010);
    assert_seconds(stats.makespan_s, 0.041);
    lab_close(&lab);
}

/*
 * The application's thread has its own date. It asks for a, which task 1 needs until 11 ms, after
 * three submissions of 10 ms: at 30 ms. It keeps a while it submits two more, until 50 ms: only
 * then can task 4, submitted at 40 ms, begin; task 5 needs nothing.
 */
static void test_release(void)
{
    struct lab lab = lab_open(&(struct lab_options){.cpus = 2, .costs = {.submit_s = 0.010}});
    struct duet_handle *a = lab_data(&lab, MB);
    lab_task(&lab, "cpu0", 0.001, 1, a, DUET_RW);
    lab_task(&lab, "cpu1", 0.001, 0);
    lab_task(&lab, "cpu1", 0.001, 0);
    g_assert_cmpint(duet_acquire(lab.duet, a, DUET_RW), ==, DUET_OK);
    assert_seconds(duet_now(lab.duet), 0.030);
    lab_task(&lab, "cpu0", 0.001, 1, a, DUET_RW);
    lab_task(&lab, "cpu1", 0.001, 0);
    g_assert_cmpint(duet_release(lab.duet, a), ==, DUET_OK);
    lab_finish(&lab);
    assert_kernel(&lab, 1, "cpu0", 0.010, 0.011);
    assert_kernel(&lab, 5, "cpu1", 0.050, 0.051);
    assert_kernel(&lab, 4, "cpu0", 0.050, 0.051);
    lab_close(&lab);
}

LAB_MAIN(test_submit, test_submit_beside, test_pop, test_short_window, test_push,
         test_submit_and_push, test_steal, test_kernel_launch, test_copy_launch, test_all,
         test_release)
