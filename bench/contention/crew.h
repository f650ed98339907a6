/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads for the benchmark of the core: real ones (real.c), or logical ones (logical.c), which one
 * thread runs in turns, each with a clock of its own, so that every run is the same.
 */
#ifndef DUET_BENCH_CONTENTION_CREW_H
#define DUET_BENCH_CONTENTION_CREW_H

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

#endif
