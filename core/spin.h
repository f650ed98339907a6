/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A spin lock for sections of a few dozen instructions. A thread that finds it taken waits as the
 * engine says (duet__rest_by): the holder may have been preempted, even by the very thread that
 * waits.
 */
#ifndef DUET_CORE_SPIN_H
#define DUET_CORE_SPIN_H

#include <stdatomic.h>
#include <stdbool.h>

struct spin {
    atomic_bool taken;
};

/* Gives way to the holder of a lock, after `tries` earlier times. */
__attribute__((cold)) void duet__spin_rest(unsigned tries);

/* Takes a lock that was found taken. */
__attribute__((cold)) void duet__spin_wait(struct spin *lock);

static inline void spin_lock(struct spin *lock)
{
    if (atomic_exchange_explicit(&lock->taken, true, memory_order_acquire))
        duet__spin_wait(lock);
}

static inline bool spin_try_lock(struct spin *lock)
{
    return !atomic_load_explicit(&lock->taken, memory_order_relaxed) &&
           !atomic_exchange_explicit(&lock->taken, true, memory_order_acquire);
}

static inline void spin_unlock(struct spin *lock)
{
    atomic_store_explicit(&lock->taken, false, memory_order_release);
}

#endif
