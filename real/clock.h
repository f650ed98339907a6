/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The engine's clock: seconds since the run began. clock_tsc.c reads the processor's counter where
 * that can be trusted, clock_posix.c asks the operating system; the build takes one of them.
 */
#ifndef DUET_REAL_CLOCK_H
#define DUET_REAL_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

struct clock {
    bool counter;    /* dates come from the processor's counter */
    uint64_t origin; /* its value at date 0; else nanoseconds of CLOCK_MONOTONIC */
    double tick_s;   /* seconds from one value to the next */
};

/* Date 0 is now. Sleeps for a few milliseconds where the counter's rate has to be measured. */
void duet__clock_start(struct clock *clock);

/* Seconds since then. Any thread; does not go back, whatever the thread's core. */
double duet__clock_now(const struct clock *clock);

/* A moment's rest in a loop that watches memory. */
void duet__clock_rest(void);

#endif
