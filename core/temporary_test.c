/* SPDX-License-Identifier: Apache-2.0 */
/* Temporary data, and handles that go away without a wait. */
#include <stdint.h>

#include "core/testing_lost.h"

static struct testing *start(unsigned cpus, unsigned gpus, bool computes)
{
    struct testing *t = lost_start(&(struct testing_machine){.cpus = cpus, .gpus = gpus}, "eager");
    t->core->computes = computes;
    return t;
}

static struct duet_handle *temporary(struct testing *t, size_t rows, size_t cols)
{
    struct duet_handle *handle;
    g_assert_cmpint(duet_register_temporary(t->core, rows, cols, 8, &handle), ==, DUET_OK);
    g_assert_null(duet_address(handle));
    return handle;
}

/* The host's memory is taken when a task there writes, and used again. */
static void test_memory(void)
{
    struct testing *t = start(1, 0, true);
    struct duet_handle *a = temporary(t, 100, 7);
    submit_to(t, t->cpu, NULL, a, DUET_W, NULL, 0);
    submit_to(t, t->cpu, NULL, a, DUET_RW, NULL, 0);
    g_assert_cmpint(duet_acquire(t->core, a, DUET_R), ==, DUET_OK);
    void *memory = duet_address(a);
    g_assert_nonnull(memory);
    g_assert_cmpuint((uintptr_t)memory % 4096 % 64, ==, 0);
    memset(memory, 1, sizeof(double) * 100 * 7);
    g_assert_cmpint(duet_unregister(t->core, a), ==, DUET_OK);
    g_assert_cmpuint(t->core->spare_bytes, >=, 5600);
    struct duet_handle *b = temporary(t, 7, 100);
    g_assert_cmpint(duet_acquire(t->core, b, DUET_W), ==, DUET_OK);
    g_assert_true(duet_address(b) == memory);
    g_assert_cmpuint(t->core->spare_bytes, ==, 0);
    g_assert_cmpint(duet_release(t->core, b), ==, DUET_OK);
    lost_end(t, DUET_OK, NULL); /* with b, which is freed with the runtime */
}

/* Every size has room, and sizes of an octave are four. */
static void test_sizes(void)
{
    struct testing *t = start(1, 0, true);
    void *before = NULL;
    for (size_t bytes = 1; bytes < 200000; bytes += 1 + bytes / 50) {
        struct duet_handle *handle;
        g_assert_cmpint(duet_register_temporary(t->core, bytes, 1, 1, &handle), ==, DUET_OK);
        g_assert_cmpint(duet_acquire(t->core, handle, DUET_W), ==, DUET_OK);
        char *memory = duet_address(handle);
        memset(memory, 0, bytes); /* what is beyond its end would be seen by a sanitizer */
        g_assert_cmpuint((uintptr_t)memory % (bytes > 16384 ? 4096 : 64), ==, 0);
        g_assert_cmpint(duet_unregister(t->core, handle), ==, DUET_OK);
        before = memory;
    }
    g_assert_nonnull(before);
    /* more than is kept */
    struct duet_handle *large;
    uint64_t kept = t->core->spare_bytes;
    g_assert_cmpint(duet_register_temporary(t->core, (size_t)300 << 20, 1, 1, &large), ==, DUET_OK);
    g_assert_cmpint(duet_acquire(t->core, large, DUET_W), ==, DUET_OK);
    g_assert_cmpint(duet_unregister(t->core, large), ==, DUET_OK);
    g_assert_cmpuint(t->core->spare_bytes, ==, kept);
    lost_end(t, DUET_OK, NULL);
}

/* Temporary data that stays on a device needs no place in the host's memory. */
static void test_device(void)
{
    struct testing_log log = {0};
    struct testing *t = start(1, 1, true);
    struct duet_handle *a = temporary(t, 10, 10);
    submit_to(t, t->gpu, NULL, a, DUET_W, NULL, 0);
    submit_to(t, t->gpu, NULL, a, DUET_RW, NULL, 0);
    g_assert_cmpint(duet_unregister_submit(t->core, a), ==, DUET_OK);
    g_assert_cmpuint(go(t, &log), ==, 2);
    g_assert_cmpuint(log.count, ==, 0);
    g_assert_null(t->core->handles);
    g_assert_cmpuint(t->core->spare_bytes, ==, 0);
    g_assert_cmpuint(duet__registered_bytes(t->core), ==, 0);
    /* from there to the host's when a task needs it */
    a = temporary(t, 10, 10);
    submit_to(t, t->gpu, NULL, a, DUET_W, NULL, 0);
    submit_to(t, t->cpu, NULL, a, DUET_R, NULL, 0);
    g_assert_cmpuint(go(t, &log), ==, 2);
    g_assert_cmpuint(log.count, ==, 1);
    g_assert_nonnull(duet_address(a));
    g_assert_cmpint(duet_unregister_submit(t->core, a), ==, DUET_OK);
    lost_end(t, DUET_OK, NULL);
}

/* Hints about what was not written yet bring nothing, and do not fail the run. */
static void test_hints(void)
{
    struct testing_log log = {0};
    struct testing *t = start(1, 1, true);
    struct duet_handle *a = temporary(t, 10, 10);
    g_assert_cmpint(duet_prefetch(t->core, a, DUET_HOST), ==, DUET_OK);
    g_assert_cmpint(duet_prefetch(t->core, a, 1), ==, DUET_OK);
    g_assert_cmpint(duet_wont_use(t->core, a), ==, DUET_OK);
    submit_to(t, t->gpu, NULL, a, DUET_W, NULL, 0);
    submit_to(t, t->cpu, NULL, a, DUET_R, NULL, 0);
    g_assert_cmpuint(go(t, &log), ==, 2);
    g_assert_cmpint(duet_unregister_submit(t->core, a), ==, DUET_OK);
    lost_end(t, DUET_OK, NULL);
}

/* If nothing computes there is no memory at all, and all else is the same. */
static void test_simulated(void)
{
    struct testing *t = start(1, 1, false);
    struct duet_handle *a = temporary(t, 10, 10);
    submit_to(t, t->gpu, NULL, a, DUET_W, NULL, 0);
    submit_to(t, t->cpu, NULL, a, DUET_RW, NULL, 0);
    g_assert_cmpint(duet_acquire(t->core, a, DUET_R), ==, DUET_OK);
    g_assert_null(duet_address(a));
    g_assert_cmpint(duet_unregister(t->core, a), ==, DUET_OK);
    lost_end(t, DUET_OK, NULL);
}

static void test_read_first(void)
{
    for (unsigned i = 0; i < 3; i++) {
        struct testing *t = start(1, 1, true);
        struct duet_handle *a = temporary(t, 10, 10);
        if (i < 2)
            submit_to(t, i ? t->gpu : t->cpu, NULL, a, i ? DUET_RW : DUET_R, NULL, 0);
        else
            g_assert_cmpint(duet_acquire(t->core, a, DUET_R), ==, DUET_EINVAL);
        (void)go(t, NULL);
        if (i == 2)
            g_assert_cmpint(duet_release(t->core, a), ==, DUET_OK);
        lost_end(t, DUET_EINVAL, "temporary data that nothing has written before");
    }
    /* one that was written is lost like any other */
    struct testing *t = lost_start(&(struct testing_machine){.cpus = 1, .gpus = 1}, "eager");
    struct duet_handle *a = temporary(t, 10, 10);
    submit_to(t, t->gpu, NULL, a, DUET_W, NULL, 0);
    (void)go(t, NULL);
    lose(t, 1);
    submit_to(t, t->cpu, NULL, a, DUET_R, NULL, 0);
    (void)go(t, NULL);
    lost_end(t, DUET_ELOST, "lost with a device");
}

static void test_shapes(void)
{
    struct duet_handle *handle;
    struct testing *t = start(1, 0, true);
    g_assert_cmpint(duet_register_temporary(t->core, 0, 1, 8, &handle), ==, DUET_EINVAL);
    g_assert_cmpint(duet_register_temporary(t->core, SIZE_MAX / 2, 16, 8, &handle), ==,
                    DUET_EINVAL);
    g_assert_null(handle);
    lost_end(t, DUET_OK, NULL);
}

/* ------------------------------------------------------------------------------------------- */
/* Unregistering without waiting                                                                */

/* Data with an address is brought home, after all tasks, and counts for a wait until it is. */
static void test_home(void)
{
    struct testing_log log = {0};
    struct testing *t = start(1, 1, false);
    struct duet_handle *a = testing_handle(t, 100);
    submit_to(t, t->gpu, NULL, a, DUET_RW, NULL, 0);
    submit_to(t, t->cpu, NULL, a, DUET_R, NULL, 0);
    submit_to(t, t->gpu, NULL, a, DUET_W, NULL, 0);
    g_assert_cmpint(duet_unregister_submit(t->core, a), ==, DUET_OK);
    g_assert_nonnull(t->core->handles);
    g_assert_cmpuint(unfinished(t->core), ==, 4);
    g_assert_cmpuint(go(t, &log), ==, 3);
    g_assert_cmpuint(log.count, ==, 3); /* there, back for the reader, and home */
    g_assert_null(t->core->handles);
    g_assert_cmpuint(t->forgotten, ==, 1);
    g_assert_cmpint(duet_unregister_submit(t->core, NULL), ==, DUET_OK);
    lost_end(t, DUET_OK, NULL);
}

/* Data that the application has acquired is released. */
static void test_acquired(void)
{
    struct testing *t = start(1, 0, false);
    struct duet_handle *a = testing_handle(t, 100);
    g_assert_cmpint(duet_acquire(t->core, a, DUET_RW), ==, DUET_OK);
    submit_to(t, t->cpu, NULL, a, DUET_RW, NULL, 0);
    g_assert_cmpint(duet_unregister_submit(t->core, a), ==, DUET_OK);
    g_assert_cmpuint(go(t, NULL), ==, 1);
    g_assert_null(t->core->handles);
    lost_end(t, DUET_OK, NULL);
}

static void test_misuse(void)
{
    struct testing *t = start(1, 0, false);
    struct duet_handle *a = testing_handle(t, 100);
    submit_to(t, t->cpu, NULL, a, DUET_RW, NULL, 0);
    g_assert_cmpint(duet_unregister_submit(t->core, a), ==, DUET_OK);
    REFUSED(t->core, duet_unregister_submit(t->core, a), DUET_EINVAL, "already");
    g_assert_cmpint(duet_unregister(t->core, a), ==, DUET_EINVAL);
    g_assert_cmpint(duet_acquire(t->core, a, DUET_R), ==, DUET_EINVAL);
    g_assert_cmpint(duet_release(t->core, a), ==, DUET_EINVAL);
    submit_to(t, t->cpu, NULL, a, DUET_R, NULL, 0);
    (void)go(t, NULL);
    lost_end(t, DUET_EINVAL, "submitted after duet_unregister_submit");
}

/* A run that has failed: everything goes away nevertheless. */
static void test_failed(void)
{
    struct testing *t = start(1, 1, false);
    struct duet_handle *a = testing_handle(t, 100), *b = temporary(t, 3, 3);
    submit_to(t, t->gpu, NULL, a, DUET_RW, b, DUET_W);
    struct duet__engine_command copy = expect_copy(t, 1, a, DUET_HOST, 1);
    g_assert_cmpint(duet_unregister_submit(t->core, a), ==, DUET_OK);
    g_assert_cmpint(duet_unregister_submit(t->core, b), ==, DUET_OK);
    duet_cancel(t->core);
    testing_done(t, &copy, 1e-6, 0);
    (void)go(t, NULL);
    g_assert_null(t->core->handles);
    lost_end(t, DUET_ECANCELED, "");
}

/* A device's kernel unregisters, is lost, and does so again elsewhere. */
static void test_inside_lost(void)
{
    struct testing *t = lost_start(&(struct testing_machine){.gpus = 2}, "eager");
    struct duet_handle *a = testing_handle(t, 100), *b = temporary(t, 3, 3);
    submit_to(t, t->gpu, NULL, a, DUET_W, NULL, 0);
    unsigned first = t->woken[0] ? 0 : 1;
    for (unsigned i = 0; i < 2; i++) {
        struct duet__engine_command run = expect_run(t, i ? 1 - first : first);
        t->hold = true;
        t->in_kernel = 1 + run.worker;
        g_assert_cmpint(duet_unregister_submit(t->core, b), ==, DUET_OK);
        t->in_kernel = 0;
        t->hold = false;
        duet__link_after(run.task, t->held);
        if (i == 0) {
            g_assert_cmpint(duet__worker_lost(t->core, first, t->now, &t->ops), ==, DUET_OK);
            testing_done(t, &run, 1e-6, DUET_ELOST);
        } else {
            testing_done(t, &run, 1e-6, 0);
        }
    }
    (void)go(t, NULL);
    g_assert_true(t->core->handles == a);
    lost_end(t, DUET_OK, NULL);
}

TEST_MAIN(test_memory, test_sizes, test_device, test_hints, test_simulated, test_read_first,
          test_shapes, test_home, test_acquired, test_misuse, test_failed, test_inside_lost)
