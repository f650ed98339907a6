/* SPDX-License-Identifier: Apache-2.0 */
/* Sleeping and waking of threads. */
#include "real/internal.h"

#include <errno.h>
#include <math.h>
#include <time.h>

enum { SECONDS_MAX = 1 << 30 }; /* longer waits are unlimited */

int duet__condition_init(pthread_cond_t *condition)
{
    pthread_condattr_t attributes;
    if (pthread_condattr_init(&attributes))
        return DUET_ENOMEM;
    (void)pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    int error = pthread_cond_init(condition, &attributes);
    (void)pthread_condattr_destroy(&attributes);
    return error ? DUET_ENOMEM : DUET_OK;
}

bool duet__condition_wait(pthread_cond_t *condition, pthread_mutex_t *mutex, double seconds)
{
    const long second_ns = 1000000000;
    if (seconds >= SECONDS_MAX)
        return pthread_cond_wait(condition, mutex) == 0;
    struct timespec date;
    double whole = floor(seconds > 0 ? seconds : 0);
    (void)clock_gettime(CLOCK_MONOTONIC, &date);
    date.tv_sec += (time_t)whole;
    date.tv_nsec += (long)(((seconds > 0 ? seconds : 0) - whole) * (double)second_ns);
    if (date.tv_nsec >= second_ns) {
        date.tv_nsec -= second_ns;
        date.tv_sec++;
    }
    return pthread_cond_timedwait(condition, mutex, &date) != ETIMEDOUT;
}

int duet__park_init(struct park *park)
{
    atomic_init(&park->state, PARK_AWAKE);
    if (pthread_mutex_init(&park->mutex, NULL))
        return DUET_ENOMEM;
    int error = duet__condition_init(&park->condition);
    if (error)
        (void)pthread_mutex_destroy(&park->mutex);
    return error;
}

void duet__park_fini(struct park *park)
{
    (void)pthread_cond_destroy(&park->condition);
    (void)pthread_mutex_destroy(&park->mutex);
}

/*
 * Wakes a sleeper. It holds the mutex from before it sets its state until it waits, so the signal
 * is not too early; it is given without the mutex, which the sleeper needs next.
 */
static void park_signal(struct park *park)
{
    (void)pthread_mutex_lock(&park->mutex);
    (void)pthread_mutex_unlock(&park->mutex);
    (void)pthread_cond_signal(&park->condition);
}

bool duet__park_wake(struct park *park)
{
    int before = atomic_exchange(&park->state, PARK_WOKEN);
    if (before == PARK_ASLEEP)
        park_signal(park);
    return before != PARK_WOKEN;
}

void duet__park_nudge(struct park *park)
{
    /* written in any case: a thread that takes the call sees what happened before the nudge */
    int before = atomic_load(&park->state);
    while (!atomic_compare_exchange_weak(&park->state, &before,
                                         before == PARK_WOKEN ? PARK_WOKEN : PARK_NUDGED))
        ;
    if (before == PARK_ASLEEP)
        park_signal(park);
}

bool duet__park_settle(struct park *park)
{
    /* written in any case: a thread that wakes after this sees what happened before it */
    int before = atomic_load(&park->state);
    while (!atomic_compare_exchange_weak(&park->state, &before,
                                         before == PARK_NUDGED ? PARK_AWAKE : before))
        ;
    return before == PARK_WOKEN;
}

enum park_state duet__park(struct park *park, double seconds)
{
    int awake = PARK_AWAKE;
    bool in_time = true;
    if (park_called(park))
        return park_take(park);
    (void)pthread_mutex_lock(&park->mutex);
    if (atomic_compare_exchange_strong(&park->state, &awake, PARK_ASLEEP))
        while (in_time && atomic_load(&park->state) == PARK_ASLEEP)
            in_time = duet__condition_wait(&park->condition, &park->mutex, seconds);
    (void)pthread_mutex_unlock(&park->mutex);
    int before = atomic_exchange(&park->state, PARK_AWAKE);
    return before == PARK_ASLEEP ? PARK_AWAKE : (enum park_state)before;
}
