/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Device memory in simulated time: evictions with and without write-back, tasks that do not fit.
 * GPUs have 8 MB each; nothing but kernels and copies takes time.
 */
#include "sim/testing_scene.h"

enum { MB = 1000000 };

#define SMALL .gpus = 1, .gpu_memory_bytes = 8 * MB

static const struct scene scenes[] = {
    /*
     * gpu0 writes x (6 MB) until 2 ms. y needs its place: x goes to the host from 2 ms (1 + 6 ms),
     * and y comes from 9 ms (1 + 6 ms).
     */
    {"write_back",
     {SMALL},
     "x 6; y 6; gpu0 2 x:w; gpu0 1 y:r",
     "1 gpu0 0 2; x gpu0>host 2 9; y host>gpu0 9 16; 2 gpu0 16 17; evictions 1; write_backs 1"},

    /* x was only read: its place is free at once. 7 ms, kernel until 9 ms, y from 9 to 16 ms. */
    {"clean",
     {SMALL},
     "x 6; y 6; gpu0 2 x:r; gpu0 1 y:r",
     "1 gpu0 7 9; y host>gpu0 9 16; copies 2; evictions 1; write_backs 0"},

    /*
     * Least recently used: a, b and c of 2 MB (blocks are multiples of 256 bytes) fill the memory
     * up to 2 MB; a is used again, so d and e take the free place and that of b. a stays and is
     * read without a copy; b comes again.
     */
    {"oldest",
     {SMALL},
     "a 1.999; b 1.999; c 1.999; d 1.999; e 1.999; gpu0 1 a:r; wait; gpu0 1 b:r; wait;"
     "gpu0 1 c:r; wait; gpu0 1 a:r; wait; gpu0 1 d:r; wait; gpu0 1 e:r; wait; gpu0 1 a:r; wait;"
     "gpu0 1 c:r; wait; gpu0 1 b:r",
     "copies 6; b#2 host>gpu0 22.995 25.994"},

    /*
     * A CPU that wants data on its way to the host waits for that copy; there is no second one.
     * gpu0 writes y (2 MB) until 4 ms and x (5 MB) until 8 ms. z (7 MB), taken at 4 ms, needs all:
     * y leaves from 4 to 7 ms, x from 8 to 14 ms, then z comes (8 ms). The CPU wants y at 5 ms.
     */
    {"merged_write_back",
     {.cpus = 1, SMALL},
     "x 5; y 2; z 7; gpu0 4 y:w; gpu0 4 x:w; gpu0 1 z:r; cpu0 5; cpu0 1 y:r",
     "y gpu0>host 4 7; x gpu0>host 8 14; 5 cpu0 7 8; z host>gpu0 14 22; copies 3"},

    /*
     * A write-back overtaken by a write elsewhere: what arrives at the host is the old contents,
     * and who reads there must wait for the new. y (2 MB) is written on gpu0 until 4 ms, x (5 MB)
     * until 8 ms. z (7 MB), taken at 4 ms, needs all: y leaves from 4 to 7 ms. At 5 ms the rest is
     * submitted: gpu1 writes y anew until 5.5 ms. The CPU wants y then; the new one leaves from 7
     * to 11 ms, its second half at half the speed since x leaves too.
     */
    {"overtaken",
     {.cpus = 1, .gpus = 2, .gpu_memory_bytes = 8 * MB},
     "x 5; y 2; z 7; l 1; gpu0 4 y:w; gpu0 4 x:w; gpu0 1 z:r; cpu0 5 l:w; acquire l:r; release l;"
     "gpu1 0.5 y:w; cpu0 1 y:r",
     "y gpu0>host 4 7; 5 gpu1 5 5.5; y#2 gpu1>host 7 11; 6 cpu0 11 12"},

    /*
     * A task that changes what is being written back waits until that has been read. x (5 MB) comes
     * until 6 ms and is read until 7 ms, when the rest is submitted. y (2 MB) is written until 8
     * ms; x is read again until 9.5 ms. z (5 MB, written only) wants room from 8 ms on, while x is
     * in use: y starts to leave, from 8 to 11 ms. At 9.5 ms x can be dropped, so z is written until
     * 10 ms. y, which is still there, is changed from 11 to 11.5 ms, and leaves until 14.5 ms.
     */
    {"changed_while_leaving",
     {.cpus = 1, SMALL},
     "x 5; y 2; z 5; gpu0 1 x:r; wait; gpu0 1 y:w; gpu0 1.5 x:r; gpu0 0.5 z:w; gpu0 0.5 y:rw;"
     "cpu0 1 y:r",
     "y gpu0>host 8 11; 4 gpu0 9.5 10; 5 gpu0 11 11.5; y#2 gpu0>host 11.5 14.5; 6 cpu0 14.5 15.5"},

    /*
     * Exactly the whole memory fits, also when it is in pieces: three blocks, then one of 8 MB. Out
     * from 1 ms: 1 + 2, 1 + 3, 1 + 1 ms, until 10 ms; the whole is written until 11 ms, out until
     * 20 ms; the three in again: 20 to 23, 27, 29 ms.
     */
    {"just_fits",
     {SMALL},
     "a 2; b 3; c 1; d 8; gpu0 1 a:w b:w c:w; gpu0 1 d:w; gpu0 1 a:r b:r c:r",
     "2 gpu0 10 11; d gpu0>host 11 20; 3 gpu0 29 30"},
};

/* 9 MB do not fit into 8 MB: refused where only GPUs may run it, else left to the CPU. */
static void test_too_big(void)
{
    OWNED(lab_close) struct lab lab = lab_open(&(struct lab_options){.cpus = 1, SMALL});
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
}

SCENES_MAIN(scenes, lab_add("/too_big", test_too_big))
