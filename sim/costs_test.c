/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Costs of the runtime itself, each alone and then all together: dates against sums worked out by
 * hand. A worker decides at the date of the event that woke it; the costs of deciding and launching
 * delay its command.
 */
#include "sim/testing_scene.h"

static const struct scene scenes[] = {
    /* The k-th task is submitted at k times 10 ms; the CPU is idle by then. */
    {"submit",
     {.cpus = 1, .costs = {.submit_s = 0.010}},
     "any 1; now 10; any 1; now 20; any 1; now 30",
     "1 submit 10; 2 submit 20; 3 submit 30; 1 cpu0 10 11; 2 cpu0 20 21; 3 cpu0 30 31"},

    /*
     * Submissions of 10 ms while copies are under way and workers busy: a (5 MB) is wanted at 10 ms
     * and arrives at 16 ms, b is wanted at 30 ms; the CPU is busy from 20 to 45 ms and takes task
     * 4, submitted at 40 ms, then.
     */
    {"submit_beside",
     {.cpus = 1, .gpus = 1, .costs = {.submit_s = 0.010}},
     "a 5; b 5; gpu0 1 a:r; cpu0 25; gpu0 1 b:r; cpu0 1",
     "a host>gpu0 10 16; b host>gpu0 30 36; 2 cpu0 20 45; 4 cpu0 45 46; 4 submit 40"},

    /* 1 ms for each task taken: 1 to 6 ms, 7 to 12 ms. */
    {"pop", {.cpus = 1, .costs = {.pop_s = 0.001}}, "any 5; any 5", "1 cpu0 1 6; 2 cpu0 7 12"},

    /* 1 ms for each task made ready: cpu0 makes two ready at 5 ms, goes on at 7; cpu1 at once. */
    {"push",
     {.cpus = 2, .costs = {.push_s = 0.001}},
     "a 1; cpu0 5 a:w; cpu0 1 a:r; cpu1 1 a:r",
     "1 cpu0 0 5; 2 cpu0 7 8; 3 cpu1 5 6"},

    /*
     * A submission that makes its task ready pushes it as well: 10 ms to submit, 2 ms to push, so
     * that the k-th task is there at 10 k + 2 (k - 1) ms. One that has to wait is pushed by
     * somebody else: task 4 at 46 ms, task 5 (which waits for task 4 until 146 ms) at 58 ms, task 6
     * at 68 ms.
     */
    {"submit_and_push",
     {.cpus = 2, .costs = {.submit_s = 0.010, .push_s = 0.002}},
     "a 1; cpu0 1; cpu0 1; cpu0 1; cpu1 100 a:rw; cpu1 1 a:rw; cpu0 1",
     "1 submit 10; 2 submit 22; 3 submit 34; 4 submit 46; 5 submit 58; 6 submit 68;"
     "3 cpu0 34 35; 5 cpu1 148 149; 6 cpu0 68 69"},

    /* 1 ms for each victim asked, which is one: a submission is local to worker 0, not to cpu1. */
    {"steal",
     {.cpus = 2, .policy = "ws", .costs = {.steal_s = 0.001}},
     "cpu1 5",
     "1 cpu1 1 6; steals 1; steal_attempts 1; pops 0"},

    /*
     * Launches are behind one another: 1 ms, 2 ms; the second kernel is launched during the first.
     * The third is taken at 6 ms, when the first one has ended: launched at 7 ms.
     */
    {"kernel_launch",
     {.gpus = 1, .costs = {.kernel_launch_s = 0.001}},
     "any 5; any 5; any 5",
     "1 gpu0 1 6; 2 gpu0 6 11; 3 gpu0 11 16"},

    /* 1 ms a copy: a starts at 1 ms and ends at 7 ms; b, launched at 2 ms, follows until 13 ms. */
    {"copy_launch",
     {.gpus = 1, .costs = {.copy_launch_s = 0.001}},
     "a 5; b 5; any 5 a:r b:r",
     "a host>gpu0 1 7; b host>gpu0 7 13; 1 gpu0 13 18"},

    /*
     * All of them, in ms: submit 10, push 1, pop 2, kernel launch 3, copy launch 4. Task 1 is
     * submitted at 10 and taken at 12; the copy of a (5 MB) is launched at 16 and ends at 22; the
     * kernel is launched at 25 and ends at 35. Task 2 needs a, and was submitted at 21 (10 + push 1
     * + 10); made ready at 35, it is pushed (by a worker) by 36, taken by 38, its kernel launched
     * at 41 and ends at 51.
     */
    {"all",
     {.gpus = 1,
      .costs = {.submit_s = 0.010,
                .push_s = 0.001,
                .pop_s = 0.002,
                .kernel_launch_s = 0.003,
                .copy_launch_s = 0.004}},
     "a 5; any 10 a:rw; any 10 a:rw",
     "a host>gpu0 16 22; 1 gpu0 25 35; 2 gpu0 41 51; 2 submit 21; 2 ready 35; pushes 1; pops 2;"
     "first_submit_s 10; makespan_s 41"},

    /*
     * The application's thread has its own date. It asks for a, which task 1 needs until 11 ms,
     * after three submissions of 10 ms: at 30 ms. It keeps a while it submits two more, until 50
     * ms: only then can task 4, submitted at 40 ms, begin; task 5 needs nothing.
     */
    {"release",
     {.cpus = 2, .costs = {.submit_s = 0.010}},
     "a 1; cpu0 1 a:rw; cpu1 1; cpu1 1; acquire a:rw; now 30; cpu0 1 a:rw; cpu1 1; release a",
     "1 cpu0 10 11; 5 cpu1 50 51; 4 cpu0 50 51"},
};

/*
 * Kernels of 20 us with a window of one: each is launched when the one before it has ended, and
 * begins 10 us later. That is so of the second one, which was not there yet when the GPU was asked,
 * and of the last one after one of 200 us; the others are short, launched ahead, up to 64.
 */
static void test_short_window(void)
{
    OWNED(lab_close)
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
}

SCENES_MAIN(scenes, lab_add("/short_window", test_short_window))
