/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An acquisition that a thread ends which is none of the engine's, as one that waits for messages,
 * and late: when the watchdog has spoken of it. Many of them, in runs that succeed or fail, are in
 * nodes/random_test.c.
 */
#include "real/testing.h"

static const double WATCHDOG_S = 0.05;

struct message {
    struct duet_runtime *core;
    struct duet__acquisition *acquisition;
    uint64_t cell;
    pthread_t carrier;
    struct testing_ear ear;
};

static void *carry(void *argument)
{
    struct message *message = argument;
    testing_hear_last(&message->ear, "");
    message->cell = 7;
    duet__acquisition_end(message->acquisition, duet_now(message->core), DUET_OK);
    return NULL;
}

static void granted(void *arg, struct duet__acquisition *acquisition, int status)
{
    struct message *message = arg;
    g_assert_cmpint(status, ==, DUET_OK);
    message->acquisition = acquisition;
    g_assert_cmpint(pthread_create(&message->carrier, NULL, carry, message), ==, 0);
}

static int add_one(const struct duet_call *call)
{
    ++*(uint64_t *)call->buffers[0].data;
    return DUET_OK;
}

/* Waiting for what another process does is no sign of being stuck; it is spoken of. */
static void subprocess_patience(void)
{
    struct testing t = {.cpus = 1, .watchdog_s = WATCHDOG_S};
    struct message message = {.core = testing_open(&t)};
    OWNED(testing_close) struct duet_runtime *core = message.core;
    const struct duet_codelet *codelet = testing_codelet(core, "add", add_one, NULL);
    struct duet_access access = {testing_cells(core, &message.cell, 1), DUET_RW};
    message.ear = testing_listen();
    testing_must(core, duet__acquire_submit(core, access.handle, DUET_W, 0, granted, &message));
    testing_submit(core, codelet, &access, 1, NULL, 0);
    testing_must(core, duet_wait(core));
    g_assert_cmpuint(message.cell, ==, 8);
    g_assert_cmpint(pthread_join(message.carrier, NULL), ==, 0);
}

static void test_patience(void)
{
    g_test_trap_subprocess("/subprocess/patience", 0, 0);
    g_test_trap_assert_passed();
    g_test_trap_assert_stderr("*what is left is waiting for other nodes\n*");
}

TEST_MAIN(test_patience, subprocess_patience)
