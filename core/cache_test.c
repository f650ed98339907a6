/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of device memory as a cache: who makes room, what is copied for it, and who waits. */
#include "core/testing.h"

enum { BLOCK = SLAB_ALIGN, CPU = 0, GPU = 1, GPU2 = 2 };

static struct testing *start(unsigned blocks, unsigned gpus)
{
    struct testing_machine make = {.cpus = 1,
                                   .gpus = gpus,
                                   .gpu_archs = gpus,
                                   .capacity_bytes = blocks * BLOCK};
    return testing_init(&make, "eager", 1);
}

static bool valid(const struct duet_handle *handle, unsigned node)
{
    return bit_test(handle->valid, node);
}

/* Runs one task on the device, all of it at once. */
static void touch(struct testing *t, struct testing_log *log, struct duet_handle *a, int mode_a,
                  struct duet_handle *b, int mode_b)
{
    (void)testing_submit(t, t->gpu, a, mode_a, b, mode_b, 0);
    g_assert_cmpuint(testing_work(t, GPU, log), ==, 1);
}

static void test_lru(void)
{
    struct testing_log log = {0};
    struct duet_handle *h[5];
    struct duet_stats stats;
    OWNED(testing_end) struct testing *t = start(3, 1);
    for (unsigned i = 0; i < 5; i++)
        h[i] = testing_handle(t, BLOCK);
    for (unsigned i = 0; i < 3; i++)
        touch(t, &log, h[i], DUET_R, NULL, 0);
    touch(t, &log, h[0], DUET_R, NULL, 0); /* a hit makes it the newest */
    g_assert_cmpuint(log.count, ==, 3);
    touch(t, &log, h[3], DUET_R, NULL, 0);
    g_assert_true(valid(h[0], 1) && !valid(h[1], 1) && valid(h[2], 1) && valid(h[3], 1));
    touch(t, &log, h[4], DUET_R, NULL, 0);
    g_assert_true(valid(h[0], 1) && !valid(h[2], 1) && valid(h[3], 1) && valid(h[4], 1));
    /* what was written elsewhere is the first to go, however recent */
    (void)testing_submit(t, t->cpu, h[4], DUET_W, NULL, 0, 0);
    g_assert_cmpuint(testing_work(t, CPU, &log), ==, 1);
    touch(t, &log, h[1], DUET_R, NULL, 0);
    g_assert_true(valid(h[0], 1) && valid(h[3], 1));
    duet_stats(t->core, &stats);
    g_assert_cmpuint(stats.evictions, ==, 3);
    g_assert_cmpuint(stats.write_backs, ==, 0);
    g_assert_cmpuint(log.count, ==, 6);
    g_assert_cmpuint(stats.reads_on_device, ==, 7);
    g_assert_cmpuint(stats.read_hits, ==, 1);
}

/* Only a sole copy is written back; its place is free when that is done, and not before. */
static void test_write_back(void)
{
    struct testing_log log = {0};
    struct duet_handle *h[3];
    struct duet_stats stats;
    OWNED(testing_end) struct testing *t = start(2, 1);
    for (unsigned i = 0; i < 3; i++)
        h[i] = testing_handle(t, BLOCK);
    touch(t, &log, h[0], DUET_W, NULL, 0);
    g_assert_cmpuint(log.count, ==, 0);
    touch(t, &log, h[1], DUET_R, NULL, 0);
    (void)testing_submit(t, t->gpu, h[2], DUET_R, NULL, 0, 0);
    struct duet__engine_command command = testing_next(t, GPU);
    g_assert_cmpint(command.kind, ==, DUET_COPY);
    g_assert_true(command.copy->write_back && command.copy->handle == h[0]);
    g_assert_cmpint(command.stream, ==, DUET_STREAM_OUT);
    g_assert_cmpint(testing_next(t, GPU).kind, ==, DUET_IDLE);
    g_assert_true(valid(h[0], 1) && !valid(h[0], 0));
    testing_done(t, &command, 1e-6, 0);
    g_assert_true(!valid(h[0], 1) && valid(h[0], 0));
    g_assert_cmpuint(testing_work(t, GPU, &log), ==, 1);
    g_assert_true(valid(h[1], 1) && valid(h[2], 1));
    /* read by the host, it is no sole copy any more: no write-back */
    touch(t, &log, h[1], DUET_RW, NULL, 0);
    (void)testing_submit(t, t->cpu, h[1], DUET_R, NULL, 0, 0);
    testing_drain(t);
    touch(t, &log, h[0], DUET_R, h[2], DUET_R);
    duet_stats(t->core, &stats);
    g_assert_cmpuint(stats.write_backs, ==, 1);
    g_assert_cmpuint(stats.evictions, ==, 2);
    g_assert_cmpuint(stats.copies_to_host, ==, 2);
}

/* A task in preparation keeps its data; the next one waits for it and is woken by its end. */
static void test_pins(void)
{
    struct duet_handle *h[4];
    OWNED(testing_end) struct testing *t = start(3, 1);
    for (unsigned i = 0; i < 4; i++)
        h[i] = testing_handle(t, BLOCK);
    (void)testing_submit(t, t->gpu, h[0], DUET_W, h[1], DUET_W, 0);
    (void)testing_submit(t, t->gpu, h[2], DUET_W, h[3], DUET_W, 0);
    struct duet__engine_command command = testing_next(t, GPU);
    g_assert_cmpint(command.kind, ==, DUET_RUN);
    g_assert_cmpint(testing_next(t, GPU).kind, ==, DUET_IDLE);
    g_assert_cmpuint(atomic_load(&t->core->nodes[1].pinned), ==, 2);
    g_assert_true(atomic_load(&t->core->nodes[1].blocked));
    testing_done(t, &command, 1e-6, 0);
    g_assert_cmpuint(atomic_load(&t->core->nodes[1].pinned), ==, 0);
    g_assert_cmpuint(testing_work(t, GPU, NULL), ==, 1);
    g_assert_false(atomic_load(&t->core->nodes[1].blocked));
    g_assert_true(valid(h[2], 1) && valid(h[3], 1));
}

/* A copy to another device that reads the data pins it; its end wakes the worker that waits. */
static void test_pinned_by_another(void)
{
    struct duet_handle *a, *b;
    OWNED(testing_end) struct testing *t = start(1, 2);
    a = testing_handle(t, BLOCK);
    b = testing_handle(t, BLOCK);
    (void)testing_submit(t, t->gpu, a, DUET_W, NULL, 0, 0);
    g_assert_cmpuint(testing_work(t, GPU, NULL), ==, 1);
    (void)testing_submit(t, t->gpu, a, DUET_R, NULL, 0, 0);
    struct duet__engine_command copy = testing_next(t, GPU2);
    g_assert_cmpint(copy.kind, ==, DUET_COPY);
    g_assert_cmpuint(copy.copy->source, ==, 1);
    (void)testing_submit(t, t->gpu, b, DUET_W, NULL, 0, 0);
    g_assert_cmpint(testing_next(t, GPU).kind, ==, DUET_IDLE);
    g_assert_false(t->woken[GPU]);
    testing_done(t, &copy, 1e-6, 0);
    g_assert_true(t->woken[GPU]);
    g_assert_cmpuint(testing_work(t, GPU, NULL), ==, 1);
    testing_drain(t);
    g_assert_cmpint(duet_wait(t->core), ==, DUET_OK);
}

/* Room enough, but in pieces, one of which the task itself holds: all is cleared, then it fits. */
static void test_fragmented(void)
{
    for (int mode = DUET_R; mode <= DUET_RW; mode++) {
        struct testing_log log = {0};
        struct duet_handle *h[4], *large;
        OWNED(testing_end) struct testing *t = start(4, 1);
        for (unsigned i = 0; i < 4; i++) {
            h[i] = testing_handle(t, BLOCK);
            touch(t, &log, h[i], mode, NULL, 0);
        }
        large = testing_handle(t, 3 * BLOCK);
        touch(t, &log, h[1], DUET_R, large, DUET_R);
        g_assert_cmpuint(t->core->nodes[1].slab.used_bytes, ==, 4 * BLOCK);
        unsigned again = 0;
        for (unsigned i = 0; i < log.count; i++)
            again += log.copies[i].handle == h[1] && log.copies[i].destination == 1;
        g_assert_cmpuint(again, ==, mode == DUET_W ? 1 : 2);
    }
}

/* A task of exactly the slab's size runs after anything; a byte more is refused, and says why. */
static void test_limits(void)
{
    struct testing_log log = {0};
    double flops = 1;
    OWNED(testing_end) struct testing *t = start(4, 1);
    struct duet_handle *whole = testing_handle(t, 4 * BLOCK);
    struct duet_handle *half = testing_handle(t, 2 * BLOCK), *rest = testing_handle(t, BLOCK + 1);
    struct duet_handle *more = testing_handle(t, BLOCK + 1);
    touch(t, &log, whole, DUET_RW, NULL, 0);
    touch(t, &log, half, DUET_RW, rest, DUET_RW);
    touch(t, &log, whole, DUET_RW, NULL, 0);
    struct duet_access accesses[] = {{half, DUET_R}, {rest, DUET_R}, {more, DUET_R}};
    struct duet_task_desc desc = {.codelet = t->gpu,
                                  .accesses = accesses,
                                  .access_count = 3,
                                  .args = &flops,
                                  .args_bytes = sizeof flops};
    REFUSED(t->core, duet_submit(t->core, &desc), DUET_ETOOBIG, "needs 1536 bytes");
    TOLD(t->core, "1024");
    desc.codelet = t->any; /* runs where there is room */
    g_assert_cmpint(duet_submit(t->core, &desc), ==, DUET_OK);
    g_assert_cmpint(duet_wait(t->core), ==, DUET_OK);
    g_assert_cmpuint(duet_worker_stats(t->core, CPU).tasks, ==, 1);
}

/*
 * Data that a granted task will overwrite is dropped, not written back: the writer may be at work
 * in the host's memory, which the copy would overwrite.
 */
static void test_dead(void)
{
    struct testing_log log = {0};
    struct duet_stats stats;
    OWNED(testing_end) struct testing *t = start(1, 1);
    struct duet_handle *a = testing_handle(t, BLOCK), *b = testing_handle(t, BLOCK);
    touch(t, &log, a, DUET_W, NULL, 0);
    (void)testing_submit(t, t->cpu, a, DUET_W, NULL, 0, 0);
    struct duet__engine_command command = testing_next(t, CPU);
    g_assert_cmpint(command.kind, ==, DUET_RUN);
    touch(t, &log, b, DUET_R, NULL, 0);
    g_assert_cmpuint(log.count, ==, 1);
    g_assert_cmpuint(log.copies[0].destination, ==, 1);
    testing_done(t, &command, 1e-6, 0);
    g_assert_true(valid(a, 0) && !valid(a, 1));
    duet_stats(t->core, &stats);
    g_assert_cmpuint(stats.write_backs, ==, 0);
}

/*
 * A place that is used again while its contents are being written back stays. Who only reads them
 * need not wait for that; who changes them does.
 */
static void test_used_while_leaving(void)
{
    for (int mode = DUET_R; mode <= DUET_RW; mode++) {
        OWNED(testing_end) struct testing *t = start(2, 1);
        struct duet_handle *a = testing_handle(t, BLOCK), *b = testing_handle(t, BLOCK);
        struct duet_handle *c = testing_handle(t, BLOCK);
        touch(t, NULL, a, DUET_W, NULL, 0);
        touch(t, NULL, b, DUET_W, NULL, 0);
        (void)testing_submit(t, t->gpu, c, DUET_W, NULL, 0, 0);
        struct duet__engine_command out = testing_next(t, GPU);
        g_assert_true(out.kind == DUET_COPY && out.copy->handle == a);
        g_assert_true(a->replicas[1]->leaving);
        (void)duet_unregister(t->core, b); /* makes room otherwise */
        struct duet__engine_command run = testing_next(t, GPU);
        g_assert_cmpint(run.kind, ==, DUET_RUN);
        (void)testing_submit(t, t->gpu, a, mode, NULL, 0, 0);
        struct duet__engine_command again = testing_next(t, GPU);
        g_assert_cmpint(again.kind, ==, mode == DUET_R ? DUET_RUN : DUET_IDLE);
        t->woken[GPU] = false;
        testing_done(t, &out, 1e-6, 0);
        g_assert_true(t->woken[GPU] == (mode != DUET_R) && valid(a, 1) && valid(a, 0));
        if (mode != DUET_R)
            again = testing_next(t, GPU);
        g_assert_cmpint(again.kind, ==, DUET_RUN);
        testing_done(t, &run, 1e-6, 0);
        testing_done(t, &again, 1e-6, 0);
        g_assert_true(valid(a, 1) && valid(a, 0) == (mode == DUET_R));
        g_assert_cmpuint(t->core->nodes[1].leaving_bytes, ==, 0);
    }
}

/* New contents for a place whose old ones are being written back come after these, by the host. */
static void test_renewed_while_leaving(void)
{
    for (int mode = DUET_R; mode <= DUET_RW; mode++) {
        OWNED(testing_end) struct testing *t = start(2, 2);
        struct duet_handle *a = testing_handle(t, BLOCK), *b = testing_handle(t, BLOCK);
        touch(t, NULL, a, DUET_W, NULL, 0);
        touch(t, NULL, b, DUET_W, NULL, 0);
        (void)testing_submit(t, t->gpu, testing_handle(t, BLOCK), DUET_W, NULL, 0, 0);
        struct duet__engine_command out = testing_next(t, GPU);
        g_assert_true(out.kind == DUET_COPY && out.copy->handle == a);
        (void)duet_unregister(t->core, b);
        struct duet__engine_command run = testing_next(t, GPU);
        g_assert_cmpint(run.kind, ==, DUET_RUN);
        (void)testing_submit(t, t->gpu, a, DUET_W, NULL, 0, 0);
        g_assert_cmpuint(testing_work(t, GPU2, NULL), ==, 1);
        g_assert_true(!valid(a, 1) && valid(a, 2));
        (void)testing_submit(t, t->gpu, a, mode, NULL, 0, 0);
        g_assert_cmpint(testing_next(t, GPU).kind, ==, DUET_IDLE);
        g_assert_cmpuint(testing_work(t, GPU2, NULL), ==, 0);
        testing_done(t, &out, 1e-6, 0);
        struct testing_log log = {0};
        g_assert_cmpuint(testing_work(t, GPU2, &log), ==, 0);
        g_assert_cmpuint(testing_work(t, GPU, &log), ==, 1);
        g_assert_cmpuint(log.count, ==, mode & DUET_R ? 2 : 0);
        testing_done(t, &run, 1e-6, 0);
        g_assert_true(valid(a, 1) && valid(a, 2) == (mode == DUET_R));
        g_assert_cmpint(duet_wait(t->core), ==, DUET_OK);
    }
}

/* Unregistering gives every place back. */
static void test_unregister(void)
{
    OWNED(testing_end) struct testing *t = start(8, 2);
    for (unsigned i = 0; i < 50; i++) {
        struct duet_handle *h = testing_handle(t, (i % 4 + 1) * BLOCK);
        for (int mode = DUET_R; mode <= DUET_RW; mode++)
            (void)testing_submit(t, t->gpu, h, mode, NULL, 0, 0);
        g_assert_cmpint(duet_unregister(t->core, h), ==, DUET_OK);
        g_assert_cmpuint(t->core->nodes[1].slab.used_bytes, ==, 0);
        g_assert_cmpuint(t->core->nodes[2].slab.used_bytes, ==, 0);
    }
    g_assert_null(t->core->handles);
}

TEST_MAIN(test_lru, test_write_back, test_pins, test_pinned_by_another, test_fragmented,
          test_limits, test_dead, test_used_while_leaving, test_renewed_while_leaving,
          test_unregister)
