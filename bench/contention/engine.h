/* SPDX-License-Identifier: Apache-2.0 */
/* An engine over a device that does nothing: its workers are the threads of a crew. */
#ifndef DUET_BENCH_CONTENTION_ENGINE_H
#define DUET_BENCH_CONTENTION_ENGINE_H

#include <stddef.h>
#include <stdint.h>

#include <duet/duet.h>

#include "bench/contention/crew.h"

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
