/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Device memory in simulated time: evictions with and without write-back, tasks that do not fit.
 * The machine is that of sim/testing.h, its GPUs with 8 MB each; nothing but kernels and copies
 * takes time.
 */
#include "sim/testing.h"

static const uint64_t MB = 1000000;

/*
 * gpu0 writes x (6 MB) until 2 ms. y needs its place: x goes to the host from 2 ms (1 + 6 ms), and
 * y comes from 9 ms (1 + 6 ms).
 */
static void test_write_back(void)
{
    struct lab lab = lab_open(&(struct lab_options){.gpus = 1, .gpu_memory_bytes = 8 * MB});
    struct duet_handle *x = lab_data(&lab, 6 * MB), *y = lab_data(&lab, 6 * MB);
    struct duet_stats stats;
    lab_task(&lab, "gpu0", 0.002, 1, x, DUET_W);
    lab_task(&lab, "gpu0", 0.001, 1, y, DUET_R);
    lab_finish(&lab);
    assert_kernel(&lab, 1, "gpu0", 0, 0.002);
    assert_copy(&lab, 1, 1, "gpu0", "host", 0.002, 0.009);
    g_assert_true(lab_find(&lab, DUET_EVENT_COPY, 1, 1)->write_back);
    assert_copy(&lab, 2, 1, "host", "gpu0", 0.009, 0.016);
    assert_kernel(&lab, 2, "gpu0", 0.016, 0.017);
    duet_stats(lab.duet, &stats);
    g_assert_cmpuint(stats.evictions, ==, 1);
    g_assert_cmpuint(stats.write_backs, ==, 1);
    lab_close(&lab);
}

/* x (6 MB) was only read: its place is free at once. 7 ms, kernel until 9 ms, y from 9 to 16 ms. */
static void test_clean(void)
{
    struct lab lab = lab_open(&(struct lab_options){.gpus = 1, .gpu_memory_bytes = 8 * MB});
    struct duet_handle *x = lab_data(&lab, 6 * MB), *y = lab_data(&lab, 6 * MB);
    struct duet_stats stats;
    lab_task(&lab, "gpu0", 0.002, 1, x, DUET_R);
    lab_task(&lab, "gpu0", 0.001, 1, y, DUET_R);
    lab_finish(&lab);
    assert_kernel(&lab, 1, "gpu0", 0.007, 0.009);
    assert_copy(&lab, 2, 1, "host", "gpu0", 0.009, 0.016);
    g_assert_cmpuint(lab_count(&lab, DUET_EVENT_COPY), ==, 2);
    duet_stats(lab.duet, &stats);
    g_assert_cmpuint(stats.evictions, ==, 1);
    g_assert_cmpuint(stats.write_backs, ==, 0);
    lab_close(&lab);
}

/*
 * Least recently used: a, b and c of 2 MB fill the memory up to 2 MB; a is used again, so d and e
 * (2 MB each) take the free place and that of b. a stays and is read without a copy; b comes again.
 */
static void test_oldest(void)
{
    struct lab lab = lab_open(&(struct lab_options){.gpus = 1, .gpu_memory_bytes = 8 * MB});
    struct duet_handle *h[5];
    for (unsigned i = 0; i < 5; i++)
        h[i] = lab_data(&lab, 2 * MB - 1024); /* blocks are multiples of 256 bytes */
    static const unsigned order[] = {0, 1, 2, 0, 3, 4, 0, 2};
    for (unsigned i = 0; i < G_N_ELEMENTS(order); i++) {
        lab_task(&lab, "gpu0", 0.001, 1, h[order[i]], DUET_R);
        g_assert_cmpint(duet_wait(lab.duet), ==, DUET_OK);
    }
    lab_finish(&lab);
    g_assert_cmpuint(lab_count(&lab, DUET_EVENT_COPY), ==, 5);
    lab_task(&lab, "gpu0", 0.001, 1, h[1], DUET_R);
    lab_finish(&lab);
    g_assert_cmpuint(lab_count(&lab, DUET_EVENT_COPY), ==, 6);
    g_assert_nonnull(lab_find(&lab, DUET_EVENT_COPY, 2, 2));
    lab_close(&lab);
}

/*
 * A CPU that wants data on its way to the host waits for that copy; there is no second one.
 *
 * gpu0 writes y (2 MB) until 4 ms and x (5 MB) until 8 ms. z (7 MB), taken at 4 ms, needs all: y
 * leaves from 4 to 7 ms, x from 8 to 14 ms, then z comes (8 ms). The CPU wants y at 5 ms.
 */
static void test_merged_write_back(void)
{
    struct lab lab =
        lab_open(&(struct lab_options){.cpus = 1, .gpus = 1, .gpu_memory_bytes = 8 * MB});
    struct duet_handle *x = lab_data(&lab, 5 * MB), *y = lab_data(&lab, 2 * MB);
    struct duet_handle *z = lab_data(&lab, 7 * MB);
    lab_task(&lab, "gpu0", 0.004, 1, y, DUET_W);
    lab_task(&lab, "gpu0", 0.004, 1, x, DUET_W);
    lab_task(&lab, "gpu0", 0.001, 1, z, DUET_R);
    lab_task(&lab, "cpu0", 0.005, 0);
    lab_task(&lab, "cpu0", 0.001, 1, y, DUET_R);
    lab_finish(&lab);
    assert_copy(&lab, 2, 1, "gpu0", "host", 0.004, 0.007);
    assert_copy(&lab, 1, 1, "gpu0", "host", 0.008, 0.014);
    assert_kernel(&lab, 5, "cpu0", 0.007, 0.008);
    assert_copy(&lab, 3, 1, "host", "gpu0", 0.014, 0.022);
    g_assert_cmpuint(lab_count(&lab, DUET_EVENT_COPY), ==, 3);
    lab_close(&lab);
}

/*
 * A write-back overtaken by a write elsewhere: what arrives at the host is the old contents, and
 * who reads there must wait for the new.
 *
 * y (2 MB) is written on gpu0 until 4 ms, x (5 MB) until 8 ms. z (7 MB), taken at 4 ms, needs all:
 * y leaves from 4 to 7 ms. At 5 ms the rest is submitted: gpu1 writes y anew until 5.5 ms. The CPU
 * wants y then; the new one leaves from 7 to 11 ms, its second half at half the speed since x
 * leaves too.
 */
static void test_overtaken(void)
{
    struct lab lab =
        lab_open(&(struct lab_options){.cpus = 1, .gpus = 2, .gpu_memory_bytes = 8 * MB});
    struct duet_handle *x = lab_data(&lab, 5 * MB), *y = lab_data(&lab, 2 * MB);
    struct duet_handle *z = lab_data(&lab, 7 * MB), *later = lab_data(&lab, MB);
    lab_task(&lab, "gpu0", 0.004, 1, y, DUET_W);
    lab_task(&lab, "gpu0", 0.004, 1, x, DUET_W);
    lab_task(&lab, "gpu0", 0.001, 1, z, DUET_R);
    lab_task(&lab, "cpu0", 0.005, 1, later, DUET_W);
    g_assert_cmpint(duet_acquire(lab.duet, later, DUET_R), ==, DUET_OK);
    g_assert_cmpint(duet_release(lab.duet, later), ==, DUET_OK);
    lab_task(&lab, "gpu1", 0.0005, 1, y, DUET_W);
    lab_task(&lab, "cpu0", 0.001, 1, y, DUET_R);
    lab_finish(&lab);
    assert_copy(&lab, 2, 1, "gpu0", "host", 0.004, 0.007);
    assert_kernel(&lab, 5, "gpu1", 0.005, 0.0055);
    assert_copy(&lab, 2, 2, "gpu1", "host", 0.007, 0.011);
    assert_kernel(&lab, 6, "cpu0", 0.011, 0.012);
    lab_close(&lab);
}

/*
 * A task that changes what is being written back waits until that has been read.
 *
 * x (5 MB) comes until 6 ms and is read until 7 ms, when the rest is submitted. y (2 MB) is written
 * until 8 ms; x is read again until 9.5 ms. z (5 MB, written only) wants room from 8 ms on, while x
 * is in use: y starts to leave, from 8 to 11 ms. At 9.5 ms x can be dropped, so z is written until
 * 10 ms. y, which is still there, is changed from 11 to 11.5 ms, and leaves again until 14.5 ms.
 */
static void test_changed_while_leaving(void)
{
    struct lab lab =
        lab_open(&(struct lab_options){.cpus = 1, .gpus = 1, .gpu_memory_bytes = 8 * MB});
    struct duet_handle *x = lab_data(&lab, 5 * MB), *y = lab_data(&lab, 2 * MB);
    struct duet_handle *z = lab_data(&lab, 5 * MB);
    lab_task(&lab, "gpu0", 0.001, 1, x, DUET_R);
    g_assert_cmpint(duet_wait(lab.duet), ==, DUET_OK);
    lab_task(&lab, "gpu0", 0.001, 1, y, DUET_W);
    lab_task(&lab, "gpu0", 0.0015, 1, x, DUET_R);
    lab_task(&lab, "gpu0", 0.0005, 1, z, DUET_W);
    lab_task(&lab, "gpu0", 0.0005, 1, y, DUET_RW);
    lab_task(&lab, "cpu0", 0.001, 1, y, DUET_R);
    lab_finish(&lab);
    assert_copy(&lab, 2, 1, "gpu0", "host", 0.008, 0.011);
    assert_kernel(&lab, 4, "gpu0", 0.0095, 0.010);
    assert_kernel(&lab, 5, "gpu0", 0.011, 0.0115);
    assert_copy(&lab, 2, 2, "gpu0", "host", 0.0115, 0.0145);
    assert_kernel(&lab, 6, "cpu0", 0.0145, 0.0155);
    lab_close(&lab);
}

/* 9 MB do not fit into 8 MB: refused where only GPUs may run it, else left to the CPU. */
static void test_too_big(void)
{
    struct lab lab =
        lab_open(&(struct lab_options){.cpus = 1, .gpus = 1, .gpu_memory_bytes = 8 * MB});
    struct duet_handle *x = lab_data(&lab, 5 * MB), *y = lab_data(&lab, 4 * MB);
    const struct lab_seconds gpu_only = {0, 0.001}, both = {0.1, 0.001};
    g_assert_cmpint(lab_try(&lab, gpu_only, NULL, 2, x, DUET_R, y, DUET_R), ==, DUET_ETOOBIG);
    const char *message = duet_last_message(lab.duet);
    /* 5 MB and 4 MB in blocks of 256 bytes: 5,000,192 and 4,000,000 */
    g_assert_nonnull(strstr(message, "needs 9000192 bytes"));
    g_assert_nonnull(strstr(message, "8000000"));
    g_assert_nonnull(strstr(message, "work"));
    g_assert_cmpint(lab_try(&lab, both, "cuda", 2, x, DUET_R, y, DUET_R), ==, DUET_ETOOBIG);
    g_assert_cmpint(lab_try(&lab, both, NULL, 2, x, DUET_R, y, DUET_R), ==, DUET_OK);
    lab_finish(&lab);
    assert_kernel(&lab, 1, "cpu0", 0, 0.1);
    g_assert_cmpuint(lab.event_count, ==, 1);
    lab_close(&lab);
}

/* Exactly the whole memory fits, also when it is in pieces: three blocks, then one of 8 MB. */
static void test_just_fits(void)
{
    const uint64_t all = 8 * MB / 256 * 256;
    struct lab lab = lab_open(&(struct lab_options){.gpus = 1, .gpu_memory_bytes = 8 * MB});
    struct duet_handle *a = lab_data(&lab, 2 * MB), *b = lab_data(&lab, 3 * MB);
    struct duet_handle *c = lab_data(&lab, 1 * MB), *whole = lab_data(&lab, all);
    lab_task(&lab, "gpu0", 0.001, 3, a, DUET_W, b, DUET_W, c, DUET_W);
    lab_task(&lab, "gpu0", 0.001, 1, whole, DUET_W);
    lab_task(&lab, "gpu0", 0.001, 3, a, DUET_R, b, DUET_R, c, DUET_R);
    lab_finish(&lab);
    /* out from 1 ms: 1 + 2, 1 + 3, 1 + 1 ms, until 10 ms; `whole` written until 11 ms, out until
       20 ms; the three in again: 20 to 23, 27, 29 ms */
    assert_kernel(&lab, 2, "gpu0", 0.010, 0.011);
    assert_copy(&lab, 4, 1, "gpu0", "host", 0.011, 0.020);
    assert_kernel(&lab, 3, "gpu0", 0.029, 0.030);
    lab_close(&lab);
}

LAB_MAIN(test_write_back, test_clean, test_oldest, test_merged_write_back, test_overtaken,
         test_changed_while_leaving, test_too_big, test_just_fits)
