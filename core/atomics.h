/* SPDX-License-Identifier: Apache-2.0 */
/* Bit sets over nodes and workers, and counters that one thread writes and others read. */
#ifndef DUET_CORE_ATOMICS_H
#define DUET_CORE_ATOMICS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

static inline bool bit_test(const _Atomic(uint64_t) *set, unsigned i)
{
    return atomic_load_explicit(&set[i / 64], memory_order_relaxed) >> (i % 64) & 1;
}

/* True if the bit is set; writes made before it was set are then visible. */
static inline bool bit_test_acquire(const _Atomic(uint64_t) *set, unsigned i)
{
    return atomic_load_explicit(&set[i / 64], memory_order_acquire) >> (i % 64) & 1;
}

static inline void bit_set(_Atomic(uint64_t) *set, unsigned i)
{
    /* the owner's lock is held: no other writer */
    uint64_t word = atomic_load_explicit(&set[i / 64], memory_order_relaxed);
    atomic_store_explicit(&set[i / 64], word | UINT64_C(1) << (i % 64), memory_order_release);
}

static inline void bit_clear(_Atomic(uint64_t) *set, unsigned i)
{
    /* release: a reader of the other bits from this store has seen the writes that they announce */
    uint64_t word = atomic_load_explicit(&set[i / 64], memory_order_relaxed);
    atomic_store_explicit(&set[i / 64], word & ~(UINT64_C(1) << (i % 64)), memory_order_release);
}

/*
 * Subtracts `count` from `left`, on any thread. Returns true if nothing is left. A thread that
 * finds exactly `count` left needs no locked instruction.
 */
static inline bool count_down(_Atomic(int32_t) *left, int32_t count)
{
    if (atomic_load_explicit(left, memory_order_acquire) != count)
        return atomic_fetch_sub_explicit(left, count, memory_order_acq_rel) == count;
    atomic_store_explicit(left, 0, memory_order_release);
    return true;
}

/* Add to an atomic that one thread at a time writes: no locked instruction. */
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

/* Raises an atomic that one thread at a time writes to `value`, if that is larger. */
static inline void raise_own(_Atomic(double) *highest, double value)
{
    if (value > atomic_load_explicit(highest, memory_order_relaxed))
        atomic_store_explicit(highest, value, memory_order_relaxed);
}

/* ------------------------------------------------------------------------------------------- */
/* Attributes that tell the compiler how often functions are called. */

/*
 * HOT: every task calls it; it is inlined at each call, which the compiler does by itself only as
 * long as there are few calls. RARE: hardly any task calls it, and it is placed apart from the
 * others.
 */
#define HOT inline __attribute__((always_inline))
#define RARE __attribute__((cold, noinline))

/* ------------------------------------------------------------------------------------------- */
/* Memory in whole cache lines: data of different threads is kept apart. */

enum { LINE = 64 }; /* bytes of a cache line */

static inline size_t whole_lines(size_t bytes)
{
    return (bytes + LINE - 1) / LINE * LINE;
}

/* Returns zeroed memory for structures that are aligned to cache lines, or NULL. */
static inline void *zeroed(size_t bytes)
{
    void *memory = aligned_alloc(LINE, bytes);
    return memory ? memset(memory, 0, bytes) : NULL;
}

/* ------------------------------------------------------------------------------------------- */
/*
 * A spin lock for sections of a few dozen instructions. A thread that finds it taken waits as the
 * engine says (duet__rest_by): the holder may have been preempted, even by the very thread that
 * waits.
 */

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
