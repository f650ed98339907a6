/* SPDX-License-Identifier: Apache-2.0 */
/* Waits for what never comes end with an error; kernels that take long are only spoken of. */
#include <math.h>
#include <stdlib.h>

#include "real/testing.h"

static const double WATCHDOG_S = 0.05;

/* An application that waits for what it holds up itself. How long, in seconds. */
static double stuck(unsigned cpus, unsigned gpus, double watchdog_s)
{
    struct testing t = {.cpus = cpus, .gpus = gpus, .watchdog_s = watchdog_s};
    struct duet_runtime *core = testing_open(&t);
    struct duet_codelet *codelet = testing_codelet(core, "count", testing_count, NULL);
    _Atomic(int) calls = 0, *counter = &calls;
    uint64_t cell = 0;
    struct duet_access access = {testing_cells(core, &cell, 1), DUET_RW};
    testing_must(core, duet_acquire(core, access.handle, DUET_RW));
    testing_submit(core, codelet, &access, 1, &counter, sizeof counter);
    double start_s = duet_now(core);
    g_assert_cmpint(duet_wait(core), ==, DUET_ESTUCK);
    double waited_s = duet_now(core) - start_s;
    TOLD(core, "acquired");
    g_assert_cmpint(atomic_load(&calls), ==, 0);
    /* which is no end of the run */
    testing_must(core, duet_release(core, access.handle));
    testing_must(core, duet_wait(core));
    g_assert_cmpint(atomic_load(&calls), ==, 1);
    duet__core_free(core);
    return waited_s;
}

static void test_stuck(void)
{
    (void)stuck(1, 0, WATCHDOG_S);
    (void)stuck(2, 0, WATCHDOG_S);
    (void)stuck(0, 1, WATCHDOG_S);
    (void)stuck(1, 1, WATCHDOG_S);
}

/* A wait ends after the time that was asked for; other processes may only make it later, now and
   then: it is tried until it was in time. */
static void test_date(void)
{
    const double asked_s = 0.2;
    for (unsigned cpus = 0; cpus <= 2; cpus++) {
        double waited_s;
        do {
            waited_s = stuck(cpus, cpus == 0, asked_s);
            g_assert_cmpfloat(waited_s, >=, asked_s);
        } while (waited_s > 1.2 * asked_s);
    }
}

struct waiter {
    struct duet_runtime *core;
    pthread_t id;
    int error;
};

static void *wait_for_all(void *argument)
{
    struct waiter *self = argument;
    self->error = duet_wait(self->core);
    return NULL;
}

/* All that wait are told, whoever runs the first worker. */
static void test_all_are_told(void)
{
    struct testing t = {.cpus = 1, .watchdog_s = WATCHDOG_S};
    OWNED(testing_close) struct duet_runtime *core = testing_open(&t);
    struct duet_codelet *codelet = testing_codelet(core, "count", testing_count, NULL);
    _Atomic(int) calls = 0, *counter = &calls;
    uint64_t cell = 0;
    struct waiter waiters[3];
    struct duet_access access = {testing_cells(core, &cell, 1), DUET_RW};
    testing_must(core, duet_acquire(core, access.handle, DUET_RW));
    testing_submit(core, codelet, &access, 1, &counter, sizeof counter);
    for (unsigned i = 0; i < G_N_ELEMENTS(waiters); i++) {
        waiters[i] = (struct waiter){.core = core};
        g_assert_cmpint(pthread_create(&waiters[i].id, NULL, wait_for_all, &waiters[i]), ==, 0);
    }
    for (unsigned i = 0; i < G_N_ELEMENTS(waiters); i++) {
        g_assert_cmpint(pthread_join(waiters[i].id, NULL), ==, 0);
        g_assert_cmpint(waiters[i].error, ==, DUET_ESTUCK);
    }
}

static _Atomic(bool) planning;

static void plan_slowly(void *self, struct duet_view *view, struct duet_task *const *tasks,
                        size_t count, const double *ranks, double now)
{
    planning = true;
    testing_sleep(8 * WATCHDOG_S);
}

/*
 * One waiting thread plans tasks that were held for long; another one does not give up meanwhile.
 */
static void test_planning(void)
{
    struct duet_policy slow = *duet_policy_find("eager");
    slow.plan = plan_slowly;
    struct testing t = {.cpus = 1, .own_policy = &slow, .watchdog_s = 4 * WATCHDOG_S};
    struct waiter waiter = {.core = testing_open(&t)};
    _Atomic(int) calls = 0, *counter = &calls;
    testing_submit(waiter.core, testing_codelet(waiter.core, "count", testing_count, NULL), NULL, 0,
                   &counter, sizeof counter);
    g_assert_cmpint(pthread_create(&waiter.id, NULL, wait_for_all, &waiter), ==, 0);
    while (!planning)
        testing_sleep(1e-4);
    testing_must(waiter.core, duet_wait(waiter.core));
    g_assert_cmpint(atomic_load(&calls), ==, 1);
    g_assert_cmpint(pthread_join(waiter.id, NULL), ==, 0);
    g_assert_cmpint(waiter.error, ==, DUET_OK);
    duet__core_free(waiter.core);
}

struct held {
    struct duet_runtime *core;
    struct duet_handle *handle;
};

/* Another thread lets go in time: that is no reason to give up. */
static void *let_go(void *argument)
{
    const struct held *held = argument;
    testing_sleep(WATCHDOG_S / 10);
    testing_must(held->core, duet_release(held->core, held->handle));
    return NULL;
}

static void test_in_time(void)
{
    struct testing t = {.cpus = 1, .watchdog_s = 1000 * WATCHDOG_S};
    struct held held = {.core = testing_open(&t)};
    struct duet_codelet *codelet = testing_codelet(held.core, "count", testing_count, NULL);
    _Atomic(int) calls = 0, *counter = &calls;
    uint64_t cell = 0;
    pthread_t other;
    held.handle = testing_cells(held.core, &cell, 1);
    testing_must(held.core, duet_acquire(held.core, held.handle, DUET_RW));
    struct duet_access access = {held.handle, DUET_RW};
    testing_submit(held.core, codelet, &access, 1, &counter, sizeof counter);
    g_assert_cmpint(pthread_create(&other, NULL, let_go, &held), ==, 0);
    testing_must(held.core, duet_wait(held.core));
    g_assert_cmpint(atomic_load(&calls), ==, 1);
    g_assert_cmpint(pthread_join(other, NULL), ==, 0);
    duet__core_free(held.core);
}

/* ------------------------------------------------------------------------------------------- */
/* Slow calls */

static _Atomic(int) begun;

/* Takes until it was spoken of. */
static int take_long(const struct duet_call *call)
{
    struct testing_ear ear = testing_listen();
    atomic_store(&begun, 1);
    testing_hear_last(&ear, "");
    return DUET_OK;
}

static void run_long(unsigned cpus, unsigned gpus)
{
    struct testing t = {.cpus = cpus, .gpus = gpus, .watchdog_s = WATCHDOG_S};
    OWNED(testing_close) struct duet_runtime *core = testing_open(&t);
    struct duet_codelet *codelet = testing_codelet(core, "slow", take_long, NULL);
    testing_submit(core, codelet, NULL, 0, NULL, 0);
    testing_must(core, duet_wait(core));
}

static void subprocess_waiting(void)
{
    run_long(1, 0);
}

static void subprocess_gpu(void)
{
    run_long(0, 1);
}

/* The spare thread has taken the first worker, and its kernel. */
static void subprocess_spare(void)
{
    struct testing t = {.cpus = 1, .watchdog_s = WATCHDOG_S};
    OWNED(testing_close) struct duet_runtime *core = testing_open(&t);
    struct duet_codelet *slow = testing_codelet(core, "slow", take_long, NULL);
    testing_submit(core, slow, NULL, 0, NULL, 0);
    testing_until(&begun, 1);
    testing_must(core, duet_wait(core));
}

static void test_long(void)
{
    const char *const where[][2] = {{"waiting", "cpu0"}, {"spare", "cpu0"}, {"gpu", "gpu0"}};
    for (unsigned i = 0; i < G_N_ELEMENTS(where); i++) {
        g_autofree char *path = g_strdup_printf("/subprocess/%s", where[i][0]);
        g_autofree char *line =
            g_strdup_printf("*task 1 (slow) has been running on %s for *", where[i][1]);
        g_test_trap_subprocess(path, 0, 0);
        g_test_trap_assert_passed();
        g_test_trap_assert_stderr(line);
    }
}

TEST_MAIN(test_stuck, test_date, test_all_are_told, test_planning, test_in_time, test_long,
          subprocess_waiting, subprocess_spare, subprocess_gpu)
