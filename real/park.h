/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where a thread sleeps until it is woken. Waking one that is awake is one atomic exchange, and is
 * not lost: it does not sleep the next time.
 */
#ifndef DUET_REAL_PARK_H
#define DUET_REAL_PARK_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

enum park_state {
    PARK_AWAKE,  /* and nobody has called since */
    PARK_WOKEN,  /* called; awake, or about to be */
    PARK_NUDGED, /* likewise, by duet__park_nudge only */
    PARK_ASLEEP,
};

struct park {
    _Atomic(int) state; /* enum park_state */
    pthread_mutex_t mutex;
    pthread_cond_t condition;
};

/* DUET_ENOMEM; not to be ended then. */
int duet__park_init(struct park *park);
void duet__park_fini(struct park *park);

/* Wakes. Any thread. true: nobody had since it was last taken. */
bool duet__park_wake(struct park *park);

/* The same as a lesser call, which is forgotten beside a real one. */
void duet__park_nudge(struct park *park);

/*
 * Sleeps until called, at most for `seconds` (INFINITY: without limit), and takes the call: the
 * state is PARK_AWAKE again. Returns what it was: PARK_WOKEN, PARK_NUDGED, or PARK_AWAKE if the
 * time is over.
 */
enum park_state duet__park(struct park *park, double seconds);

/* Forgets a nudge. true: there is a call to take, other than that. */
bool duet__park_settle(struct park *park);

/* Takes a call without sleeping; PARK_AWAKE: there was none. */
static inline enum park_state park_take(struct park *park)
{
    return (enum park_state)atomic_exchange(&park->state, PARK_AWAKE);
}

/* true if there is a call to take; looks only. */
static inline bool park_called(const struct park *park)
{
    return atomic_load_explicit(&park->state, memory_order_relaxed) != PARK_AWAKE;
}

/* Makes a condition whose limits are dates of CLOCK_MONOTONIC. DUET_ENOMEM. */
int duet__condition_init(pthread_cond_t *condition);

/*
 * Waits on it for `seconds` at most; INFINITY: without limit. false: the time is over. May return
 * early.
 */
bool duet__condition_wait(pthread_cond_t *condition, pthread_mutex_t *mutex, double seconds);

#endif
