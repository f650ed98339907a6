/* SPDX-License-Identifier: Apache-2.0 */
/* The one clock by which runs, measurements and progress are timed. */
#ifndef DUET_BASE_CLOCK_H
#define DUET_BASE_CLOCK_H

#include <time.h>

/* Seconds of a clock that only goes forward, from some date on. */
static inline double duet__clock_s(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

#endif
