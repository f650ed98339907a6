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
    LINES_CALLS = 32, /* what is called deeper is not told apart by its caller */
};

/* A thread that is counted. Those that are real have no `yield`. */
struct lines_thread {
    unsigned index;
    double now_ns, limit_ns; /* its date, and that at which another one is to run */
    void (*yield)(void);
    /* It reads one place again and again, which only another thread can change: sleeps till then */
    void (*watch)(uintptr_t line);
    void (*changed)(uintptr_t line); /* it has written a line that somebody watches */
    /* what it read last, and how often in a row */
    uintptr_t site, address;
    unsigned repeats;
    /* the calls that it is in, from where each was called */
    uintptr_t callers[LINES_CALLS];
    unsigned calls;
};

struct lines_sum {
    uint64_t accesses, atomics, moves;
    uint64_t waits;     /* moves of a line that was being moved (logical threads only) */
    uint64_t contended; /* moves of lines that moved for one in LINES_SHARE of `tasks`, or more */
};

/* What an access costs a logical thread: of a line it has, more if atomic; of another's line. */
extern double lines_access_ns, lines_atomic_ns, lines_move_ns;

/* Who makes the accesses from here on, on this thread of the system; NULL: they do not count. */
void lines_become(struct lines_thread *thread);

/* An access of the thread that runs, by the instruction before `caller`. */
void lines_touch(const volatile void *address, size_t bytes, void *caller, bool writes);

/* Forgets the counts, not who has which lines. And counts nothing from here on. */
void lines_reset(void);
void lines_stop(void);
struct lines_sum lines_sum(uint64_t tasks);
/* A JSON object a line for each instruction that moved lines, and each contended line. */
void lines_print(uint64_t tasks);

#endif
