/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests of copies that are chained on what is coming to another device: who sends to whom, hints,
 * what must stay, and devices that are lost on the way.
 */
#include "core/testing_lost.h"

enum { CPU = 0, BYTES = 100 * SLAB_ALIGN, DEVICES = 4 };

/*
 * Four devices, which are workers and nodes 1 to 4, of architectures card0 to card3. Copies from
 * and to the host share a bus; those between devices are four times as fast and share nothing.
 */
static struct testing *start(unsigned blocks)
{
    const struct testing_machine make = {.cpus = 1,
                                         .gpus = DEVICES,
                                         .gpu_archs = DEVICES,
                                         .capacity_bytes = (uint64_t)blocks * BYTES};
    struct testing *t = lost_start(&make, "eager");
    for (unsigned s = 1; s <= DEVICES; s++) {
        for (unsigned d = 1; d <= DEVICES; d++) {
            struct duet_route *route = &t->core->machine.routes[s * (DEVICES + 1) + d];
            route->count = 0;
            route->bandwidth_Bps *= 4;
        }
    }
    return t;
}

static void on(struct testing *t, unsigned worker, struct duet_handle *handle, int mode)
{
    static const char *const where[] = {"cpu", "cpu,card0", "cpu,card1", "card2", "card3"};
    submit_to(t, worker > 2 ? t->gpu : t->any, where[worker], handle, mode, NULL, 0);
}

/*
 * Spreads data: a copy to the first device is in flight; the others wait for it, or for one
 * another.
 */
static struct duet__engine_command spread(struct testing *t, struct duet_handle *handle)
{
    on(t, 1, handle, DUET_R);
    struct duet__engine_command first = expect_copy(t, 1, handle, 0, 1);
    for (unsigned w = 2; w <= DEVICES; w++) {
        on(t, w, handle, DUET_R);
        expect_idle(t, w);
    }
    return first;
}

/* All is finished, and nothing is counted as queued any more. */
static void end(struct testing *t, int error, const char *part)
{
    const struct duet_machine *machine = &t->core->machine;
    for (unsigned i = 0; i < machine->link_count + 2 * machine->node_count; i++)
        g_assert_cmpint(atomic_load(&t->core->queued_ns[i]), ==, 0);
    lost_end(t, error, part);
}

/* The host sends it once; each device that has it sends it on, the one that is free first. */
static void test_tree(void)
{
    struct duet_stats stats;
    struct testing *t = start(4);
    struct duet_handle *a = testing_handle(t, BYTES);
    struct duet__engine_command first = spread(t, a);
    testing_done(t, &first, 1e-4, DUET_OK);
    struct duet__engine_command second = expect_copy(t, 2, a, 1, 2);
    struct duet__engine_command third = expect_copy(t, 3, a, 1, 3);
    expect_idle(t, 4);
    testing_done(t, &second, 1e-4, DUET_OK);
    struct duet__engine_command fourth = expect_copy(t, 4, a, 2, 4);
    testing_done(t, &third, 1e-4, DUET_OK);
    testing_done(t, &fourth, 1e-4, DUET_OK);
    g_assert_cmpuint(go(t, NULL), ==, 4);
    duet_stats(t->core, &stats);
    g_assert_true(stats.bytes_to_device == BYTES && stats.bytes_between == 3 * BYTES);
    end(t, DUET_OK, "");
}

/* All from the host where nobody looks at what is under way; nothing is chained on old contents. */
static void test_not_chained(void)
{
    for (unsigned old = 0; old < 2; old++) {
        struct testing *t = start(4);
        struct duet_handle *a = testing_handle(t, BYTES);
        t->core->nearest_source = !old;
        on(t, 1, a, DUET_R);
        struct duet__engine_command first = expect_copy(t, 1, a, 0, 1);
        a->version += old;
        on(t, 2, a, DUET_R);
        struct duet__engine_command second = expect_copy(t, 2, a, 0, 2);
        a->version -= old;
        testing_done(t, &second, 1e-4, DUET_OK);
        testing_done(t, &first, 1e-4, DUET_OK);
        a->version += old;
        g_assert_cmpuint(go(t, NULL), ==, 2);
        end(t, DUET_OK, "");
    }
}

/* A hinted copy behind others hurries when a task waits for it: at once, or later. */
static void test_hinted(void)
{
    for (unsigned later = 0; later < 2; later++) {
        struct testing *t = start(4);
        struct duet_handle *a = testing_handle(t, BYTES), *other = testing_handle(t, BYTES);
        g_assert_cmpint(duet_prefetch(t->core, other, 1), ==, DUET_OK);
        g_assert_cmpint(duet_prefetch(t->core, a, 1), ==, DUET_OK);
        if (later)
            g_assert_cmpint(duet_prefetch(t->core, a, 2), ==, DUET_OK);
        struct duet__engine_command ahead = expect_copy(t, 1, other, 0, 1);
        expect_idle(t, 1);
        expect_idle(t, 2);
        on(t, 2, a, DUET_R);
        expect_idle(t, 2);
        g_assert_true(t->woken[1]);
        struct duet__engine_command hurried = expect_copy(t, 1, a, 0, 1);
        testing_done(t, &hurried, 1e-4, DUET_OK);
        struct duet__engine_command chained = expect_copy(t, 2, a, 1, 2);
        testing_done(t, &chained, 1e-4, DUET_OK);
        testing_done(t, &ahead, 1e-4, DUET_OK);
        g_assert_cmpuint(go(t, NULL), ==, 1);
        end(t, DUET_OK, "");
    }
}

/* Data being forwarded can be neither evicted nor written before its last copy has ended. */
static void test_stays(void)
{
    for (unsigned writes = 0; writes < 2; writes++) {
        struct testing *t = start(1);
        struct duet_handle *a = testing_handle(t, BYTES), *b = testing_handle(t, BYTES);
        struct duet__engine_command first = spread(t, a);
        on(t, 1, writes ? a : b, DUET_W);
        testing_done(t, &first, 1e-4, DUET_OK);
        struct duet__engine_command second = expect_copy(t, 2, a, 1, 2);
        struct duet__engine_command third = expect_copy(t, 3, a, 1, 3);
        struct duet__engine_command run = expect_run(t, 1);
        testing_done(t, &run, 1e-4, DUET_OK);
        expect_idle(t, 1);
        testing_done(t, &second, 1e-4, DUET_OK);
        expect_idle(t, 1);
        testing_done(t, &third, 1e-4, DUET_OK);
        g_assert_true(bit_test(a->valid, 1) && bit_test(a->valid, 2) && bit_test(a->valid, 3));
        g_assert_cmpuint(go(t, NULL), ==, 4);
        g_assert_true(bit_test(a->valid, 4) == !writes);
        end(t, DUET_OK, "");
    }
}

/* The device in between is lost, before its copy, with it or after: its followers are served. */
static void test_lost_between(void)
{
    for (unsigned well = 0; well < 2; well++) {
        struct testing *t = start(4);
        struct duet_handle *a = testing_handle(t, BYTES);
        struct duet__engine_command first = spread(t, a);
        lose(t, 1);
        testing_done(t, &first, 1e-4, well ? DUET_OK : DUET_ELOST);
        expect_idle(t, 1);
        g_assert_cmpuint(go(t, NULL), ==, 4); /* the first task on the CPU */
        end(t, DUET_OK, "");
    }
}

/*
 * A device is lost while its own copy is still chained: copies chained on that come from elsewhere.
 */
static void test_lost_chained(void)
{
    struct testing_log log = {0};
    struct testing *t = start(4);
    struct duet_handle *a = testing_handle(t, BYTES);
    struct duet__engine_command first = spread(t, a);
    lose(t, 2);
    testing_done(t, &first, 1e-4, DUET_OK);
    expect_idle(t, 2);
    g_assert_cmpuint(go(t, &log), ==, 4); /* the lost one's on the CPU */
    g_assert_cmpuint(log.count, ==, 2);
    g_assert_true(bit_test(a->valid, 4) && !bit_test(a->valid, 2));
    end(t, DUET_OK, "");
}

/* The source is lost: the data comes from the host, through the same tree; or nobody gets it. */
static void test_lost_source(void)
{
    for (unsigned elsewhere = 0; elsewhere < 2; elsewhere++) {
        struct testing *t = start(4);
        struct duet_handle *a = testing_handle(t, BYTES);
        on(t, 2, a, DUET_W);
        g_assert_cmpuint(testing_work(t, 2, NULL), ==, 1);
        if (elsewhere) {
            on(t, CPU, a, DUET_R);
            g_assert_cmpuint(go(t, NULL), ==, 1);
        }
        on(t, 3, a, DUET_R);
        struct duet__engine_command copy = expect_copy(t, 3, a, 2, 3);
        on(t, 1, a, DUET_R);
        struct duet__engine_command other = expect_copy(t, 1, a, 2, 1);
        on(t, 4, a, DUET_R);
        expect_idle(t, 4);
        lose(t, 2);
        testing_done(t, &other, 1e-4, DUET_ELOST);
        testing_done(t, &copy, 1e-4, DUET_ELOST);
        g_assert_cmpuint(go(t, NULL), ==, elsewhere ? 3 : 0);
        g_assert_true(bit_test(a->valid, 4) == elsewhere);
        end(t, elsewhere ? DUET_OK : DUET_ELOST, "handle 1: its only valid copy was lost");
    }
}

/*
 * A prefetch for a task that begins elsewhere is not repeated, as nobody reads it: the task is
 * writing its source by now.
 */
static void test_lost_unwanted(void)
{
    struct testing *t = start(4);
    struct duet_handle *a = testing_handle(t, BYTES);
    on(t, 2, a, DUET_W);
    g_assert_cmpuint(testing_work(t, 2, NULL), ==, 1);
    on(t, CPU, a, DUET_R);
    g_assert_cmpuint(go(t, NULL), ==, 1);
    (void)testing_submit(t, t->cpu, a, DUET_RW, NULL, 0, 0);
    struct duet_view view = testing_view(t, CPU);
    struct duet_task *task = duet_pop_head(&view, duet_view_shared(&view), CPU);
    for (unsigned w = 1; w <= DEVICES; w++)
        duet_view_prefetch(&view, task, w);
    duet_push_tail(&view, duet_view_shared(&view), task);
    duet__view_flush(&view);
    struct duet__engine_command run = expect_run(t, CPU);
    struct duet__engine_command copy = expect_copy(t, 1, a, 2, 1);
    struct duet__engine_command other = expect_copy(t, 3, a, 2, 3);
    expect_idle(t, 4); /* chained */
    lose(t, 2);
    testing_done(t, &copy, 1e-4, DUET_ELOST);
    testing_done(t, &other, 1e-4, DUET_ELOST);
    for (unsigned w = 1; w <= DEVICES; w++)
        expect_idle(t, w);
    testing_done(t, &run, 1e-4, DUET_OK);
    end(t, DUET_OK, "");
}

TEST_MAIN(test_tree, test_not_chained, test_hinted, test_stays, test_lost_between,
          test_lost_chained, test_lost_source, test_lost_unwanted)
