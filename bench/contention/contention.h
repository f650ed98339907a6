/* SPDX-License-Identifier: Apache-2.0 */
/* An engine over a device that does nothing: its workers are the threads of a crew, whose accesses
 * to cache lines can be counted. */
#ifndef DUET_BENCH_CONTENTION_H
#define DUET_BENCH_CONTENTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <duet/duet.h>

/* ------------------------------------------------------------------------------------------- */
/*
 * Counts what code compiled with -fsanitize=thread does to cache lines: its calls go to lines.c
 * instead of the sanitizer's library. For each line it is known who has a copy, as in the protocol
 * MESI with caches that never forget: an access *moves* the line if it reads what another thread
 * has written since this one last had it, or writes what another thread has a copy of.
 */

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

/* ------------------------------------------------------------------------------------------- */
/*
 * Threads for the benchmark of the core: real ones (real.c), or logical ones (logical.c), which one
 * thread runs in turns, each with a clock of its own, so that every run is the same.
 */

enum { CREW_MAX = 256 };

struct crew {
    /* Calls body(0) ... body(count - 1), each on a thread, and returns when all have. */
    void (*run)(unsigned count, void (*body)(unsigned self));
    /* Number of the calling thread of the crew, and its date, in seconds. */
    unsigned (*self)(void);
    double (*now)(void);
    /* Lets the calling thread compute or sleep so long; or sleep until it was called since its last
     * sleep. */
    void (*compute)(double seconds);
    void (*sleep)(double seconds);
    void (*rest)(void);
    void (*call)(unsigned who);
};

/* Prints, as JSON, what an atomic operation and a turn of two threads cost here: two moves. */
void costs_print(void);

extern const struct crew crew_real, crew_logical;

/* ------------------------------------------------------------------------------------------- */
/* The engine                                                                                   */

/* The work: `tasks` tasks, submitted by thread 0, which is worker 0 while it waits. */
struct work {
    unsigned threads;
    const char *policy;
    double kernel_s; /* length of kernels, varied by a tenth; 0: none */
    size_t size;
    void (*begin)(int pass); /* called before a pass: 0 warms up, 1 counts, 2: the end */
    void (*submit)(const struct work *work);
};

void engine_open(const struct crew *threads, const struct work *what);
void engine_close(void);

/* `count` handles, for submissions below. */
void engine_handles(size_t count);
/* Submits a task; it reads the handles of these numbers and changes the last one. */
void engine_submit(const size_t *numbers, size_t count);
/* Submits a task that submits two of the next lower depth, and so on down to depth 0. */
void engine_submit_tree(unsigned depth);
void engine_wait(void);
/* Number of tasks that have run. */
uint64_t engine_ran(void);

/* Runs the work twice. Returns the seconds of the second time, from the first submission to the
 * last end. */
double engine_run(void);

#endif
