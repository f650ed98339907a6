/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counts what code compiled with -fsanitize=thread does to cache lines: its calls go to lines.c
 * instead of the sanitizer's library. For each line it is known who has a copy, as in the protocol
 * MESI with caches that never forget: an access *moves* the line if it reads what another thread
 * has written since this one last had it, or writes what another thread has a copy of.
 */
#ifndef DUET_BENCH_CONTENTION_LINES_H
#define DUET_BENCH_CONTENTION_LINES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    LINES_SHARE = 32,
    LINES_CALLS = 32, /* deeper calls are not told apart by caller */
};

/* A counted thread. Real threads have no `yield`. */
struct lines_thread {
    unsigned index;
    double now_ns, limit_ns; /* its date, and the date at which another one is to run */
    void (*yield)(void);
    /* Called when it spins on a place that only another thread can change: sleeps until then. */
    void (*watch)(uintptr_t line);
    void (*changed)(uintptr_t line); /* called when it has written a watched line */
    /* last place read, and how often in a row */
    uintptr_t site, address;
    unsigned repeats;
    /* calls that it is in, by address of the caller */
    uintptr_t callers[LINES_CALLS];
    unsigned calls;
};

struct lines_sum {
    uint64_t accesses, atomics, moves;
    uint64_t waits;     /* moves of a line that was being moved (logical threads only) */
    uint64_t contended; /* moves of lines that moved for one in LINES_SHARE of `tasks`, or more */
};

/* Nanoseconds of a logical thread's access to a line it has; added if atomic; of another's line. */
extern double lines_access_ns, lines_atomic_ns, lines_move_ns;

/* Sets the thread that makes this system thread's accesses from here on; NULL: they do not
 * count. */
void lines_become(struct lines_thread *thread);

/* An access of the thread that runs, by the instruction before `caller`. */
void lines_touch(const volatile void *address, size_t bytes, void *caller, bool writes);

/* Clears the counts, but not the owners of lines. Nothing counts from here on. */
void lines_reset(void);
void lines_stop(void);
struct lines_sum lines_sum(uint64_t tasks);
/* A JSON object a line for each instruction that moved lines, and each contended line. */
void lines_print(uint64_t tasks);

#endif
