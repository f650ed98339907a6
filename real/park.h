/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A place where a thread sleeps until it is woken. Waking one that is awake is one atomic exchange,
 * and is not lost: it does not sleep the next time.
 */
#ifndef DUET_REAL_PARK_H
#define DUET_REAL_PARK_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

enum park_state {
    PARK_AWAKE,  /* not called since */
    PARK_WOKEN,  /* called; awake, or about to be */
    PARK_NUDGED, /* called by duet__park_nudge only */
    PARK_ASLEEP,
};

struct park {
    _Atomic(int) state; /* enum park_state */
    pthread_mutex_t mutex;
    pthread_cond_t condition;
};

/* Initialises. DUET_ENOMEM: there is nothing to free. */
int duet__park_init(struct park *park);
void duet__park_fini(struct park *park);

/*
 * Wakes the thread. Any thread. Returns true if it had not been woken since its last call was
 * taken.
 */
bool duet__park_wake(struct park *park);

/* Calls the thread with less weight than a wake, which replaces the nudge. */
void duet__park_nudge(struct park *park);

/*
 * Sleeps until called, at most for `seconds` (INFINITY: without limit), and takes the call: the
 * state is PARK_AWAKE again. Returns the earlier state: PARK_WOKEN, PARK_NUDGED, or PARK_AWAKE if
 * the time is over.
 */
enum park_state duet__park(struct park *park, double seconds);

/* Clears a nudge. Returns true if there is a wake to take. */
bool duet__park_settle(struct park *park);

/* Takes a call without sleeping; PARK_AWAKE: there was none. */
static inline enum park_state park_take(struct park *park)
{
    return (enum park_state)atomic_exchange(&park->state, PARK_AWAKE);
}

/* True if there is a call to take; only reads. */
static inline bool park_called(const struct park *park)
{
    return atomic_load_explicit(&park->state, memory_order_relaxed) != PARK_AWAKE;
}

/* Makes a condition whose limits are dates of CLOCK_MONOTONIC. DUET_ENOMEM. */
int duet__condition_init(pthread_cond_t *condition);

/*
 * Waits on the condition for `seconds` at most; INFINITY: without limit. Returns false if the time
 * is over. May return early.
 */
bool duet__condition_wait(pthread_cond_t *condition, pthread_mutex_t *mutex, double seconds);

#endif
