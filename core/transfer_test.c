/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of the copies: where from, merged, through the host, and overtaken by a write. */
#include "core/testing_script.h"

enum { CPU = 0, GPU0 = 1, GPU1 = 2, BYTES = 1000 };

#define TWO "cpus=1 gpus=2 kinds=2 unasked "

/* A write-back of a from the first device is on its way when it is rewritten on the second. */
#define OVERTAKE                                                                                   \
    "data a*4 b*4; gpu@card0 a:w; gpu0 work 1; gpu@card0 b:w; gpu0 evict a gpu0>host;"             \
    "gpu@card1 a:w; gpu1 work 1; valid a gpu1;"

static const struct script scripts[] = {
    {"data comes from where it arrives first; from the lowest node among equals", TWO,
     "route host>gpu1 {1000|2000|500}; data a*4; gpu@card0 a:r; gpu0 work 1; gpu@card1 a:r;"
     "gpu1 copy a {host>gpu1|host>gpu1|gpu0>gpu1}; done a; gpu1 work 1"},
    {"what arrives first from a device alone comes from elsewhere behind a copy out of it", TWO,
     "route host>gpu1 900; data a*4 b*400; gpu@card0 a:r; gpu@card0 b:w; gpu0 work 2;"
     "{|cpu b:r}; {|cpu0 idle}; {|gpu0 copy b gpu0>host}; gpu@card1 a:r;"
     "gpu1 copy a {gpu0>gpu1|host>gpu1}; done a; gpu1 work 1; {|done b}; cpu0 work {0|1}"},
    {"a hint's copy, which waits for others, is like these once a task waits for it", TWO,
     "data a*4 b*4 c*4; prefetch a gpu0; prefetch b gpu0; prefetch c gpu0; gpu0 copy a host>gpu0;"
     "gpu0 idle; gpu@card0 c:r; gpu0 copy c host>gpu0; gpu0 idle; done a; done c; gpu0 work 1;"
     "valid b host gpu0"},
    {"two tasks that need what is on its way share the copy", TWO,
     "data a*4; gpu@card0 a:r; gpu@card0 a:r; gpu0 copy a host>gpu0; gpu0 idle; unwoken gpu0;"
     "done a; woken gpu0; gpu0 work 2; copies_to_device 1; read_hits 1; merged 1"},
    {"data without a direct route goes through the host, where it is valid then, too",
     TWO "no-peer",
     "data a*4; gpu@card0 a:w; gpu0 work 1; gpu@card1 a:r; cpu a:r; gpu1 idle; cpu0 idle;"
     "gpu0 copy a gpu0>host; gpu0 idle; done a; valid a host gpu0; cpu0 work 1;"
     "gpu1 copy a host>gpu1; done a; gpu1 work 1"},
    {"a reader where an overtaken write-back goes gets the written data, by another copy",
     TWO "blocks=4",
     OVERTAKE "cpu a:r; cpu0 idle; done a; valid a gpu1; cpu0 idle; gpu1 copy a gpu1>host; done a;"
              "cpu0 work 1; valid a host gpu1; drain"},
    {"a task that overwrites waits for the copy, so that this does not overwrite its data",
     TWO "blocks=4",
     OVERTAKE "cpu a:w; cpu0 idle; done a; gpu1 idle; cpu0 work 1; valid a host; drain"},
    {"a device that could not write back because of the overtaken copy tries again after it",
     TWO "blocks=4",
     OVERTAKE "data c*4; gpu@card1 c:w; gpu1 idle; done a; woken gpu1; gpu1 work 1;"
              "copied a gpu1>host; copies 0; write_backs 2; valid a host; drain"},
    {"a chained copy behind an overtaken one carries the new contents", TWO "no-peer blocks=4",
     OVERTAKE "gpu@card0 a:r; done a; drain; wait; valid a host gpu0 gpu1"},
};

/* A policy's estimate: latency + bytes / bandwidth x accelerators, nothing for valid data. */
static void test_estimate(void)
{
    const struct testing_machine make = {.cpus = 1, .gpus = 2, .gpu_archs = 2, .no_peer = true};
    OWNED(testing_end) struct testing *t = testing_init(&make, "eager", 1);
    struct duet_handle *h = testing_handle(t, BYTES), *g = testing_handle(t, BYTES);
    t->hold = true;
    (void)testing_submit(t, t->any, h, DUET_RW, g, DUET_W, 0);
    struct duet_task *task = t->held;
    struct duet_view view = testing_view(t, DUET_SUBMITTER);
    double once = 1e-6 + BYTES / 1e9 * 2;
    g_assert_cmpfloat(duet_view_transfer_seconds(&view, CPU, task, false), ==, 0);
    g_assert_cmpfloat_with_epsilon(duet_view_transfer_seconds(&view, GPU0, task, false), once,
                                   1e-15);
    g_assert_cmpuint(duet_view_valid_bytes(&view, 0, task), ==, 2 * BYTES);
    g_assert_cmpuint(duet_view_valid_bytes(&view, 1, task), ==, 0);
    t->hold = false;
    submit_to(t, t->gpu, "card0", h, DUET_RW, NULL, 0);
    struct duet__engine_command copy = testing_next(t, GPU0);
    g_assert_true(duet_view_valid(&view, 1, task, 0)); /* on its way counts */
    g_assert_cmpfloat(duet_view_transfer_seconds(&view, GPU0, task, false), ==, 0);
    testing_done(t, &copy, 1e-6, 0);
    g_assert_cmpuint(testing_work(t, GPU0, NULL), ==, 1);
    g_assert_cmpfloat_with_epsilon(duet_view_transfer_seconds(&view, GPU1, task, false), 2 * once,
                                   1e-15);
    g_assert_cmpuint(duet_view_valid_bytes(&view, 1, task), ==, BYTES);
    g_assert_false(duet_view_valid(&view, 1, task, 2));
    duet__link(t->core, task, DUET_SUBMITTER, t->now, &t->ops);
    testing_drain(t);
}

SCRIPTS_MAIN(test_scripts, test_estimate)
