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
    uint64_t origin; /* counter's value, or nanoseconds of CLOCK_MONOTONIC, at date 0 */
    double tick_s;   /* seconds from one value to the next */
};

/* Sets date 0 to now. Sleeps for a few milliseconds where the counter's rate has to be measured. */
void duet__clock_start(struct clock *clock);

/*
 * Returns the seconds since duet__clock_start. Any thread; never goes back, whatever the thread's
 * core.
 */
double duet__clock_now(const struct clock *clock);

/* Pauses for a moment in a loop that watches memory. */
void duet__clock_rest(void);

#endif
