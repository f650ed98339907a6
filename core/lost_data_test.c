/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests of a device that is lost: what becomes of its data, of copies from and to it, and of those
 * who wait for them. Each device is an architecture of its own, so that tasks can be sent to it.
 */
#include "core/testing_script.h"

enum { GPU = 1 };

#define ONE "cpus=1 gpus=1 kinds=1 "
#define TWO "cpus=1 gpus=2 kinds=2 "
#define THREE "cpus=1 gpus=3 kinds=3 "

/* Two write-backs, the first in flight and the second queued (only one is decided at a time when
 * one makes enough room, so the next task needs two blocks). */
#define WRITE_BACK_TWO                                                                             \
    "data a b c*2; gpu@card0 a:w; go 1; gpu@card0 b:w; go 1; gpu@cuda c:w;"                        \
    "gpu0 evict a gpu0>host; gpu0 copies 1;"

/* A write-back of a from the first device is on its way when the second writes a anew. */
#define OLD_LEAVES                                                                                 \
    "data a b; gpu@card0 a:w; go 1; gpu@card0 b:w; gpu0 evict a gpu0>host; gpu@card1 a:w; go 1;"

static const struct script scripts[] = {
    /* valid copies */
    {"nobody notices the loss of the only valid copy until it is read; the reader does not run",
     ONE "blocks=4",
     "data a b; gpu@card0 a:w; go 1; lose gpu0; valid a; cpu b:rw; go 1; wait; cpu b:rw a:r; go 0;"
     "end ELOST task 3 (for_cpus): the only valid copy of its data was lost with a device"},
    {"a reader on a device that the lost data would reach through the host does not run",
     TWO "blocks=4 {|no-peer}",
     "data a b; gpu@card0 a:w; go 1; lose gpu0; gpu@card1 b:rw a:r; go 0;"
     "end ELOST task 2 (for_gpus): the only valid copy of its data was lost"},
    {"a task that overwrites lost data does not need it, and makes it valid", TWO "blocks=4",
     "data a b; gpu@card0 a:w; go 1; gpu@card0 b:w; go 1; lose gpu0; cpu a:w; go 1; gpu@card1 b:w;"
     "go 1; valid a host; valid b gpu1; cpu b:r; go 1; acquire a:r; release a"},
    {"what is valid in the host's memory, too, is read from there", TWO "blocks=4",
     "data a; gpu@card0 a:w; go 1; cpu a:r; go 1; copies 1; lose gpu0; valid a host;"
     "gpu@card1 a:rw; go 1; copied a host>gpu1; copies 0"},
    {"what is valid on another device only is read from there, also by the host", THREE "blocks=4",
     "data a; gpu@card0 a:w; go 1; gpu@card1 a:r; go 1; copies 1; valid a gpu0 gpu1; lose gpu0;"
     "gpu@card2 a:r; go 1; cpu a:r; go 1; copied a gpu1>gpu2; copied a gpu1>host; copies 0"},
    {"a task that changes data in place runs again elsewhere on what was there before",
     "cpus=1 gpus=2",
     "data a; gpu a:rw; gpu0 copy a host>gpu0; done a; gpu0 run 1; lose gpu0; lost 1; go 1;"
     "copied a host>gpu1; copies 0; valid a gpu1"},

    /* copies from the lost device to the host */
    {"no task waits for a write-back: its reader notices the loss", TWO "blocks=2",
     WRITE_BACK_TWO "lose gpu0; done a {ELOST|OK}; gpu0 idle; valid a {|host}; valid b; go 1; wait;"
                    "cpu a:r; go {0|1}; cpu b:r; go 0;"
                    "end ELOST task {4|5} (for_cpus): the only"},
    {"a task of the host waits for the write-back of the first", TWO "blocks=2",
     WRITE_BACK_TWO "cpu a:r; cpu0 idle; lose gpu0; done a {ELOST|OK}; gpu0 idle; go {0|2};"
                    "end {ELOST handle 1: its only valid copy was lost with gpu0|OK}"},
    {"a task of the host waits for the write-back of the second", TWO "blocks=2",
     WRITE_BACK_TWO "cpu b:r; cpu0 idle; lose gpu0; done a {ELOST|OK}; gpu0 idle; go 0;"
                    "end ELOST handle 2: its only valid copy was lost with gpu0"},
    {"a task that overwrites waits for the copy as well, and needs nothing of it", TWO "blocks=2",
     WRITE_BACK_TWO "cpu a:w b:w; cpu0 idle; lose gpu0; go 1; lost a; go 1; valid a host;"
                    "valid b host"},
    {"a task that changes what is being written back runs again on what was there before",
     ONE "blocks=2",
     "data a b c; gpu@card0 a:w; go 1; gpu@card0 b:w; go 1; any@cuda,cpu c:w;"
     "gpu0 evict a gpu0>host; unregister b; any a:rw; gpu0 run 3; gpu0 idle; done a; woken gpu0;"
     "gpu0 run 4; valid a host gpu0; lose gpu0; lost 3; lost 4; go 2; copies 0"},
    {"data that is valid on another device, too, is copied from there instead", TWO "blocks=4",
     "data a; gpu@card0 a:w; go 1; gpu@card1 a:r; go 1; copies 1; cpu a:r; cpu0 idle;"
     "{|gpu0 copy a gpu0>host|gpu0 copy a gpu0>host}; lose gpu0; {|lost a|done a}; go 1;"
     "{copied a gpu1>host|copied a gpu1>host|}; copies 0"},
    {"whoever waits for room and could not write back beside a lost copy looks again",
     TWO "blocks=1",
     "data a b; gpu@card0 a:w; go 1; gpu@card1 a:r; go 1; cpu a:r; cpu0 idle;"
     "gpu0 copy a gpu0>host; lose gpu0; gpu@card1 b:w; gpu1 idle; blocked gpu1 1;"
     "done a {ELOST|OK}; gpu0 idle; go 2"},
    {"what arrives after the loss of newer contents is old: the host does not take it",
     THREE "no-peer blocks=1",
     OLD_LEAVES "cpu a:r; cpu0 idle; lose gpu1; done a; valid a; go 0; cpu0 ran 0;"
                "end ELOST handle 1: its only valid copy was lost with a device"},
    {"what arrives after the loss of newer contents is old: it does not go on",
     THREE "no-peer blocks=1",
     OLD_LEAVES "gpu@card2 a:r; gpu2 idle; lose gpu1; done a; valid a; go 0; gpu2 ran 0;"
                "end ELOST handle 1: its only valid copy was lost with a device"},

    /* copies through the host */
    {"a chain from the lost device by way of the host breaks, or was fast enough",
     TWO "no-peer blocks=4",
     "data a; gpu@card0 a:w; go 1; gpu@card1 a:r; gpu1 idle;"
     "{|gpu0 copy a gpu0>host|gpu0 copy a gpu0>host}; lose gpu0; {|lost a|done a}; go {0|0|1};"
     "copies {0|0|1}; end {ELOST handle 1: its only valid copy was lost with gpu0|"
     "ELOST handle 1: its only valid copy was lost with gpu0|OK}"},
    {"a chain's data is also on a third device, which then sends it", THREE "no-peer blocks=4",
     "route gpu0>gpu1 1000; data a; gpu@card0 a:w; go 1; gpu@card1 a:r; go 1; copies 1;"
     "valid a gpu0 gpu1; gpu@card2 a:r; gpu2 idle; gpu0 copy a gpu0>host; lose gpu0; lost a; go 1;"
     "copied a gpu1>host; copied a host>gpu2; copies 0"},
    {"the destination is lost while its data is on its way to the host, and another is of its kind",
     "cpus=1 gpus=3 kinds=2 no-peer",
     "data a; gpu@card1 a:w; go 1; gpu@card0 a:r; gpu0 idle; gpu1 copy a gpu1>host; lose gpu0;"
     "gpu0 takes 1; go 0; done a; go 1; valid a host gpu1 gpu2"},
    {"both ends of a chain are lost", TWO "no-peer blocks=4",
     "data a; gpu@card0 a:w; go 1; gpu@cuda a:r; gpu@card1 a:r; gpu1 idle; gpu0 copy a gpu0>host;"
     "lose {gpu0|gpu1}; lose {gpu1|gpu0}; lost a; go 0; end ELOST lost"},

    /* copies between devices */
    {"the destination learns first that its source is gone, which is not believed after that",
     TWO "blocks=4",
     "route gpu0>gpu1 1000000; data a b; gpu@card0 a:w; go 1; cpu a:r; go 1; copies 1; gpu@cuda "
     "b:w;"
     "gpu0 run 3; gpu@card1 a:r; gpu1 copy a gpu0>gpu1; done a ELOST; gpu1 copy a host>gpu1;"
     "valid a host; done 3; valid b host; unfinished 2; lose gpu0; done a; gpu1 work 2; copies 0;"
     "valid b gpu1; gpu0 ran 1"},
    {"the destination learns it first of data that is nowhere else", TWO "blocks=4",
     "data a; gpu@card0 a:w; go 1; gpu@card1 a:rw; gpu1 copy a gpu0>gpu1; done a ELOST; go 0;"
     "lose gpu0; end ELOST handle 1: its only valid copy was lost with gpu0"},
    {"who waits for room beside what a lost device is reading from it looks again", TWO "blocks=1",
     "data a b; gpu@card0 a:w; go 1; any@cpu,card1 a:r; gpu1 copy a gpu0>gpu1; gpu@card0 b:w;"
     "gpu0 idle; lose gpu1; done a {ELOST|OK}; gpu1 idle; go 2; valid a host; valid b gpu0"},

    /* the application */
    {"acquiring and unregistering say that data was lost before, and give the handle up",
     ONE "blocks=4",
     "data a b; gpu@card0 a:w; go 1; gpu@card0 b:w; go 1; lose gpu0; acquire b:w; release b;"
     "unregister b; acquire a:r ELOST; says handle 1: its only valid copy was lost; release a;"
     "unregister a ELOST; end ELOST handle 1"},
};

static struct duet__engine_command held;

/* While the application waits: the copy is started, the device is lost, the copy reported. */
static int wait_and_lose(void *engine, bool (*reached)(void *arg), void *arg)
{
    struct testing *t = engine;
    if (!reached(arg)) {
        if (!held.copy)
            held = testing_next(t, GPU);
        g_assert_cmpint(held.kind, ==, DUET_COPY);
        lose(t, GPU);
        testing_done(t, &held, 1e-6, DUET_ELOST);
        (void)go(t, NULL);
    }
    return reached(arg) ? DUET_OK : DUET_ESTUCK;
}

/* The application waits for data of the lost device: it learns that this is gone, or gets it. */
static void test_acquire(void)
{
    for (unsigned elsewhere = 0; elsewhere < 2; elsewhere++) {
        struct duet__engine_ops ops = testing_ops;
        struct testing_machine make = {.cpus = 1, .gpus = 2, .gpu_archs = 2};
        struct testing *t = lost_start(&make, "eager");
        struct duet_handle *a = testing_handle(t, SLAB_ALIGN);
        submit_to(t, t->gpu, "card0", a, DUET_W, NULL, 0);
        if (elsewhere)
            submit_to(t, t->gpu, "card1", a, DUET_R, NULL, 0);
        g_assert_cmpuint(go(t, NULL), ==, 1 + elsewhere);
        held = (struct duet__engine_command){.kind = DUET_IDLE};
        ops.wait = wait_and_lose;
        t->core->ops = &ops;
        int expected = elsewhere ? DUET_OK : DUET_ELOST;
        g_assert_cmpint(duet_acquire(t->core, a, DUET_RW), ==, expected);
        t->core->ops = &testing_ops;
        g_assert_cmpint(duet_release(t->core, a), ==, DUET_OK);
        g_assert_true(bit_test(a->valid, 0));
        lost_end(t, expected, "handle 1: its only valid copy was lost with gpu0");
    }
}

SCRIPTS_MAIN(test_scripts, test_acquire)
