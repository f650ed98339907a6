/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Dates of copies and of the kernels that wait for them, against sums worked out by hand. The
 * machine is that of sim/testing.h; nothing costs anything but kernels and copies, and everything
 * is submitted at date 0. Handles and tasks are numbered from 1.
 */
#include "sim/testing.h"

static const uint64_t MB = 1000000;

/* Latency 1 ms, then 5 MB at 1 GB/s: 6 ms; the kernel takes 10 ms more. */
static void test_one(void)
{
    struct lab lab = lab_open(&(struct lab_options){.gpus = 1});
    struct duet_handle *a = lab_data(&lab, 5 * MB);
    lab_task(&lab, "gpu0", 0.010, 1, a, DUET_R);
    lab_finish(&lab);
    assert_copy(&lab, 1, 1, "host", "gpu0", 0, 0.006);
    assert_kernel(&lab, 1, "gpu0", 0.006, 0.016);
    g_assert_cmpuint(lab.event_count, ==, 2);
    lab_close(&lab);
}

/* Both latencies end at 1 ms; then 5 MB each at half of 1 GB/s take 10 ms. */
static void test_shared(void)
{
    struct lab lab = lab_open(&(struct lab_options){.gpus = 2});
    struct duet_handle *a = lab_data(&lab, 5 * MB), *b = lab_data(&lab, 5 * MB);
    lab_task(&lab, "gpu0", 0.001, 1, a, DUET_R);
    lab_task(&lab, "gpu1", 0.001, 1, b, DUET_R);
    lab_finish(&lab);
    assert_copy(&lab, 1, 1, "host", "gpu0", 0, 0.011);
    assert_copy(&lab, 2, 1, "host", "gpu1", 0, 0.011);
    lab_close(&lab);
}

/* Two switches share nothing: each copy as if alone. */
static void test_apart(void)
{
    struct lab lab = lab_open(&(struct lab_options){.gpus = 3});
    struct duet_handle *a = lab_data(&lab, 5 * MB), *b = lab_data(&lab, 7 * MB);
    lab_task(&lab, "gpu0", 0.001, 1, a, DUET_R);
    lab_task(&lab, "gpu2", 0.001, 1, b, DUET_R);
    lab_finish(&lab);
    assert_copy(&lab, 1, 1, "host", "gpu0", 0, 0.006);
    assert_copy(&lab, 2, 1, "host", "gpu2", 0, 0.008);
    lab_close(&lab);
}

/*
 * Three phases. A (10 MB) flows alone from 1 ms; B (4 MB) is wanted at 4 ms, when a CPU has written
 * it, and flows from 5 ms. By then A has 6 MB left. Half of the bandwidth each: B needs 8 ms more,
 * until 13 ms, when A has 2 MB left, which take 2 ms alone: 15 ms.
 */
static void test_staggered(void)
{
    struct lab lab = lab_open(&(struct lab_options){.cpus = 1, .gpus = 2});
    struct duet_handle *a = lab_data(&lab, 10 * MB), *b = lab_data(&lab, 4 * MB);
    lab_task(&lab, "gpu0", 0.001, 1, a, DUET_R);
    lab_task(&lab, "cpu0", 0.004, 1, b, DUET_RW);
    lab_task(&lab, "gpu1", 0.001, 1, b, DUET_R);
    lab_finish(&lab);
    assert_kernel(&lab, 2, "cpu0", 0, 0.004);
    assert_copy(&lab, 1, 1, "host", "gpu0", 0, 0.015);
    assert_copy(&lab, 2, 1, "host", "gpu1", 0.004, 0.013);
    lab_close(&lab);
}

/*
 * gpu0 writes x until 2 ms, which then goes to the host (1 + 5 ms: until 8 ms) while a goes to gpu1
 * behind the same switch (1 + 10 ms): neither notices the other.
 */
static void test_opposite(void)
{
    struct lab lab = lab_open(&(struct lab_options){.cpus = 1, .gpus = 2});
    struct duet_handle *a = lab_data(&lab, 10 * MB), *x = lab_data(&lab, 5 * MB);
    lab_task(&lab, "gpu1", 0.001, 1, a, DUET_R);
    lab_task(&lab, "gpu0", 0.002, 1, x, DUET_W);
    lab_task(&lab, "cpu0", 0.001, 1, x, DUET_R);
    lab_finish(&lab);
    assert_copy(&lab, 1, 1, "host", "gpu1", 0, 0.011);
    assert_kernel(&lab, 2, "gpu0", 0, 0.002);
    assert_copy(&lab, 2, 1, "gpu0", "host", 0.002, 0.008);
    assert_kernel(&lab, 3, "cpu0", 0.008, 0.009);
    lab_close(&lab);
}

/*
 * Inside a switch: x (4 MB) from gpu0 and y (8 MB) from gpu1 cross each other from 2 ms on: 2 ms
 * and 2 ms, 2 ms and 4 ms. The link limits each copy alone, so they do not share it.
 */
static void test_peer(void)
{
    struct lab lab = lab_open(&(struct lab_options){.gpus = 2});
    struct duet_handle *x = lab_data(&lab, 4 * MB), *y = lab_data(&lab, 8 * MB);
    lab_task(&lab, "gpu0", 0.002, 1, x, DUET_W);
    lab_task(&lab, "gpu1", 0.002, 1, y, DUET_W);
    lab_task(&lab, "gpu1", 0.001, 1, x, DUET_R);
    lab_task(&lab, "gpu0", 0.001, 1, y, DUET_R);
    lab_finish(&lab);
    assert_copy(&lab, 1, 1, "gpu0", "gpu1", 0.002, 0.006);
    assert_copy(&lab, 2, 1, "gpu1", "gpu0", 0.002, 0.008);
    lab_close(&lab);
}

/*
 * Across switches a copy is limited to 0.5 GB/s: x (4 MB) goes by the host, where it is from 2 ms
 * on its way out until 7 ms. a (10 MB) flows from the host to gpu2, behind the same switch as x's
 * destination gpu3, from 1 ms: 7 MB by 8 ms, when x's latency ends, then both have half of the
 * link. a arrives at 14 ms; x has then 1 MB left, alone: 15 ms.
 */
static void test_across(void)
{
    struct lab lab = lab_open(&(struct lab_options){.gpus = 4});
    struct duet_handle *x = lab_data(&lab, 4 * MB), *a = lab_data(&lab, 10 * MB);
    lab_task(&lab, "gpu0", 0.002, 1, x, DUET_W);
    lab_task(&lab, "gpu3", 0.001, 1, x, DUET_R);
    lab_task(&lab, "gpu2", 0.001, 1, a, DUET_R);
    lab_finish(&lab);
    assert_copy(&lab, 1, 1, "gpu0", "host", 0.002, 0.007);
    assert_copy(&lab, 1, 2, "host", "gpu3", 0.007, 0.015);
    assert_copy(&lab, 2, 1, "host", "gpu2", 0, 0.014);
    lab_close(&lab);
}

/* Alone, x goes by the host as well: 12 ms, where the direct copy at 0.5 GB/s would need 13 ms. */
static void test_limited(void)
{
    struct lab lab = lab_open(&(struct lab_options){.gpus = 3});
    struct duet_handle *x = lab_data(&lab, 4 * MB);
    lab_task(&lab, "gpu0", 0.002, 1, x, DUET_W);
    lab_task(&lab, "gpu2", 0.001, 1, x, DUET_R);
    lab_finish(&lab);
    assert_copy(&lab, 1, 1, "gpu0", "host", 0.002, 0.007);
    assert_copy(&lab, 1, 2, "host", "gpu2", 0.007, 0.012);
    lab_close(&lab);
}

/* Data goes through the host without peer copies (x, 4 MB): 2 + 5 = 7 ms, and 5 ms more to gpu1. */
static void test_staged(void)
{
    struct lab lab = lab_open(&(struct lab_options){.gpus = 2, .no_peer = true});
    struct duet_handle *x = lab_data(&lab, 4 * MB);
    struct duet_stats stats;
    lab_task(&lab, "gpu0", 0.002, 1, x, DUET_W);
    lab_task(&lab, "gpu1", 0.001, 1, x, DUET_R);
    lab_finish(&lab);
    assert_copy(&lab, 1, 1, "gpu0", "host", 0.002, 0.007);
    assert_copy(&lab, 1, 2, "host", "gpu1", 0.007, 0.012);
    assert_kernel(&lab, 2, "gpu1", 0.012, 0.013);
    duet_stats(lab.duet, &stats);
    g_assert_cmpuint(stats.bytes_to_host, ==, 4 * MB);
    g_assert_cmpuint(stats.bytes_to_device, ==, 4 * MB);
    g_assert_cmpuint(stats.bytes_between, ==, 0);
    lab_close(&lab);
}

/*
 * The second task's copy runs during the first one's kernel: a until 6 ms, b from 6 to 12 ms, the
 * kernels from 6 to 16 and from 16 to 26 ms.
 */
static void test_overlap(void)
{
    struct lab lab = lab_open(&(struct lab_options){.gpus = 1});
    struct duet_handle *a = lab_data(&lab, 5 * MB), *b = lab_data(&lab, 5 * MB);
    lab_task(&lab, "gpu0", 0.010, 1, a, DUET_R);
    lab_task(&lab, "gpu0", 0.010, 1, b, DUET_R);
    lab_finish(&lab);
    assert_copy(&lab, 1, 1, "host", "gpu0", 0, 0.006);
    assert_copy(&lab, 2, 1, "host", "gpu0", 0.006, 0.012);
    assert_kernel(&lab, 1, "gpu0", 0.006, 0.016);
    assert_kernel(&lab, 2, "gpu0", 0.016, 0.026);
    lab_close(&lab);
}

/* A window of one task fetches b when the first task has ended: 16 to 22 ms. */
static void test_no_overlap(void)
{
    struct lab lab = lab_open(&(struct lab_options){.gpus = 1, .gpu_window = 1});
    struct duet_handle *a = lab_data(&lab, 5 * MB), *b = lab_data(&lab, 5 * MB);
    lab_task(&lab, "gpu0", 0.010, 1, a, DUET_R);
    lab_task(&lab, "gpu0", 0.010, 1, b, DUET_R);
    lab_finish(&lab);
    assert_copy(&lab, 2, 1, "host", "gpu0", 0.016, 0.022);
    assert_kernel(&lab, 2, "gpu0", 0.022, 0.032);
    lab_close(&lab);
}

/*
 * A GPU has one copy in a direction at a time. x leaves gpu0 for gpu1 from 2 to 6 ms (2 + 2 ms) and
 * only then for gpu2 behind the other switch, by the host (5 + 5 ms), as decided when gpu0 alone
 * had it: 16 ms. a (5 MB) comes into gpu2 before that, from 3 to 9 ms.
 */
static void test_engines(void)
{
    struct lab lab = lab_open(&(struct lab_options){.cpus = 1, .gpus = 3});
    struct duet_handle *x = lab_data(&lab, 4 * MB), *a = lab_data(&lab, 5 * MB);
    lab_task(&lab, "gpu0", 0.002, 1, x, DUET_W);
    lab_task(&lab, "gpu1", 0.001, 1, x, DUET_R);
    lab_task(&lab, "gpu2", 0.001, 1, x, DUET_R);
    lab_task(&lab, "cpu0", 0.003, 1, a, DUET_RW);
    lab_task(&lab, "gpu2", 0.001, 1, a, DUET_R);
    lab_finish(&lab);
    assert_copy(&lab, 1, 1, "gpu0", "gpu1", 0.002, 0.006);
    assert_copy(&lab, 1, 2, "gpu0", "host", 0.006, 0.011);
    assert_copy(&lab, 1, 3, "host", "gpu2", 0.011, 0.016);
    assert_copy(&lab, 2, 1, "host", "gpu2", 0.003, 0.009);
    assert_kernel(&lab, 5, "gpu2", 0.009, 0.010);
    lab_close(&lab);
}

/* Two tasks that want a at the same time: one copy, until 6 ms, and one request merged into it. */
static void test_merging(void)
{
    struct lab lab = lab_open(&(struct lab_options){.gpus = 1});
    struct duet_handle *a = lab_data(&lab, 5 * MB);
    struct duet_stats stats;
    lab_task(&lab, "gpu0", 0.010, 1, a, DUET_R);
    lab_task(&lab, "gpu0", 0.010, 1, a, DUET_R);
    lab_task(&lab, "gpu0", 0.010, 1, a, DUET_R);
    lab_finish(&lab);
    g_assert_cmpuint(lab_count(&lab, DUET_EVENT_COPY), ==, 1);
    assert_kernel(&lab, 1, "gpu0", 0.006, 0.016);
    assert_kernel(&lab, 2, "gpu0", 0.016, 0.026);
    assert_kernel(&lab, 3, "gpu0", 0.026, 0.036);
    duet_stats(lab.duet, &stats);
    g_assert_cmpuint(stats.reads_on_device, ==, 3);
    g_assert_cmpuint(stats.read_hits, ==, 2);
    g_assert_cmpuint(stats.merged, ==, 1);
    lab_close(&lab);
}

/*
 * a and b are read on gpu0, then on gpu1, by tasks that also write x to come in order. From the
 * host 1 MB takes 1 + 1 = 2 ms, from gpu0 2 + 0.5 = 2.5 ms: the host. 4 MB: 1 + 4 = 5 ms against
 * 2 + 2 = 4 ms: gpu0.
 */
static void test_nearest(void)
{
    struct lab lab = lab_open(&(struct lab_options){.cpus = 1, .gpus = 2});
    struct duet_handle *a = lab_data(&lab, 1 * MB), *b = lab_data(&lab, 4 * MB);
    lab_task(&lab, "gpu0", 0.001, 2, a, DUET_R, b, DUET_R);
    g_assert_cmpint(duet_wait(lab.duet), ==, DUET_OK);
    lab_task(&lab, "gpu1", 0.001, 2, a, DUET_R, b, DUET_R);
    lab_finish(&lab);
    /* first run: a until 2 ms, b until 2 + 5 = 7 ms, kernel until 8 ms */
    assert_kernel(&lab, 1, "gpu0", 0.007, 0.008);
    assert_copy(&lab, 1, 2, "host", "gpu1", 0.008, 0.010);
    assert_copy(&lab, 2, 2, "gpu0", "gpu1", 0.010, 0.014);
    assert_kernel(&lab, 2, "gpu1", 0.014, 0.015);
    lab_close(&lab);
}

LAB_MAIN(test_one, test_shared, test_apart, test_staggered, test_opposite, test_peer, test_across,
         test_limited, test_staged, test_overlap, test_no_overlap, test_engines, test_merging,
         test_nearest)
