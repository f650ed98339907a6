/* SPDX-License-Identifier: Apache-2.0 */
/* Temporary data, and handles that go away without a wait. */
#include <stdint.h>

#include "core/testing_script.h"

#define BOTH "cpus=1 gpus=1 "
#define TOO_EARLY "end EINVAL temporary data that nothing has written before"

static const struct script scripts[] = {
    {"temporary data that stays on a device needs no place in the host's memory", BOTH "computes",
     "temporary a; gpu a:w; gpu a:rw; leave a; go 2; copies 0; handles 0; spare_bytes 0;"
     "registered_bytes 0; temporary a; gpu a:w; cpu a:r; go 2; copies 1; address a 1; leave a"},
    {"hints about what was not written yet bring nothing, and do not fail the run", BOTH "computes",
     "temporary a; prefetch a host; prefetch a gpu0; unused a; gpu a:w; cpu a:r; go 2; leave a"},
    {"if nothing computes there is no memory at all, and all else is the same", BOTH,
     "temporary a; gpu a:w; cpu a:rw; acquire a:r; address a 0; unregister a"},
    {"a task reads what nothing has written", BOTH "computes",
     "temporary a; {cpu a:r|gpu a:rw}; go 0;" TOO_EARLY},
    {"the application reads what nothing has written", BOTH "computes",
     "temporary a; acquire a:r EINVAL; release a;" TOO_EARLY},
    {"what was written is lost like any other", BOTH,
     "temporary a; gpu a:w; go 1; lose gpu0; cpu a:r; go 0; end ELOST lost with a device"},

    /* unregistering without waiting */
    {"data with an address is brought home, after all tasks, and counts for a wait until it is",
     BOTH,
     "data a; gpu a:rw; cpu a:r; gpu a:w; leave a; handles 1; unfinished 4; go 3;"
     "copied a host>gpu0; copied a gpu0>host; copied a gpu0>host; copies 0; handles 0;"
     "forgotten 1"},
    {"data that the application has acquired is released", "cpus=1",
     "data a; acquire a:rw; cpu a:rw; leave a; go 1; handles 0"},
    {"nothing may be done with data that was left", "cpus=1",
     "data a; cpu a:rw; leave a; leave a EINVAL; says already; unregister a EINVAL;"
     "acquire a:r EINVAL; release a EINVAL; cpu a:r; go 1;"
     "end EINVAL submitted after duet_unregister_submit"},
    {"of a run that has failed everything goes away nevertheless", BOTH,
     "data a; temporary b; gpu a:rw b:w; gpu0 copy a host>gpu0; leave a; leave b; cancel; done a;"
     "go 0; handles 0; end ECANCELED"},
};

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
    struct testing *t = stage_of("cpus=1 computes");
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
    struct testing *t = stage_of("cpus=1 computes");
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

static void test_shapes(void)
{
    struct duet_handle *handle;
    struct testing *t = stage_of("cpus=1 computes");
    g_assert_cmpint(duet_register_temporary(t->core, 0, 1, 8, &handle), ==, DUET_EINVAL);
    g_assert_cmpint(duet_register_temporary(t->core, SIZE_MAX / 2, 16, 8, &handle), ==,
                    DUET_EINVAL);
    g_assert_null(handle);
    g_assert_cmpint(duet_unregister_submit(t->core, NULL), ==, DUET_OK);
    lost_end(t, DUET_OK, NULL);
}

/* A device's kernel unregisters, is lost, and does so again elsewhere. */
static void test_inside_lost(void)
{
    struct testing *t = stage_of("gpus=2");
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

SCRIPTS_MAIN(test_scripts, test_memory, test_sizes, test_shapes, test_inside_lost)
