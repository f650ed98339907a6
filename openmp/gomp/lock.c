/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Locks, critical and atomic: a word with the number of the thread that holds it, and a bit that
 * says that others sleep until it is free (Drepper, "Futexes are tricky", 2011). Programs give a
 * lock four bytes, and a nestable one eight, with the address of what is here.
 */
#include "openmp/gomp/gomp.h"

#include <linux/futex.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/engine.h"

typedef _Atomic(uint32_t) lock_word;

enum { AWAITED = 1, SPINS = 100 };

struct nestable {
    lock_word word;
    int count;                   /* times that the owner has set the lock; only the owner uses it */
    _Atomic(const void *) owner; /* the task that holds it; NULL: none */
};

static uint32_t own_number(void)
{
    static _Thread_local uint32_t number;
    if (!number)
        number = (uint32_t)syscall(SYS_gettid) << 1;
    return number;
}

static bool word_try(lock_word *word)
{
    uint32_t free = 0;
    return atomic_compare_exchange_strong_explicit(word, &free, own_number(), memory_order_acquire,
                                                   memory_order_relaxed);
}

static void word_wait(lock_word *word, const char *what)
{
    for (int i = 0; i < SPINS; i++) {
        if (!atomic_load_explicit(word, memory_order_relaxed) && word_try(word))
            return;
        duet__rest_now(0);
    }
    for (;;) {
        uint32_t before = atomic_load_explicit(word, memory_order_relaxed);
        if ((before & ~(uint32_t)AWAITED) == own_number())
            duet__omp_die("a task waits for %s that its own thread holds, in a task beneath it: "
                          "release it before a wait for tasks",
                          what);
        /* whoever has slept cannot know if others still do */
        if (!before &&
            atomic_compare_exchange_strong_explicit(word, &before, own_number() | AWAITED,
                                                    memory_order_acquire, memory_order_relaxed))
            return;
        if (before &&
            (before & AWAITED || atomic_compare_exchange_strong(word, &before, before | AWAITED)))
            (void)syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, before | AWAITED, NULL, NULL, 0);
    }
}

static void word_take(lock_word *word, const char *what)
{
    if (!word_try(word))
        word_wait(word, what);
}

static void word_leave(lock_word *word)
{
    if (atomic_exchange_explicit(word, 0, memory_order_release) & AWAITED)
        (void)syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

/* ------------------------------------------------------------------------------------------- */

static lock_word unnamed, atomics;

CALL(GOMP_critical_start, word_take(&unnamed, "a critical section"), void)
CALL(GOMP_critical_end, word_leave(&unnamed), void)
CALL(GOMP_critical_name_start, word_take((lock_word *)name, "a critical section"), void **name)
CALL(GOMP_critical_name_end, word_leave((lock_word *)name), void **name)
CALL(GOMP_atomic_start, word_take(&atomics, "an atomic operation"), void)
CALL(GOMP_atomic_end, word_leave(&atomics), void)

/* Defines a function under its names in C and in Fortran. */
#define LOCK_ABI(type, name)                                                                       \
    DUET_EXPORT type name##_(void *lock) __attribute__((alias(#name)));                            \
    DUET__ABI(type, name, void *lock)
#define LOCK_CALL(type, name, action)                                                              \
    LOCK_ABI(type, name)                                                                           \
    {                                                                                              \
        action;                                                                                    \
    }

LOCK_CALL(void, omp_init_lock, atomic_store((lock_word *)lock, 0))
LOCK_CALL(void, omp_destroy_lock, (void)lock)
LOCK_CALL(void, omp_set_lock, word_take(lock, "a lock"))
LOCK_CALL(void, omp_unset_lock, word_leave(lock))
LOCK_CALL(int, omp_test_lock, return word_try(lock))
CALL(omp_init_lock_with_hint, omp_init_lock(lock), void *lock, int hint)

LOCK_ABI(void, omp_init_nest_lock)
{
    struct nestable *nestable = calloc(1, sizeof *nestable);
    if (!nestable)
        duet__omp_die("there is no memory left for a lock");
    *(struct nestable **)lock = nestable;
}

LOCK_CALL(void, omp_destroy_nest_lock, free(*(struct nestable **)lock))
CALL(omp_init_nest_lock_with_hint, omp_init_nest_lock(lock), void *lock, int hint)

LOCK_ABI(void, omp_set_nest_lock)
{
    struct nestable *nestable = *(struct nestable **)lock;
    const void *task = omp_now();
    if (nestable->owner != task) {
        word_take(&nestable->word, "a lock");
        nestable->owner = task;
    }
    nestable->count++;
}

LOCK_ABI(void, omp_unset_nest_lock)
{
    struct nestable *nestable = *(struct nestable **)lock;
    if (--nestable->count == 0) {
        nestable->owner = NULL;
        word_leave(&nestable->word);
    }
}

LOCK_ABI(int, omp_test_nest_lock)
{
    struct nestable *nestable = *(struct nestable **)lock;
    const void *task = omp_now();
    if (nestable->owner != task) {
        if (!word_try(&nestable->word))
            return 0;
        nestable->owner = task;
    }
    return ++nestable->count;
}
