/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests of a device that is lost: what becomes of its data, of copies from and to it, and of those
 * who wait for them.
 */
#include "core/testing_lost.h"

enum { CPU = 0, GPU = 1, GPU2 = 2, GPU3 = 3, BLOCK = SLAB_ALIGN };

/* Each device is an architecture of its own, card0 ..., so that tasks can be sent to it. */
static struct testing *start(unsigned gpus, bool no_peer, unsigned blocks)
{
    struct testing_machine make = {.cpus = 1,
                                   .gpus = gpus,
                                   .gpu_archs = gpus,
                                   .no_peer = no_peer,
                                   .capacity_bytes = (uint64_t)blocks * BLOCK};
    return lost_start(&make, "eager");
}

static bool valid(const struct duet_handle *handle, unsigned node)
{
    return bit_test(handle->valid, node);
}

/* Runs one task with one access, all of it at once. */
static void touch(struct testing *t, const char *where, struct duet_handle *handle, int mode)
{
    submit_to(t, strcmp(where, "cpu") ? t->gpu : t->cpu, where, handle, mode, NULL, 0);
    g_assert_cmpuint(go(t, NULL), ==, 1);
}

static struct duet_route *route(struct testing *t, unsigned source, unsigned destination)
{
    return &t->core->machine.routes[source * t->core->machine.node_count + destination];
}

/* ------------------------------------------------------------------------------------------- */
/* Valid copies */

/* The only valid copy is lost: nobody notices until it is read; the reader does not run. */
static void test_last_copy(void)
{
    struct testing *t = start(1, false, 4);
    struct duet_handle *a = testing_handle(t, BLOCK), *b = testing_handle(t, BLOCK);
    touch(t, "card0", a, DUET_W);
    lose(t, GPU);
    g_assert_false(valid(a, 0) || valid(a, 1));
    touch(t, "cpu", b, DUET_RW);
    g_assert_cmpint(duet_wait(t->core), ==, DUET_OK);
    submit_to(t, t->cpu, NULL, b, DUET_RW, a, DUET_R);
    g_assert_cmpuint(go(t, NULL), ==, 0);
    lost_end(t, DUET_ELOST,
             "task 3 (for_cpus): the only valid copy of its data was lost with a device");
}

/* The last copy is lost, with a reader on another device, to which it would go through the host. */
static void test_last_copy_for_device(void)
{
    for (unsigned no_peer = 0; no_peer < 2; no_peer++) {
        struct testing *t = start(2, no_peer, 4);
        struct duet_handle *a = testing_handle(t, BLOCK), *b = testing_handle(t, BLOCK);
        touch(t, "card0", a, DUET_W);
        lose(t, GPU);
        submit_to(t, t->gpu, "card1", b, DUET_RW, a, DUET_R);
        g_assert_cmpuint(go(t, NULL), ==, 0);
        lost_end(t, DUET_ELOST, "task 2 (for_gpus): the only valid copy of its data was lost");
    }
}

/* A task that overwrites lost data does not need it, and makes it valid. */
static void test_overwritten(void)
{
    struct testing *t = start(2, false, 4);
    struct duet_handle *a = testing_handle(t, BLOCK), *b = testing_handle(t, BLOCK);
    touch(t, "card0", a, DUET_W);
    touch(t, "card0", b, DUET_W);
    lose(t, GPU);
    touch(t, "cpu", a, DUET_W);
    touch(t, "card1", b, DUET_W);
    g_assert_true(valid(a, 0) && valid(b, 2));
    touch(t, "cpu", b, DUET_R);
    g_assert_cmpint(duet_acquire(t->core, a, DUET_R), ==, DUET_OK);
    g_assert_cmpint(duet_release(t->core, a), ==, DUET_OK);
    lost_end(t, DUET_OK, "");
}

/* Valid in the host's memory too: read from there. */
static void test_valid_on_host(void)
{
    struct testing_log log = {0};
    struct testing *t = start(2, false, 4);
    struct duet_handle *a = testing_handle(t, BLOCK);
    touch(t, "card0", a, DUET_W);
    touch(t, "cpu", a, DUET_R);
    lose(t, GPU);
    g_assert_true(valid(a, 0) && !valid(a, 1));
    submit_to(t, t->gpu, "card1", a, DUET_RW, NULL, 0);
    g_assert_cmpuint(go(t, &log), ==, 1);
    g_assert_true(log.count == 1 && log.copies[0].source == DUET_HOST);
    lost_end(t, DUET_OK, "");
}

/* Valid on another device only: from there, also to the host. */
static void test_valid_on_device(void)
{
    struct testing_log log = {0};
    struct testing *t = start(3, false, 4);
    struct duet_handle *a = testing_handle(t, BLOCK);
    touch(t, "card0", a, DUET_W);
    touch(t, "card1", a, DUET_R);
    g_assert_true(!valid(a, 0) && valid(a, 1) && valid(a, 2));
    lose(t, GPU);
    submit_to(t, t->gpu, "card2", a, DUET_R, NULL, 0);
    g_assert_cmpuint(go(t, &log), ==, 1);
    submit_to(t, t->cpu, NULL, a, DUET_R, NULL, 0);
    g_assert_cmpuint(go(t, &log), ==, 1);
    g_assert_cmpuint(log.count, ==, 2);
    g_assert_true(log.copies[0].source == 2 && log.copies[0].destination == 3);
    g_assert_true(log.copies[1].source == 2 && log.copies[1].destination == 0);
    lost_end(t, DUET_OK, "");
}

/* A task that changes data in place runs again elsewhere on what was there before it began. */
static void test_changed_in_place(void)
{
    struct testing_log log = {0};
    struct testing_machine make = {.cpus = 1, .gpus = 2};
    struct testing *t = lost_start(&make, "eager");
    struct duet_handle *a = testing_handle(t, BLOCK);
    (void)testing_submit(t, t->gpu, a, DUET_RW, NULL, 0, 0);
    struct duet__engine_command copy = expect_copy(t, GPU, a, 0, 1);
    testing_done(t, &copy, 1e-6, DUET_OK);
    struct duet__engine_command run = expect_run(t, GPU);
    lose(t, GPU);
    done_lost(t, &run);
    g_assert_cmpuint(go(t, &log), ==, 1);
    g_assert_true(log.count == 1 && log.copies[0].source == DUET_HOST);
    g_assert_true(valid(a, 2) && !valid(a, 0));
    lost_end(t, DUET_OK, "");
}

/* ------------------------------------------------------------------------------------------- */
/* Copies from the lost device to the host                                                      */

enum ending { QUEUED, ENDS_LOST, ENDS_WELL };

/*
 * Two write-backs, the first in flight and the second queued (only one is decided at a time when
 * one makes enough room, so the next task needs two blocks).
 */
static struct duet__engine_command write_back_two(struct testing **made, struct duet_handle **a,
                                                  struct duet_handle **b)
{
    struct testing *t = *made = start(2, false, 2);
    *a = testing_handle(t, BLOCK);
    *b = testing_handle(t, BLOCK);
    touch(t, "card0", *a, DUET_W);
    touch(t, "card0", *b, DUET_W);
    submit_to(t, t->gpu, "cuda", testing_handle(t, 2 * BLOCK), DUET_W, NULL, 0);
    struct duet__engine_command out = expect_copy(t, GPU, *a, 1, 0);
    g_assert_true(out.copy->write_back);
    g_assert_cmpuint(atomic_load(&t->core->workers[GPU].copies), ==, 1);
    return out;
}

/* A loss of data being written back is noticed by its reader: no task waits for the write-back. */
static void test_write_backs(void)
{
    for (unsigned well = 0; well < 2; well++) {
        struct testing *t;
        struct duet_handle *a, *b;
        struct duet__engine_command out = write_back_two(&t, &a, &b);
        lose(t, GPU);
        testing_done(t, &out, 1e-6, well ? DUET_OK : DUET_ELOST);
        expect_idle(t, GPU);
        g_assert_true(valid(a, 0) == (well != 0) && !valid(b, 0));
        g_assert_cmpuint(go(t, NULL), ==, 1);
        g_assert_cmpint(duet_wait(t->core), ==, DUET_OK);
        submit_to(t, t->cpu, NULL, a, DUET_R, NULL, 0);
        g_assert_cmpuint(go(t, NULL), ==, well);
        submit_to(t, t->cpu, NULL, b, DUET_R, NULL, 0);
        g_assert_cmpuint(go(t, NULL), ==, 0);
        lost_end(t, DUET_ELOST,
                 well ? "task 5 (for_cpus): the only" : "task 4 (for_cpus): the only");
    }
}

/* A task of the host waits for the write-back of the first, or of the second. */
static void test_waiting_for_write_back(void)
{
    for (unsigned second = 0; second < 2; second++) {
        for (unsigned well = 0; well < 2; well++) {
            struct testing *t;
            struct duet_handle *a, *b;
            struct duet__engine_command out = write_back_two(&t, &a, &b);
            submit_to(t, t->cpu, NULL, second ? b : a, DUET_R, NULL, 0);
            expect_idle(t, CPU);
            lose(t, GPU);
            testing_done(t, &out, 1e-6, well ? DUET_OK : DUET_ELOST);
            expect_idle(t, GPU);
            bool good = well && !second;
            unsigned runs = go(t, NULL);
            if (good)
                g_assert_cmpuint(runs, ==, 2);
            else
                g_assert_cmpuint(runs, <=, 1);
            lost_end(t, good ? DUET_OK : DUET_ELOST,
                     second ? "handle 2: its only valid copy was lost with gpu0"
                            : "handle 1: its only valid copy was lost with gpu0");
        }
    }
}

/* A task that overwrites waits for the copy as well, and needs nothing of it. */
static void test_writer_waits(void)
{
    struct testing *t;
    struct duet_handle *a, *b;
    struct duet__engine_command out = write_back_two(&t, &a, &b);
    submit_to(t, t->cpu, NULL, a, DUET_W, b, DUET_W);
    expect_idle(t, CPU);
    lose(t, GPU);
    g_assert_cmpuint(go(t, NULL), ==, 1); /* the device's, by the other device */
    done_lost(t, &out);
    g_assert_cmpuint(go(t, NULL), ==, 1);
    g_assert_true(valid(a, 0) && valid(b, 0));
    lost_end(t, DUET_OK, "");
}

/*
 * A task changes in place what is being written back: if the device is lost in the middle of it, it
 * runs again on what was there before, and not on what had been changed when it was copied.
 */
static void test_changed_while_leaving(void)
{
    struct testing_log log = {0};
    struct testing *t = start(1, false, 2);
    struct duet_handle *a = testing_handle(t, BLOCK), *b = testing_handle(t, BLOCK);
    touch(t, "card0", a, DUET_W);
    touch(t, "card0", b, DUET_W);
    submit_to(t, t->any, "cuda,cpu", testing_handle(t, BLOCK), DUET_W, NULL, 0);
    struct duet__engine_command out = expect_copy(t, GPU, a, 1, 0);
    g_assert_cmpint(duet_unregister(t->core, b), ==, DUET_OK); /* makes room otherwise */
    submit_to(t, t->any, NULL, a, DUET_RW, NULL, 0);
    struct duet__engine_command other = expect_run(t, GPU);
    expect_idle(t, GPU);
    testing_done(t, &out, 1e-6, DUET_OK);
    g_assert_true(t->woken[GPU]);
    struct duet__engine_command run = expect_run(t, GPU);
    g_assert_true(valid(a, 0) && valid(a, 1));
    lose(t, GPU);
    done_lost(t, &other);
    done_lost(t, &run);
    g_assert_cmpuint(go(t, &log), ==, 2);
    g_assert_cmpuint(log.count, ==, 0);
    lost_end(t, DUET_OK, "");
}

/* The data is valid on another device: the copy comes from there instead. */
static void test_other_source(void)
{
    for (enum ending ending = QUEUED; ending <= ENDS_WELL; ending++) {
        struct testing_log log = {0};
        struct testing *t = start(2, false, 4);
        struct duet_handle *a = testing_handle(t, BLOCK);
        touch(t, "card0", a, DUET_W);
        touch(t, "card1", a, DUET_R);
        submit_to(t, t->cpu, NULL, a, DUET_R, NULL, 0);
        expect_idle(t, CPU);
        struct duet__engine_command out = {.kind = DUET_IDLE};
        if (ending != QUEUED)
            out = expect_copy(t, GPU, a, 1, 0);
        lose(t, GPU);
        if (ending == ENDS_LOST)
            done_lost(t, &out);
        if (ending == ENDS_WELL)
            testing_done(t, &out, 1e-6, DUET_OK);
        g_assert_cmpuint(go(t, &log), ==, 1);
        g_assert_cmpuint(log.count, ==, ending != ENDS_WELL);
        if (log.count)
            g_assert_true(log.copies[0].source == 2 && log.copies[0].destination == 0);
        lost_end(t, DUET_OK, "");
    }
}

/*
 * The other device that holds the data waits for room and could not write it back, since the lost
 * one's copy was on its way: however that ends, it looks again.
 */
static void test_stalled_behind(void)
{
    for (unsigned well = 0; well < 2; well++) {
        struct testing *t = start(2, false, 1);
        struct duet_handle *a = testing_handle(t, BLOCK), *b = testing_handle(t, BLOCK);
        touch(t, "card0", a, DUET_W);
        touch(t, "card1", a, DUET_R);
        submit_to(t, t->cpu, NULL, a, DUET_R, NULL, 0);
        expect_idle(t, CPU);
        struct duet__engine_command out = expect_copy(t, GPU, a, 1, 0);
        lose(t, GPU);
        submit_to(t, t->gpu, "card1", b, DUET_W, NULL, 0);
        expect_idle(t, GPU2);
        g_assert_true(atomic_load(&t->core->nodes[2].blocked));
        testing_done(t, &out, 1e-6, well ? DUET_OK : DUET_ELOST);
        expect_idle(t, GPU);
        g_assert_cmpuint(go(t, NULL), ==, 2);
        lost_end(t, DUET_OK, "");
    }
}

/*
 * A write-back from the first device is on its way while the data was written anew on the second,
 * which is then lost: what arrives is old, and nobody may take it for the data.
 */
static void test_old_arrives(void)
{
    for (unsigned chained = 0; chained < 2; chained++) {
        struct testing *t = start(3, true, 1);
        struct duet_handle *a = testing_handle(t, BLOCK), *b = testing_handle(t, BLOCK);
        touch(t, "card0", a, DUET_W);
        submit_to(t, t->gpu, "card0", b, DUET_W, NULL, 0);
        struct duet__engine_command out = expect_copy(t, GPU, a, 1, 0);
        touch(t, "card1", a, DUET_W);
        submit_to(t, chained ? t->gpu : t->cpu, chained ? "card2" : "cpu", a, DUET_R, NULL, 0);
        expect_idle(t, chained ? GPU3 : CPU);
        lose(t, GPU2);
        testing_done(t, &out, 1e-6, DUET_OK);
        g_assert_false(valid(a, 0));
        (void)go(t, NULL);
        g_assert_cmpuint(duet_worker_stats(t->core, chained ? GPU3 : CPU).tasks, ==, 0);
        lost_end(t, DUET_ELOST, "handle 1: its only valid copy was lost with a device");
    }
}

/* ------------------------------------------------------------------------------------------- */
/* Copies through the host                                                                      */

/* From the lost device by way of the host to another: the chain breaks, or was fast enough. */
static void test_chain_source(void)
{
    for (enum ending ending = QUEUED; ending <= ENDS_WELL; ending++) {
        struct testing_log log = {0};
        struct testing *t = start(2, true, 4);
        struct duet_handle *a = testing_handle(t, BLOCK);
        touch(t, "card0", a, DUET_W);
        submit_to(t, t->gpu, "card1", a, DUET_R, NULL, 0);
        expect_idle(t, GPU2);
        struct duet__engine_command out = {.kind = DUET_IDLE};
        if (ending != QUEUED)
            out = expect_copy(t, GPU, a, 1, 0);
        lose(t, GPU);
        if (ending == ENDS_LOST)
            done_lost(t, &out);
        if (ending == ENDS_WELL)
            testing_done(t, &out, 1e-6, DUET_OK);
        bool good = ending == ENDS_WELL;
        g_assert_cmpuint(go(t, &log), ==, good);
        g_assert_cmpuint(log.count, ==, good);
        lost_end(t, good ? DUET_OK : DUET_ELOST,
                 "handle 1: its only valid copy was lost with gpu0");
    }
}

/* A chain's data is also on a third device, which then sends it. */
static void test_chain_other_source(void)
{
    struct testing_log log = {0};
    struct testing *t = start(3, true, 4);
    struct duet_handle *a = testing_handle(t, BLOCK);
    route(t, 1, 2)->direct = true;
    touch(t, "card0", a, DUET_W);
    touch(t, "card1", a, DUET_R); /* directly, so that the host has nothing */
    g_assert_false(valid(a, 0));
    submit_to(t, t->gpu, "card2", a, DUET_R, NULL, 0);
    expect_idle(t, GPU3);
    struct duet__engine_command out = expect_copy(t, GPU, a, 1, 0);
    lose(t, GPU);
    done_lost(t, &out);
    g_assert_cmpuint(go(t, &log), ==, 1);
    g_assert_cmpuint(log.count, ==, 2);
    g_assert_true(log.copies[0].source == 2 && log.copies[0].destination == 0);
    g_assert_true(log.copies[1].source == 0 && log.copies[1].destination == 3);
    lost_end(t, DUET_OK, "");
}

/* The destination is lost while the data is on its way to the host for it. */
static void test_chain_destination(void)
{
    struct testing_machine make = {.cpus = 1, .gpus = 3, .gpu_archs = 2, .no_peer = true};
    struct testing *t = lost_start(&make, "eager"); /* the first and the third are of one kind */
    struct duet_handle *a = testing_handle(t, BLOCK);
    touch(t, "card1", a, DUET_W);
    submit_to(t, t->gpu, "card0", a, DUET_R, NULL, 0);
    expect_idle(t, GPU);
    struct duet__engine_command out = expect_copy(t, GPU2, a, 2, 0);
    lose(t, GPU);
    g_assert_cmpuint(t->core->workers[GPU].taken, ==, 1);
    g_assert_cmpuint(go(t, NULL), ==, 0);
    testing_done(t, &out, 1e-6, DUET_OK);
    g_assert_cmpuint(go(t, NULL), ==, 1);
    g_assert_true(valid(a, 0) && valid(a, 3) && !valid(a, 1));
    lost_end(t, DUET_OK, "");
}

/* Both ends are lost. */
static void test_chain_both(void)
{
    for (unsigned first = 0; first < 2; first++) {
        struct testing *t = start(2, true, 4);
        struct duet_handle *a = testing_handle(t, BLOCK);
        touch(t, "card0", a, DUET_W);
        submit_to(t, t->gpu, "cuda", a, DUET_R, NULL, 0);
        submit_to(t, t->gpu, "card1", a, DUET_R, NULL, 0);
        expect_idle(t, GPU2);
        struct duet__engine_command out = expect_copy(t, GPU, a, 1, 0);
        lose(t, first ? GPU2 : GPU);
        lose(t, first ? GPU : GPU2);
        done_lost(t, &out);
        g_assert_cmpuint(go(t, NULL), ==, 0);
        lost_end(t, DUET_ELOST, "lost");
    }
}

/* ------------------------------------------------------------------------------------------- */
/* Copies between devices                                                                       */

/*
 * The destination learns first that the source is gone: it copies from elsewhere, and what the
 * source computed since is not believed.
 */
static void test_told_by_peer(void)
{
    struct testing_log log = {0};
    struct testing *t = start(2, false, 4);
    struct duet_handle *a = testing_handle(t, BLOCK), *b = testing_handle(t, BLOCK);
    route(t, 1, 2)->bandwidth_Bps = 1e12;
    touch(t, "card0", a, DUET_W);
    touch(t, "cpu", a, DUET_R);
    submit_to(t, t->gpu, "cuda", b, DUET_W, NULL, 0);
    struct duet__engine_command run = expect_run(t, GPU);
    submit_to(t, t->gpu, "card1", a, DUET_R, NULL, 0);
    struct duet__engine_command copy = expect_copy(t, GPU2, a, 1, 2);
    testing_done(t, &copy, 1e-6, DUET_ELOST);
    copy = expect_copy(t, GPU2, a, 0, 2);
    g_assert_false(valid(a, 1));
    testing_done(t, &run, 1e-6, DUET_OK);
    g_assert_false(valid(b, 1));
    g_assert_cmpuint(unfinished(t->core), ==, 2);
    lose(t, GPU);
    testing_done(t, &copy, 1e-6, DUET_OK);
    g_assert_cmpuint(testing_work(t, GPU2, &log), ==, 2);
    g_assert_cmpuint(log.count, ==, 0);
    g_assert_true(valid(b, 2));
    g_assert_cmpuint(duet_worker_stats(t->core, GPU).tasks, ==, 1); /* the first one */
    lost_end(t, DUET_OK, "");
}

/* A chain's data is nowhere else. */
static void test_told_by_peer_too_late(void)
{
    struct testing *t = start(2, false, 4);
    struct duet_handle *a = testing_handle(t, BLOCK);
    touch(t, "card0", a, DUET_W);
    submit_to(t, t->gpu, "card1", a, DUET_RW, NULL, 0);
    struct duet__engine_command copy = expect_copy(t, GPU2, a, 1, 2);
    testing_done(t, &copy, 1e-6, DUET_ELOST);
    g_assert_cmpuint(go(t, NULL), ==, 0);
    lose(t, GPU);
    lost_end(t, DUET_ELOST, "handle 1: its only valid copy was lost with gpu0");
}

/* The device that waits for room beside what a lost one is reading from it looks again. */
static void test_pinned_by_lost(void)
{
    for (unsigned well = 0; well < 2; well++) {
        struct testing *t = start(2, false, 1);
        struct duet_handle *a = testing_handle(t, BLOCK), *b = testing_handle(t, BLOCK);
        touch(t, "card0", a, DUET_W);
        submit_to(t, t->any, "cpu,card1", a, DUET_R, NULL, 0);
        struct duet__engine_command copy = expect_copy(t, GPU2, a, 1, 2);
        submit_to(t, t->gpu, "card0", b, DUET_W, NULL, 0);
        expect_idle(t, GPU);
        lose(t, GPU2);
        testing_done(t, &copy, 1e-6, well ? DUET_OK : DUET_ELOST);
        expect_idle(t, GPU2);
        g_assert_cmpuint(go(t, NULL), ==, 2);
        g_assert_true(valid(a, 0) && valid(b, 1));
        lost_end(t, DUET_OK, "");
    }
}

/* ------------------------------------------------------------------------------------------- */
/* The application                                                                              */

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
        struct testing *t = start(2, false, 4);
        struct duet_handle *a = testing_handle(t, BLOCK);
        touch(t, "card0", a, DUET_W);
        if (elsewhere)
            touch(t, "card1", a, DUET_R);
        held = (struct duet__engine_command){.kind = DUET_IDLE};
        ops.wait = wait_and_lose;
        t->core->ops = &ops;
        int expected = elsewhere ? DUET_OK : DUET_ELOST;
        g_assert_cmpint(duet_acquire(t->core, a, DUET_RW), ==, expected);
        t->core->ops = &testing_ops;
        g_assert_cmpint(duet_release(t->core, a), ==, DUET_OK);
        g_assert_true(valid(a, 0));
        lost_end(t, expected, "handle 1: its only valid copy was lost with gpu0");
    }
}

/* Data that was lost before: acquiring and unregistering say so and give the handle up. */
static void test_acquire_after(void)
{
    struct testing *t = start(1, false, 4);
    struct duet_handle *a = testing_handle(t, BLOCK), *b = testing_handle(t, BLOCK);
    touch(t, "card0", a, DUET_W);
    touch(t, "card0", b, DUET_W);
    lose(t, GPU);
    g_assert_cmpint(duet_acquire(t->core, b, DUET_W), ==, DUET_OK);
    g_assert_cmpint(duet_release(t->core, b), ==, DUET_OK);
    g_assert_cmpint(duet_unregister(t->core, b), ==, DUET_OK);
    REFUSED(t->core, duet_acquire(t->core, a, DUET_R), DUET_ELOST,
            "handle 1: its only valid copy was lost");
    g_assert_cmpint(duet_release(t->core, a), ==, DUET_OK);
    g_assert_cmpint(duet_unregister(t->core, a), ==, DUET_ELOST);
    lost_end(t, DUET_ELOST, "handle 1");
}

TEST_MAIN(test_last_copy, test_last_copy_for_device, test_overwritten, test_valid_on_host,
          test_valid_on_device, test_changed_in_place, test_write_backs,
          test_waiting_for_write_back, test_writer_waits, test_changed_while_leaving,
          test_other_source, test_stalled_behind, test_old_arrives, test_chain_source,
          test_chain_other_source, test_chain_destination, test_chain_both, test_told_by_peer,
          test_told_by_peer_too_late, test_pinned_by_lost, test_acquire, test_acquire_after)
