/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Dates of dependent tasks and of the application's own accesses in the middle of a run, against
 * sums worked out by hand.
 */
#include "sim/testing_scene.h"

static const struct scene scenes[] = {
    /* Three tasks on one handle, here and there: 1 + 3 + 5 ms on the same CPU or another. */
    {"chain",
     {.cpus = 2},
     "a 1; cpu0 1 a:rw; cpu1 3 a:rw; cpu0 5 a:r",
     "1 cpu0 0 1; 2 cpu1 1 4; 3 cpu0 4 9; 3 submit 0; 3 ready 4"},

    /*
     * A writes a until 2 ms; three readers of 1, 3 and 2 ms, two of them on cpu1 one after the
     * other (2 to 5, 5 to 7 ms); the join writes a when the last one has ended, and waits for it
     * alone. The critical path is 2 + 3 + 4 ms.
     */
    {"fork_join",
     {.cpus = 2},
     "a 1; cpu0 2 a:w; cpu0 1 a:r; cpu1 3 a:r; cpu1 2 a:r; cpu0 4 a:rw",
     "2 cpu0 2 3; 3 cpu1 2 5; 4 cpu1 5 7; 5 cpu0 7 11; makespan_s 11; busy_s 12;"
     "critical_path_s 9"},

    /*
     * Events of one date. cpu2, cpu0 and cpu1 end c, a and b at 2 ms, all needed by other tasks,
     * and the copy of d to gpu0 ends then, too. Whoever is submitted in which order, kernels end in
     * the order of workers and before copies: eager's list then is in that order, and cpu3, the
     * only one that may run the followers, takes them in it.
     */
    {"ties",
     {.cpus = 4, .gpus = 1},
     "d 1; a 1; b 1; c 1; gpu0 1 d:rw; cpu2 2 c:rw; cpu0 2 a:rw; cpu1 2 b:rw;"
     "cpu3 1 c:rw; cpu3 1 a:rw; cpu3 1 b:rw",
     "6 cpu3 2 3; 7 cpu3 3 4; 5 cpu3 4 5; 1 gpu0 2 3"},

    /*
     * The application waits for one handle while other work goes on. a: written on cpu0 until 10
     * ms; then on gpu0: copied until 16 ms, kernel until 26 ms, back on the host at 32 ms.
     * Meanwhile cpu0 is busy with task 3 from 10 to 1010 ms. Readers go on beside the application.
     */
    {"acquire",
     {.cpus = 1, .gpus = 1},
     "a 5; now 0; cpu0 10 a:rw; acquire a:r; now 10; done 1; release a; gpu0 10 a:rw; cpu0 1000;"
     "acquire a:r; now 32; done 2; gpu0 10 a:r; gpu0 10 a:rw; release a; wait; now 1010",
     "a host>gpu0 10 16; a#2 gpu0>host 26 32; 3 cpu0 10 1010; 4 gpu0 32 42; 5 gpu0 42 52"},

    /*
     * Data that the application changed itself, which has it at 7 ms, has to be copied again; tasks
     * wait until it has released.
     */
    {"acquire_write",
     {.gpus = 1},
     "a 5; gpu0 1 a:r; acquire a:rw; now 7; gpu0 1 a:r; release a",
     "a#2 host>gpu0 7 13; 2 gpu0 13 14"},

    /* Waiting for everything brings nothing back; duet_unregister does. */
    {"unregister",
     {.gpus = 1},
     "a 5; gpu0 1 a:rw; wait; now 7; unregister a; now 13",
     "a#2 gpu0>host 7 13; copies 2"},

    /* A small window is kept: one task at a time. */
    {"window_of_one",
     {.cpus = 3, .window = 1},
     "any 1; any 1; any 1",
     "1 submit 0; 2 submit 1; 3 submit 2; makespan_s 3"},
};

/*
 * A window of 8 and one CPU: at date 0 eight tasks of 1 s; from then on a submission happens when
 * a task ends. Task k > 8 is submitted at k - 8 s.
 */
static void test_window(void)
{
    OWNED(lab_close) struct lab lab = lab_open(&(struct lab_options){.cpus = 1, .window = 8});
    for (unsigned k = 1; k <= 20; k++) {
        lab_task(&lab, NULL, 1.0, 0);
        assert_seconds(duet_now(lab.duet), k > 8 ? k - 8 : 0);
    }
    lab_finish(&lab);
    for (unsigned k = 1; k <= 20; k++)
        assert_seconds(lab_find(&lab, DUET_EVENT_TASK, k, 1)->submit_s, k > 8 ? k - 8 : 0);
    assert_kernel(&lab, 20, "cpu0", 19, 20);
}

SCENES_MAIN(scenes, lab_add("/window", test_window))
