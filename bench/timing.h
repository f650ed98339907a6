/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the benchmarks: the clock, and memory that is there or ends the program. */
#ifndef DUET_BENCH_TIMING_H
#define DUET_BENCH_TIMING_H

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Wall clock in seconds since an arbitrary moment. */
static inline double seconds(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

/* `bytes` zeroed bytes, each page touched, on a cache line of their own; the caller frees them. */
static inline void *zeroed(size_t bytes)
{
    enum { LINE = 64 };
    void *memory = aligned_alloc(LINE, (bytes + LINE - 1) / LINE * LINE);
    if (!memory) {
        fprintf(stderr, "no memory for %zu bytes\n", bytes);
        exit(1);
    }
    return memset(memory, 0, bytes);
}

#endif
