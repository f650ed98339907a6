/* SPDX-License-Identifier: Apache-2.0 */
/* A spin lock for sections of a few dozen instructions. */
#ifndef DUET_CORE_SPIN_H
#define DUET_CORE_SPIN_H

#include <stdatomic.h>
#include <stdbool.h>

struct spin {
    atomic_bool taken;
};

static inline void spin_lock(struct spin *lock)
{
    while (atomic_exchange_explicit(&lock->taken, true, memory_order_acquire))
        while (atomic_load_explicit(&lock->taken, memory_order_relaxed))
            ;
}

static inline void spin_unlock(struct spin *lock)
{
    atomic_store_explicit(&lock->taken, false, memory_order_release);
}

#endif
