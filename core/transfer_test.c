/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of the copies: where from, merged, through the host, and overtaken by a write. */
#include "core/testing.h"

enum { CPU = 0, GPU0 = 1, GPU1 = 2, BYTES = 1000 };

static struct testing *start(bool no_peer, uint64_t capacity_bytes)
{
    struct testing_machine make = {.cpus = 1,
                                   .gpus = 2,
                                   .gpu_archs = 2,
                                   .no_peer = no_peer,
                                   .capacity_bytes = capacity_bytes};
    return testing_init(&make, "eager", 1);
}

/* A task on one of the two devices. */
static void on(struct testing *t, const char *where, struct duet_handle *handle,
               enum duet_mode mode)
{
    double flops = 1;
    struct duet_access access = {handle, mode};
    struct duet_task_desc desc = {.codelet = t->gpu,
                                  .accesses = &access,
                                  .access_count = 1,
                                  .args = &flops,
                                  .args_bytes = sizeof flops,
                                  .where = duet_where(t->core, where)};
    g_assert_cmpint(duet_submit(t->core, &desc), ==, DUET_OK);
}

static void check_copy(const struct duet__engine_command *command, unsigned worker, unsigned source,
                       unsigned destination)
{
    g_assert_cmpint(command->kind, ==, DUET_COPY);
    g_assert_cmpuint(command->worker, ==, worker);
    g_assert_cmpuint(command->copy->source, ==, source);
    g_assert_cmpuint(command->copy->destination, ==, destination);
    g_assert_cmpint(command->stream, ==,
                    destination == DUET_HOST ? DUET_STREAM_OUT : DUET_STREAM_IN);
}

static struct duet_route *route(struct testing *t, unsigned source, unsigned destination)
{
    return &t->core->machine.routes[source * t->core->machine.node_count + destination];
}

/* From where it arrives first; from the lowest node among equals. */
static void test_source(void)
{
    static const double host_Bps[] = {1e9, 2e9, 5e8};
    static const unsigned sources[] = {0, 0, 1};
    for (unsigned i = 0; i < 3; i++) {
        OWNED(testing_end) struct testing *t = start(false, 0);
        struct duet_handle *h = testing_handle(t, BYTES);
        route(t, 0, 2)->bandwidth_Bps = host_Bps[i];
        on(t, "card0", h, DUET_R);
        g_assert_cmpuint(testing_work(t, GPU0, NULL), ==, 1);
        on(t, "card1", h, DUET_R);
        struct duet__engine_command command = testing_next(t, GPU1);
        check_copy(&command, GPU1, sources[i], 2);
        g_assert_cmpuint(command.copy->bytes, ==, BYTES);
        testing_done(t, &command, 1e-6, 0);
        g_assert_cmpuint(testing_work(t, GPU1, NULL), ==, 1);
    }
}

/* Behind a copy out of one device, what arrives first from there alone comes from elsewhere. */
static void test_load(void)
{
    for (unsigned busy = 0; busy < 2; busy++) {
        OWNED(testing_end) struct testing *t = start(false, 0);
        struct duet_handle *h = testing_handle(t, BYTES), *other = testing_handle(t, 100 * BYTES);
        route(t, 0, 2)->bandwidth_Bps = route(t, 1, 2)->bandwidth_Bps * 0.9;
        on(t, "card0", h, DUET_R);
        on(t, "card0", other, DUET_W);
        g_assert_cmpuint(testing_work(t, GPU0, NULL), ==, 2);
        struct duet__engine_command out = {.kind = DUET_IDLE};
        if (busy) {
            (void)testing_submit(t, t->cpu, other, DUET_R, NULL, 0, 0);
            g_assert_cmpint(testing_next(t, CPU).kind, ==, DUET_IDLE);
            out = testing_next(t, GPU0);
            check_copy(&out, GPU0, 1, 0);
        }
        on(t, "card1", h, DUET_R);
        struct duet__engine_command in = testing_next(t, GPU1);
        check_copy(&in, GPU1, busy ? 0 : 1, 2);
        testing_done(t, &in, 1e-6, 0);
        g_assert_cmpuint(testing_work(t, GPU1, NULL), ==, 1);
        if (busy) {
            testing_done(t, &out, 2e-6, 0);
            g_assert_cmpuint(testing_work(t, CPU, NULL), ==, 1);
        }
    }
}

/* A hint's copy, which waits for others, is like these once a task waits for it. */
static void test_hinted(void)
{
    OWNED(testing_end) struct testing *t = start(false, 0);
    struct duet_handle *h[3];
    for (unsigned i = 0; i < 3; i++) {
        h[i] = testing_handle(t, BYTES);
        g_assert_cmpint(duet_prefetch(t->core, h[i], 1), ==, DUET_OK);
    }
    struct duet__engine_command first = testing_next(t, GPU0);
    check_copy(&first, GPU0, 0, 1);
    g_assert_true(first.copy->handle == h[0]);
    g_assert_cmpint(testing_next(t, GPU0).kind, ==, DUET_IDLE);
    on(t, "card0", h[2], DUET_R);
    struct duet__engine_command wanted = testing_next(t, GPU0);
    check_copy(&wanted, GPU0, 0, 1);
    g_assert_true(wanted.copy->handle == h[2]);
    g_assert_cmpint(testing_next(t, GPU0).kind, ==, DUET_IDLE);
    testing_done(t, &first, 1e-6, 0);
    testing_done(t, &wanted, 1e-6, 0);
    g_assert_cmpuint(testing_work(t, GPU0, NULL), ==, 1);
    g_assert_true(bit_test(h[1]->valid, 1));
}

/* Two tasks that need what is on its way share the copy; one that overwrites waits for it. */
static void test_merging(void)
{
    struct duet_stats stats;
    OWNED(testing_end) struct testing *t = start(false, 0);
    struct duet_handle *h = testing_handle(t, BYTES);
    on(t, "card0", h, DUET_R);
    on(t, "card0", h, DUET_R);
    struct duet__engine_command copy = testing_next(t, GPU0);
    check_copy(&copy, GPU0, 0, 1);
    g_assert_cmpint(testing_next(t, GPU0).kind, ==, DUET_IDLE);
    g_assert_false(t->woken[GPU0]);
    testing_done(t, &copy, 1e-6, 0);
    g_assert_true(t->woken[GPU0]);
    g_assert_cmpuint(testing_work(t, GPU0, NULL), ==, 2);
    duet_stats(t->core, &stats);
    g_assert_cmpuint(stats.copies_to_device, ==, 1);
    g_assert_cmpuint(stats.read_hits, ==, 1);
    g_assert_cmpuint(stats.merged, ==, 1);
}

/* Data without a direct route goes through the host, where it is valid then, too. */
static void test_staging(void)
{
    OWNED(testing_end) struct testing *t = start(true, 0);
    struct duet_handle *h = testing_handle(t, BYTES);
    on(t, "card0", h, DUET_W);
    g_assert_cmpuint(testing_work(t, GPU0, NULL), ==, 1);
    on(t, "card1", h, DUET_R);
    (void)testing_submit(t, t->cpu, h, DUET_R, NULL, 0, 0);
    g_assert_cmpint(testing_next(t, GPU1).kind, ==, DUET_IDLE);
    g_assert_cmpint(testing_next(t, CPU).kind, ==, DUET_IDLE); /* merged with the way out */
    struct duet__engine_command out = testing_next(t, GPU0);
    check_copy(&out, GPU0, 1, 0);
    g_assert_cmpint(testing_next(t, GPU0).kind, ==, DUET_IDLE);
    testing_done(t, &out, 1e-6, 0);
    g_assert_true(bit_test(h->valid, 0));
    g_assert_cmpuint(testing_work(t, CPU, NULL), ==, 1);
    struct duet__engine_command in = testing_next(t, GPU1);
    check_copy(&in, GPU1, 0, 2);
    testing_done(t, &in, 1e-6, 0);
    g_assert_cmpuint(testing_work(t, GPU1, NULL), ==, 1);
}

/* Leaves a write-back of `h` from the first device on its way, and `h` rewritten on the second. */
static struct duet__engine_command overtake(struct testing *t, struct duet_handle *h)
{
    struct duet_handle *other = testing_handle(t, BYTES);
    on(t, "card0", h, DUET_W);
    g_assert_cmpuint(testing_work(t, GPU0, NULL), ==, 1);
    on(t, "card0", other, DUET_W);
    struct duet__engine_command out = testing_next(t, GPU0);
    check_copy(&out, GPU0, 1, 0);
    g_assert_true(out.copy->write_back);
    on(t, "card1", h, DUET_W);
    g_assert_cmpuint(testing_work(t, GPU1, NULL), ==, 1);
    g_assert_true(bit_test(h->valid, 2) && !bit_test(h->valid, 1) && !bit_test(h->valid, 0));
    return out;
}

/* A reader at the destination of an overtaken write-back gets the written data, by another copy. */
static void test_overtaken(void)
{
    OWNED(testing_end) struct testing *t = start(false, 1024);
    struct duet_handle *h = testing_handle(t, BYTES);
    struct duet__engine_command out = overtake(t, h);
    (void)testing_submit(t, t->cpu, h, DUET_R, NULL, 0, 0);
    g_assert_cmpint(testing_next(t, CPU).kind, ==, DUET_IDLE);
    testing_done(t, &out, 1e-6, 0);
    g_assert_false(bit_test(h->valid, 0));
    g_assert_cmpint(testing_next(t, CPU).kind, ==, DUET_IDLE);
    struct duet__engine_command second = testing_next(t, GPU1);
    check_copy(&second, GPU1, 2, 0);
    g_assert_false(second.copy->write_back);
    testing_done(t, &second, 1e-6, 0);
    g_assert_cmpuint(testing_work(t, CPU, NULL), ==, 1);
    g_assert_true(bit_test(h->valid, 0) && bit_test(h->valid, 2));
    testing_drain(t);
}

/*
 * A task that overwrites waits for the copy, so that this does not overwrite its data, and no
 * longer.
 */
static void test_overtaken_by_writer(void)
{
    OWNED(testing_end) struct testing *t = start(false, 1024);
    struct duet_handle *h = testing_handle(t, BYTES);
    struct duet__engine_command out = overtake(t, h);
    (void)testing_submit(t, t->cpu, h, DUET_W, NULL, 0, 0);
    g_assert_cmpint(testing_next(t, CPU).kind, ==, DUET_IDLE);
    testing_done(t, &out, 1e-6, 0);
    g_assert_cmpint(testing_next(t, GPU1).kind, ==, DUET_IDLE);
    g_assert_cmpuint(testing_work(t, CPU, NULL), ==, 1);
    g_assert_true(bit_test(h->valid, 0) && !bit_test(h->valid, 2));
    testing_drain(t);
}

/* A device that could not write back because of the overtaken copy tries again after it. */
static void test_overtaken_and_evicted(void)
{
    OWNED(testing_end) struct testing *t = start(false, 1024);
    struct duet_handle *h = testing_handle(t, BYTES), *third = testing_handle(t, BYTES);
    struct duet__engine_command out = overtake(t, h);
    on(t, "card1", third, DUET_W);
    g_assert_cmpint(testing_next(t, GPU1).kind, ==, DUET_IDLE);
    testing_done(t, &out, 1e-6, 0);
    g_assert_true(t->woken[GPU1]);
    struct testing_log log = {0};
    g_assert_cmpuint(testing_work(t, GPU1, &log), ==, 1);
    g_assert_cmpuint(log.count, ==, 1);
    g_assert_true(log.copies[0].write_back && log.copies[0].handle == h);
    g_assert_true(bit_test(h->valid, 0) && !bit_test(h->valid, 2));
    testing_drain(t);
}

/* A chained copy behind an overtaken one carries the new contents. */
static void test_overtaken_chain(void)
{
    OWNED(testing_end) struct testing *t = start(true, 1024);
    struct duet_handle *h = testing_handle(t, BYTES);
    struct duet__engine_command out = overtake(t, h);
    on(t, "card0", h, DUET_R); /* on the second device now: through the host */
    testing_done(t, &out, 1e-6, 0);
    testing_drain(t);
    g_assert_cmpint(duet_wait(t->core), ==, DUET_OK);
    g_assert_true(bit_test(h->valid, 0) && bit_test(h->valid, 1) && bit_test(h->valid, 2));
}

/* A policy's estimate: latency + bytes / bandwidth x accelerators, nothing for valid data. */
static void test_estimate(void)
{
    OWNED(testing_end) struct testing *t = start(true, 0);
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
    on(t, "card0", h, DUET_RW);
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

TEST_MAIN(test_hinted, test_source, test_load, test_merging, test_staging, test_overtaken,
          test_overtaken_by_writer, test_overtaken_and_evicted, test_overtaken_chain, test_estimate)
