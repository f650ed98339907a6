/* SPDX-License-Identifier: Apache-2.0 */
/* Progress bar on standard error, where that is a terminal. */
#ifndef DUET_RUNS_PROGRESS_H
#define DUET_RUNS_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

/* State of a progress bar. Zero-initialise, then duet__progress_init. */
struct duet__progress {
    bool shown;     /* true if standard error is a terminal, and a bar was not forbidden */
    bool drawn;     /* true if there is a bar to be removed */
    uint64_t total; /* tasks of all runs */
    uint64_t run_count;
    uint64_t before_tasks, before_runs; /* finished before those told to duet__progress_draw */
    double start_s;
};

void duet__progress_init(struct duet__progress *progress, bool wanted, uint64_t total,
                         uint64_t run_count);

/* Draws the bar: `done` tasks, `runs` finished runs. */
void duet__progress_draw(struct duet__progress *progress, uint64_t done, uint64_t runs);

/* Draws the bar at this share of the whole, and beside it what is being done. */
void duet__progress_say(struct duet__progress *progress, double share, const char *what);

/* Removes the bar: call before anything else is written on the terminal. */
void duet__progress_clear(struct duet__progress *progress);

#endif
