/* SPDX-License-Identifier: Apache-2.0 */
/* Waiting for a lock that is taken. */
#include <stddef.h>

#include "core/engine.h"
#include "core/spin.h"

/* set for the process, not for a runtime: locks know of none */
static _Atomic(duet__rest_fn) rest_of_engine;

void duet__rest_by(duet__rest_fn rest)
{
    atomic_store_explicit(&rest_of_engine, rest, memory_order_relaxed);
}

void duet__spin_rest(unsigned tries)
{
    duet__rest_fn rest = atomic_load_explicit(&rest_of_engine, memory_order_relaxed);
    if (rest)
        rest(tries);
}

void duet__spin_wait(struct spin *lock)
{
    unsigned tries = 0;
    do {
        duet__spin_rest(tries++);
    } while (atomic_load_explicit(&lock->taken, memory_order_relaxed) ||
             atomic_exchange_explicit(&lock->taken, true, memory_order_acquire));
}
