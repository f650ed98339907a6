/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests of copies that are chained on what is coming to another device: who sends to whom, hints,
 * what must stay, and devices that are lost on the way.
 */
#include "core/testing_script.h"

/*
 * Four devices, each an architecture. Copies from and to the host share a bus; those between
 * devices are four times as fast and share nothing. A memory has room for four pieces of data.
 */
#define FOUR "cpus=1 gpus=4 kinds=4 peers=4 blocks="
/* A copy to the first device is in flight; the others wait for it, or for one another. */
#define SPREAD                                                                                     \
    "us 100; data a*100; any@cpu,card0 a:r; gpu0 copy a host>gpu0; any@cpu,card1 a:r; gpu1 idle;"  \
    "gpu@card2 a:r; gpu2 idle; gpu@card3 a:r; gpu3 idle;"

static const struct script scripts[] = {
    {"the host sends it once; each device that has it sends it on, the one that is free first",
     FOUR "400",
     SPREAD "done a; gpu1 copy a gpu0>gpu1; gpu2 copy a gpu0>gpu2; gpu3 idle; done a>gpu1;"
            "gpu3 copy a gpu1>gpu3; done a>gpu2; done a>gpu3; go 4; bytes_to_device 25600;"
            "bytes_between 76800"},
    {"a hinted copy behind others hurries when a task waits for it, at once or later", FOUR "400",
     "us 100; data a*100 b*100; prefetch b gpu0; prefetch a gpu0; {|prefetch a gpu1};"
     "gpu0 copy b host>gpu0; gpu0 idle; gpu1 idle; any@cpu,card1 a:r; gpu1 idle; woken gpu0;"
     "gpu0 copy a host>gpu0; done a; gpu1 copy a gpu0>gpu1; done a; done b; go 1"},
    {"data being forwarded is neither evicted nor written before its last copy has ended",
     FOUR "100",
     SPREAD "data b*100; any@cpu,card0 {b|a}:w; done a; gpu1 copy a gpu0>gpu1;"
            "gpu2 copy a gpu0>gpu2; gpu0 run 1; done 1; gpu0 idle; done a>gpu1; gpu0 idle;"
            "done a>gpu2; valid a host gpu0 gpu1 gpu2; go 4; {valid a host gpu1 gpu2 gpu3|"
            "valid a host}"},
    {"the device in between is lost, with its copy or after it: its followers are served",
     FOUR "400", SPREAD "lose gpu0; done a {ELOST|OK}; gpu0 idle; go 4"},
    {"a device is lost whose copy is chained: copies chained on that come from elsewhere",
     FOUR "400",
     SPREAD "lose gpu1; done a; gpu1 idle; go 4; copies 2; valid a host gpu0 gpu2 gpu3"},
    {"the source is lost: the data comes from the host, through the same tree; or nobody gets it",
     FOUR "400",
     "us 100; data a*100; any@cpu,card1 a:w; gpu1 work 1; {|cpu a:r}; go {0|1}; gpu@card2 a:r;"
     "gpu2 copy a gpu1>gpu2; any@cpu,card0 a:r; gpu0 copy a gpu1>gpu0; gpu@card3 a:r; gpu3 idle;"
     "lose gpu1; done a>gpu0 ELOST; done a>gpu2 ELOST; go {0|3};"
     "end {ELOST handle 1: its only valid copy was lost|OK}"},
};

/* All from the host where nobody looks at what is under way; nothing is chained on old contents. */
static void test_not_chained(void)
{
    for (unsigned old = 0; old < 2; old++) {
        struct testing *t = stage_of(FOUR "400");
        struct duet_handle *a = testing_handle(t, 100 * SLAB_ALIGN);
        t->core->nearest_source = !old;
        submit_to(t, t->any, "cpu,card0", a, DUET_R, NULL, 0);
        struct duet__engine_command first = expect_copy(t, 1, a, 0, 1);
        a->version += old;
        submit_to(t, t->any, "cpu,card1", a, DUET_R, NULL, 0);
        struct duet__engine_command second = expect_copy(t, 2, a, 0, 2);
        a->version -= old;
        testing_done(t, &second, 1e-4, DUET_OK);
        testing_done(t, &first, 1e-4, DUET_OK);
        a->version += old;
        g_assert_cmpuint(go(t, NULL), ==, 2);
        lost_end(t, DUET_OK, "");
    }
}

/*
 * A prefetch for a task that begins elsewhere is not repeated, as nobody reads it: the task is
 * writing its source by now.
 */
static void test_lost_unwanted(void)
{
    struct testing *t = stage_of(FOUR "400");
    struct duet_handle *a = testing_handle(t, 100 * SLAB_ALIGN);
    submit_to(t, t->any, "cpu,card1", a, DUET_W, NULL, 0);
    g_assert_cmpuint(testing_work(t, 2, NULL), ==, 1);
    submit_to(t, t->any, "cpu", a, DUET_R, NULL, 0);
    g_assert_cmpuint(go(t, NULL), ==, 1);
    (void)testing_submit(t, t->cpu, a, DUET_RW, NULL, 0, 0);
    struct duet_view view = testing_view(t, 0);
    struct duet_task *task = duet_pop_head(&view, duet_view_shared(&view), 0);
    for (unsigned w = 1; w <= 4; w++)
        duet_view_prefetch(&view, task, w);
    duet_push_tail(&view, duet_view_shared(&view), task);
    duet__view_flush(&view);
    struct duet__engine_command run = expect_run(t, 0);
    struct duet__engine_command copy = expect_copy(t, 1, a, 2, 1);
    struct duet__engine_command other = expect_copy(t, 3, a, 2, 3);
    expect_idle(t, 4); /* chained */
    lose(t, 2);
    testing_done(t, &copy, 1e-4, DUET_ELOST);
    testing_done(t, &other, 1e-4, DUET_ELOST);
    for (unsigned w = 1; w <= 4; w++)
        expect_idle(t, w);
    testing_done(t, &run, 1e-4, DUET_OK);
    lost_end(t, DUET_OK, "");
}

SCRIPTS_MAIN(test_scripts, test_not_chained, test_lost_unwanted)
