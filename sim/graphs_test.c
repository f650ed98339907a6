/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Dates of dependent tasks, of the application's own accesses in the middle of a run, and of what
 * the runtime itself costs; against sums worked out by hand. The machine is that of sim/testing.h.
 */
#include "sim/testing.h"

static const uint64_t MB = 1000000;

/* Three tasks on one handle, here and there: 1 + 3 + 5 ms on the same CPU or another. */
static void test_chain(void)
{
    struct lab lab = lab_open(&(struct lab_options){.cpus = 2});
    struct duet_handle *a = lab_data(&lab, MB);
    lab_task(&lab, "cpu0", 0.001, 1, a, DUET_RW);
    lab_task(&lab, "cpu1", 0.003, 1, a, DUET_RW);
    lab_task(&lab, "cpu0", 0.005, 1, a, DUET_R);
    lab_finish(&lab);
    assert_kernel(&lab, 1, "cpu0", 0, 0.001);
    assert_kernel(&lab, 2, "cpu1", 0.001, 0.004);
    assert_kernel(&lab, 3, "cpu0", 0.004, 0.009);
    g_assert_cmpfloat(lab_find(&lab, DUET_EVENT_TASK, 3, 1)->submit_s, ==, 0);
    assert_seconds(lab_find(&lab, DUET_EVENT_TASK, 3, 1)->ready_s, 0.004);
    lab_close(&lab);
}

/*
 * A writes a until 2 ms; three readers of 1, 3 and 2 ms, two of them on cpu1 one after the other
 * (2 to 5, 5 to 7 ms); the join writes a when the last one has ended, and waits for it alone.
 */
static void test_fork_join(void)
{
    struct lab lab = lab_open(&(struct lab_options){.cpus = 2});
    struct duet_handle *a = lab_data(&lab, MB);
    struct duet_stats stats;
    lab_task(&lab, "cpu0", 0.002, 1, a, DUET_W);
    lab_task(&lab, "cpu0", 0.001, 1, a, DUET_R);
    lab_task(&lab, "cpu1", 0.003, 1, a, DUET_R);
    lab_task(&lab, "cpu1", 0.002, 1, a, DUET_R);
    lab_task(&lab, "cpu0", 0.004, 1, a, DUET_RW);
    lab_finish(&lab);
    assert_kernel(&lab, 2, "cpu0", 0.002, 0.003);
    assert_kernel(&lab, 3, "cpu1", 0.002, 0.005);
    assert_kernel(&lab, 4, "cpu1", 0.005, 0.007);
    assert_kernel(&lab, 5, "cpu0", 0.007, 0.011);
    duet_stats(lab.duet, &stats);
    assert_seconds(stats.makespan_s, 0.011);
    assert_seconds(stats.busy_s, 0.012);
    assert_seconds(stats.critical_path_s, 0.009); /* 2 + 3 + 4 ms */
    lab_close(&lab);
}

/*
 * Events of one date. cpu0, cpu1 and cpu2 end a, b and c at 1 ms, all needed by other tasks, and
 * the copy of d to gpu0 (1 ms latency, 0 bytes would be none; 1 MB: 2 ms) ends at 2 ms, as do the
 * tasks that follow. Whoever is submitted in which order, kernels end in the order of workers and
 * before copies: eager's list then is in that order, and cpu3, the only one that may run the
 * followers, takes them in it.
 */
static void test_ties(void)
{
    struct lab lab = lab_open(&(struct lab_options){.cpus = 4, .gpus = 1});
    struct duet_handle *h[3], *d = lab_data(&lab, MB);
    static const unsigned order[] = {2, 0, 1};
    static const char *const names[] = {"cpu0", "cpu1", "cpu2"};
    for (unsigned i = 0; i < 3; i++)
        h[i] = lab_data(&lab, MB);
    lab_task(&lab, "gpu0", 0.001, 1, d, DUET_RW);
    for (unsigned i = 0; i < 3; i++)
        lab_task(&lab, names[order[i]], 0.002, 1, h[order[i]], DUET_RW);
    for (unsigned i = 0; i < 3; i++) /* tasks 5, 6, 7 follow cpu2's, cpu0's and cpu1's */
        lab_task(&lab, "cpu3", 0.001, 1, h[order[i]], DUET_RW);
    lab_finish(&lab);
    assert_kernel(&lab, 6, "cpu3", 0.002, 0.003);
    assert_kernel(&lab, 7, "cpu3", 0.003, 0.004);
    assert_kernel(&lab, 5, "cpu3", 0.004, 0.005);
    assert_kernel(&lab, 1, "gpu0", 0.002, 0.003);
    lab_close(&lab);
}

/*
 * The application waits for one handle while other work goes on. a: written on cpu0 until 10 ms;
 * then on gpu0: copied until 16 ms, kernel until 26 ms, back on the host at 32 ms. Meanwhile cpu0
 * is busy with task 3 from 10 to 1010 ms.
 */
static void test_acquire(void)
{
    struct lab lab = lab_open(&(struct lab_options){.cpus = 1, .gpus = 1});
    struct duet_handle *a = lab_data(&lab, 5 * MB);
    g_assert_cmpfloat(duet_now(lab.duet), ==, 0);
    lab_task(&lab, "cpu0", 0.010, 1, a, DUET_RW);
    g_assert_cmpint(duet_acquire(lab.duet, a, DUET_R), ==, DUET_OK);
    assert_seconds(duet_now(lab.duet), 0.010);
    g_assert_cmpuint(duet_tasks_done(lab.duet), ==, 1);
    g_assert_cmpint(duet_release(lab.duet, a), ==, DUET_OK);
    lab_task(&lab, "gpu0", 0.010, 1, a, DUET_RW);
    lab_task(&lab, "cpu0", 1.0, 0);
    g_assert_cmpint(duet_acquire(lab.duet, a, DUET_R), ==, DUET_OK);
    assert_seconds(duet_now(lab.duet), 0.032);
    g_assert_cmpuint(duet_tasks_done(lab.duet), ==, 2);
    lab_task(&lab, "gpu0", 0.010, 1, a, DUET_R); /* readers go on beside the application */
    lab_task(&lab, "gpu0", 0.010, 1, a, DUET_RW);
    g_assert_cmpint(duet_release(lab.duet, a), ==, DUET_OK);
    lab_finish(&lab);
    assert_seconds(duet_now(lab.duet), 1.010);
    assert_copy(&lab, 1, 1, "host", "gpu0", 0.010, 0.016);
    assert_copy(&lab, 1, 2, "gpu0", "host", 0.026, 0.032);
    assert_kernel(&lab, 3, "cpu0", 0.010, 1.010);
    assert_kernel(&lab, 4, "gpu0", 0.032, 0.042);
    assert_kernel(&lab, 5, "gpu0", 0.042, 0.052);
    lab_close(&lab);
}

/*
 * Data that the application changed itself has to be copied again; tasks wait until it has
 * released.
 */
static void test_acquire_write(void)
{
    struct lab lab = lab_open(&(struct lab_options){.gpus = 1});
    struct duet_handle *a = lab_data(&lab, 5 * MB);
    lab_task(&lab, "gpu0", 0.001, 1, a, DUET_R);
    g_assert_cmpint(duet_acquire(lab.duet, a, DUET_RW), ==, DUET_OK); /* valid here: at 7 ms */
    assert_seconds(duet_now(lab.duet), 0.007);
    lab_task(&lab, "gpu0", 0.001, 1, a, DUET_R);
    g_assert_cmpint(duet_release(lab.duet, a), ==, DUET_OK);
    lab_finish(&lab);
    assert_copy(&lab, 1, 2, "host", "gpu0", 0.007, 0.013);
    assert_kernel(&lab, 2, "gpu0", 0.013, 0.014);
    g_assert_cmpint(duet_release(lab.duet, a), ==, DUET_EINVAL);
    lab_close(&lab);
}

/* Waiting for everything brings nothing back; duet_unregister does. Kernel until 7 ms, 13 ms. */
static void test_unregister(void)
{
    struct lab lab = lab_open(&(struct lab_options){.gpus = 1});
    struct duet_handle *a = lab_data(&lab, 5 * MB);
    lab_task(&lab, "gpu0", 0.001, 1, a, DUET_RW);
    lab_finish(&lab);
    assert_seconds(duet_now(lab.duet), 0.007);
    g_assert_cmpuint(lab_count(&lab, DUET_EVENT_COPY), ==, 1);
    g_assert_cmpint(duet_unregister(lab.duet, a), ==, DUET_OK);
    assert_seconds(duet_now(lab.duet), 0.013);
    lab_finish(&lab);
    assert_copy(&lab, 1, 2, "gpu0", "host", 0.007, 0.013);
    lab_close(&lab);
}

/*
 * A window of 8 and one CPU: at date 0 eight tasks of 1 s; from then on a submission happens when
 * a task ends. Task k > 8 is submitted at k - 8 s.
 */
static void test_window(void)
{
    struct lab lab = lab_open(&(struct lab_options){.cpus = 1, .window = 8});
    for (unsigned k = 1; k <= 20; k++) {
        lab_task(&lab, NULL, 1.0, 0);
        assert_seconds(duet_now(lab.duet), k > 8 ? k - 8 : 0);
    }
    lab_finish(&lab);
    for (unsigned k = 1; k <= 20; k++)
        assert_seconds(lab_find(&lab, DUET_EVENT_TASK, k, 1)->submit_s, k > 8 ? k - 8 : 0);
    assert_kernel(&lab, 20, "cpu0", 19, 20);
    lab_close(&lab);
}

/* A small window is kept as well: one task at a time. */
static void test_window_of_one(void)
{
    struct lab lab = lab_open(&(struct lab_options){.cpus = 3, .window = 1});
    for (unsigned k = 1; k <= 5; k++)
        lab_task(&lab, NULL, 1.0, 0);
    lab_finish(&lab);
    for (unsigned k = 1; k <= 5; k++) {
        assert_seconds(lab_find(&lab, DUET_EVENT_TASK, k, 1)->submit_s, k - 1);
        assert_seconds(lab_find(&lab, DUET_EVENT_TASK, k, 1)->end_s, k);
    }
    lab_close(&lab);
}

LAB_MAIN(test_chain, test_fork_join, test_ties, test_acquire, test_acquire_write, test_unregister,
         test_window, test_window_of_one)
