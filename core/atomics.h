/* SPDX-License-Identifier: Apache-2.0 */
/* Bit sets over nodes and workers, and counters that one thread writes and others read. */
#ifndef DUET_CORE_ATOMICS_H
#define DUET_CORE_ATOMICS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

static inline bool bit_test(const _Atomic(uint64_t) *set, unsigned i)
{
    return atomic_load_explicit(&set[i / 64], memory_order_relaxed) >> (i % 64) & 1;
}

/* true if it is set, and what was done before setting it has been seen to be done. */
static inline bool bit_test_acquire(const _Atomic(uint64_t) *set, unsigned i)
{
    return atomic_load_explicit(&set[i / 64], memory_order_acquire) >> (i % 64) & 1;
}

static inline void bit_set(_Atomic(uint64_t) *set, unsigned i)
{
    /* under the owner's lock: no other writer */
    uint64_t word = atomic_load_explicit(&set[i / 64], memory_order_relaxed);
    atomic_store_explicit(&set[i / 64], word | UINT64_C(1) << (i % 64), memory_order_release);
}

static inline void bit_clear(_Atomic(uint64_t) *set, unsigned i)
{
    /* release: who reads the other bits from this store has seen what they stand for */
    uint64_t word = atomic_load_explicit(&set[i / 64], memory_order_relaxed);
    atomic_store_explicit(&set[i / 64], word & ~(UINT64_C(1) << (i % 64)), memory_order_release);
}

/*
 * Takes `count` off what is left of something, on any thread. true: that was all of it. Who finds
 * that nobody else has anything left needs no locked instruction.
 */
static inline bool count_down(_Atomic(int32_t) *left, int32_t count)
{
    if (atomic_load_explicit(left, memory_order_acquire) != count)
        return atomic_fetch_sub_explicit(left, count, memory_order_acq_rel) == count;
    atomic_store_explicit(left, 0, memory_order_release);
    return true;
}

/* These add to an atomic that one thread at a time writes: no locked instruction. */
static inline void add_own(_Atomic(int64_t) *value, int64_t change)
{
    int64_t old = atomic_load_explicit(value, memory_order_relaxed);
    atomic_store_explicit(value, old + change, memory_order_relaxed);
}

static inline void count_own(_Atomic(uint64_t) *counter, uint64_t count)
{
    uint64_t old = atomic_load_explicit(counter, memory_order_relaxed);
    atomic_store_explicit(counter, old + count, memory_order_relaxed);
}

static inline void add_own_double(_Atomic(double) *sum, double change)
{
    double old = atomic_load_explicit(sum, memory_order_relaxed);
    atomic_store_explicit(sum, old + change, memory_order_relaxed);
}

/* Raises an atomic that one thread at a time writes to a value, if that is larger. */
static inline void raise_own(_Atomic(double) *highest, double value)
{
    if (value > atomic_load_explicit(highest, memory_order_relaxed))
        atomic_store_explicit(highest, value, memory_order_relaxed);
}

#endif
