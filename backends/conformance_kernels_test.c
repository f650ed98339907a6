/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Conformance to backend.h of kernels, for every backend with devices: how they end, and what they
 * run beside.
 */
#include "backends/testing.h"

static void test_statuses(const void *argument)
{
    static const int statuses[] = {DUET_OK, DUET_ETASK, DUET_EINVAL, DUET_OK, DUET_ENOMODEL};
    enum { COUNT = G_N_ELEMENTS(statuses) };
    struct testing_probe probes[COUNT] = {{.status = 0}};
    struct testing_argument args[COUNT];
    struct duet_call calls[COUNT] = {{.args = NULL}};
    struct backend_completion done[COUNT];
    OWNED(testing_stop) struct testing_device *d = testing_start(argument);
    for (unsigned i = 0; i < COUNT; i++) {
        probes[i].status = statuses[i];
        args[i].probe = &probes[i];
        calls[i].args = &args[i];
        testing_launch(d, &probes[i], testing_kernels(d->testing->backend)->probe, &calls[i]);
    }
    testing_collect(d, done, COUNT);
    for (unsigned i = 0; i < COUNT; i++) {
        g_assert_true(done[i].tag == &probes[i]);
        g_assert_cmpint(done[i].status, ==, statuses[i]);
        g_assert_cmpuint(probes[i].ran, ==, 1);
        g_assert_true(probes[i].stream);
    }
}

/* A kernel's stream leaves a status: an error, or an info, which the reason then contains. */
static void test_status_words(const void *argument)
{
    static const int words[] = {DUET_ETASK, 3, DUET_OK, DUET_ENOMEM, 1 << 20};
    enum { COUNT = G_N_ELEMENTS(words) };
    OWNED(testing_stop) struct testing_device *d = testing_start(argument);
    for (unsigned i = 0; i < COUNT; i++) {
        struct testing_probe probe = {.status = words[i]};
        struct testing_argument args = {&probe};
        struct duet_call call = {.args = &args};
        struct backend_completion done;
        testing_launch(d, &probe, testing_kernels(d->testing->backend)->status, &call);
        testing_collect(d, &done, 1);
        g_assert_cmpuint(probe.ran, ==, 1);
        g_assert_cmpint(done.status, ==, words[i] > 0 ? DUET_ETASK : words[i]);
        if (words[i] <= 0)
            continue;
        g_autofree char *info = g_strdup_printf("info = %d", words[i]);
        g_assert_cmpstr(done.why, ==, info);
    }
}

/*
 * With several streams of kernels all kernels end. Those behind a blocking one may overtake it, but
 * need not: CUDA may call functions of the host one after the other, whatever their streams.
 */
static void test_kernel_streams(const void *argument)
{
    enum { COUNT = 40 };
    OWNED(testing_fini) struct testing t;
    OWNED(testing_close) struct testing_device d;
    struct testing_probe probe = {.status = 0};
    struct backend_completion done[COUNT];
    struct testing_probe *blocked = testing_blocked(argument);
    struct testing_argument args[2] = {{blocked}, {&probe}};
    struct duet_call calls[COUNT] = {{.args = &args[0]}};
    testing_init(&t, argument);
    testing_open_as(&d, &t,
                    (struct backend_config){.node = 1,
                                            .capacity_bytes = TESTING_BYTES,
                                            .kernel_streams = 3,
                                            .kernels = COUNT});
    testing_launch(&d, &calls[0], testing_kernels(t.backend)->blocking, &calls[0]);
    for (unsigned i = 1; i < COUNT; i++) {
        calls[i].args = &args[1];
        testing_launch(&d, &calls[i], testing_kernels(t.backend)->probe, &calls[i]);
    }
    blocked->go = true;
    testing_collect(&d, done, COUNT);
    g_assert_cmpuint(blocked->ran, ==, 1);
    g_assert_cmpuint(probe.ran, ==, COUNT - 1);
}

/* Copies of both directions end while a kernel blocks, and the kernel behind it does not begin. */
static void test_overlap(const void *argument)
{
    struct testing_probe behind = {.status = 0};
    struct backend_completion done[2];
    unsigned char host[100] = {3}, back[100];
    struct testing_probe *blocked = testing_blocked(argument);
    struct testing_argument args[2] = {{blocked}, {&behind}};
    struct duet_call calls[2] = {{.args = &args[0]}, {.args = &args[1]}};
    OWNED(testing_stop) struct testing_device *d = testing_start(argument);
    testing_launch(d, blocked, testing_kernels(d->testing->backend)->blocking, &calls[0]);
    testing_launch(d, &behind, testing_kernels(d->testing->backend)->probe, &calls[1]);
    while (!blocked->waiting)
        (void)sched_yield();
    for (unsigned i = 0; i < 50; i++) {
        testing_write(d, 0, host, sizeof host);
        testing_read(d, 0, back, sizeof back);
        g_assert_cmpmem(back, sizeof back, host, sizeof host);
    }
    g_assert_cmpuint(blocked->ran + behind.ran, ==, 0);
    blocked->go = true;
    testing_collect(d, done, 2);
    g_assert_true(done[0].tag == blocked && done[1].tag == &behind);
}

int main(int argc, char **argv)
{
    static const struct testing_test tests[] = {{"statuses", test_statuses, TESTING_STREAMS, 1},
                                                {"status_words", test_status_words, TESTING_STREAMS,
                                                 1},
                                                {"kernel_streams", test_kernel_streams,
                                                 TESTING_STREAMS, 1},
                                                {"overlap", test_overlap, TESTING_STREAMS, 1},
                                                {NULL, NULL, TESTING_ANY, 0}};
    return testing_run(argc, argv, "kernels/", tests);
}
