/* SPDX-License-Identifier: Apache-2.0 */
/* Locks of the core whose holder does not run because somebody waits for them. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* CPU_SET */
#endif
#include <pthread.h>
#include <sched.h>
#include <sys/resource.h>

#include "core/atomics.h"
#include "real/testing.h"

struct holding {
    struct spin lock;
    _Atomic(bool) held, waited_for;
    int refused; /* why the thread that waits has no higher priority; 0: it has */
    long rests;  /* how often it has let others run while it waited */
};

/* Both threads on one core: who has the higher priority is the one that runs. */
static void share_core(void)
{
    cpu_set_t all, one;
    unsigned core = 0;
    g_assert_cmpint(sched_getaffinity(0, sizeof all, &all), ==, 0);
    while (!CPU_ISSET(core, &all))
        core++;
    CPU_ZERO(&one);
    CPU_SET(core, &one);
    g_assert_cmpint(pthread_setaffinity_np(pthread_self(), sizeof one, &one), ==, 0);
}

static void *hold(void *argument)
{
    struct holding *holding = argument;
    share_core();
    spin_lock(&holding->lock);
    atomic_store(&holding->held, true);
    while (!atomic_load(&holding->waited_for))
        ;
    spin_unlock(&holding->lock);
    return NULL;
}

static long rests(void)
{
    struct rusage usage;
    g_assert_cmpint(getrusage(RUSAGE_THREAD, &usage), ==, 0);
    return usage.ru_nvcsw;
}

static void *wait_for_it(void *argument)
{
    struct holding *holding = argument;
    const struct sched_param lowest = {.sched_priority = 1};
    share_core();
    while (!atomic_load(&holding->held))
        testing_sleep(1e-4);
    holding->refused = pthread_setschedparam(pthread_self(), SCHED_FIFO, &lowest);
    const long before = rests();
    atomic_store(&holding->waited_for, true);
    spin_lock(&holding->lock);
    holding->rests = rests() - before;
    spin_unlock(&holding->lock);
    return NULL;
}

/* A thread that waits for a spinlock lets the holder run. Tried until the holder did not run
   before, as where Linux has stopped the thread that waits: of a second, it leaves 5 % to those
   without a real-time priority. */
static void test_real_time(void)
{
    struct testing t = {.cpus = 1};
    struct duet_runtime *core = testing_open(&t); /* says how threads wait */
    struct holding holding;
    do {
        pthread_t holder, waiter;
        holding = (struct holding){.refused = 0};
        g_assert_cmpint(pthread_create(&holder, NULL, hold, &holding), ==, 0);
        g_assert_cmpint(pthread_create(&waiter, NULL, wait_for_it, &holding), ==, 0);
        (void)pthread_join(waiter, NULL);
        (void)pthread_join(holder, NULL);
    } while (!holding.refused && !holding.rests);
    duet__core_free(core);
    if (holding.refused)
        g_test_skip("no thread of this user may have a real-time priority");
}

TEST_MAIN(test_real_time)
