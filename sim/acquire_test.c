/* SPDX-License-Identifier: Apache-2.0 */
/* Acquisitions that a call ends take no simulated time but that of copies. One that never ends is
   in messages_test.c. */
#include "sim/testing.h"

enum { BYTES = 1000000 };

/* An acquisition with its date when granted; the one before it is ended then. */
struct message {
    const struct lab *lab;
    struct message *before;
    struct duet__acquisition *acquisition;
    double granted_s;
    bool ends;
};

static void granted(void *arg, struct duet__acquisition *acquisition, int status)
{
    struct message *message = arg;
    g_assert_cmpint(status, ==, DUET_OK);
    message->acquisition = acquisition;
    message->granted_s = duet_now(message->lab->duet);
    if (message->before)
        duet__acquisition_end(message->before->acquisition, message->granted_s, DUET_OK);
    if (message->ends)
        duet__acquisition_end(acquisition, message->granted_s, DUET_OK);
}

static void submit(struct lab *lab, struct message *message, struct duet_handle *handle,
                   enum duet_mode mode)
{
    message->lab = lab;
    g_assert_cmpint(duet__acquire_submit(lab->duet, handle, mode, 0, granted, message), ==,
                    DUET_OK);
}

/* A tile goes home from a GPU, and is written on only when what was granted last ends it. */
static void test_dates(void)
{
    OWNED(lab_close) struct lab lab = lab_open(&(struct lab_options){.cpus = 1, .gpus = 1});
    struct message out = {NULL}, in = {.before = &out, .ends = true};
    struct duet_handle *a = lab_data(&lab, BYTES), *b = lab_data(&lab, BYTES);
    duet__handle_elsewhere(lab.duet, b);
    lab_task(&lab, "gpu0", 0.01, 1, a, DUET_W);
    submit(&lab, &out, a, DUET_R);
    lab_task(&lab, "cpu0", 0.1, 1, b, DUET_W);
    submit(&lab, &in, b, DUET_W);
    lab_task(&lab, "cpu0", 0.01, 2, a, DUET_RW, b, DUET_R);
    lab_finish(&lab);
    assert_copy(&lab, 1, 1, "gpu0", "host", 0.01, 0.012);
    assert_seconds(out.granted_s, 0.012);
    assert_seconds(in.granted_s, 0.1);
    assert_kernel(&lab, 5, "cpu0", 0.1, 0.11);
}

/* Granted at the date of its own submission, whatever workers do, and not ahead of it. */
static void test_own_date(void)
{
    OWNED(lab_close)
    struct lab lab = lab_open(&(struct lab_options){.cpus = 1, .costs = {.submit_s = 0.001}});
    struct message first = {.ends = true}, second = {.ends = true}, third = {.ends = true};
    struct duet_handle *a = lab_data(&lab, BYTES), *b = lab_data(&lab, BYTES);
    submit(&lab, &first, b, DUET_R);
    lab_task(&lab, "cpu0", 0.1, 1, a, DUET_RW);
    lab_task(&lab, "cpu0", 0.1, 1, a, DUET_RW);
    submit(&lab, &second, b, DUET_R);
    lab_finish(&lab);
    assert_seconds(first.granted_s, 0.001);
    assert_seconds(second.granted_s, 0.004);
    g_assert_cmpint(duet_acquire(lab.duet, b, DUET_RW), ==, DUET_OK);
    double now_s = duet_now(lab.duet);
    submit(&lab, &third, b, DUET_W);
    lab_task(&lab, "cpu0", 0.1, 1, a, DUET_RW);
    g_assert_cmpint(duet_release(lab.duet, b), ==, DUET_OK);
    lab_finish(&lab);
    assert_seconds(third.granted_s, now_s + 0.002);
}

LAB_MAIN(test_dates, test_own_date)
