/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Simulated runs, each in a child process (SimGrid has one engine a process), as many at a time as
 * the request says. What comes out does not depend on which child ends first.
 */
#ifndef DUET_RUNS_SIMULATED_H
#define DUET_RUNS_SIMULATED_H

#include <stdio.h>

#include "runs/progress.h"
#include "runs/request.h"
#include "runs/run.h"

/*
 * Makes all runs of a request that was built into runs[policy * reps + rep], which duet_runs_new
 * has made. One that fails says so in its error, and those of the same policy with higher numbers
 * are not made. A signal that ends a process (unless it is ignored) ends the children only: *number
 * is then its number, and those runs are not made. Returns 0, or DUET_EIO with a message where the
 * system has no means for it.
 */
DUET_MUST_CHECK int duet_simulate(const struct duet_request *request,
                                  struct duet_progress *progress, struct duet_run *runs,
                                  int *number, struct duet_message *message);

/* ------------------------------------------------------------------------------------------- */
/* Between parent and child: simulated_child.c                                                  */

/* Counter of finished tasks that a run shares with the process that started it. */
typedef _Atomic uint64_t duet_task_counter;

/*
 * In a child process: makes one run and writes what came out to `stream`, to be read by
 * duet_simulation_read. Counts finished tasks in *done while it lasts.
 */
void duet_simulation_child(const struct duet_request *request, size_t policy, size_t rep,
                           FILE *stream, duet_task_counter *done);

/*
 * Reads what a child wrote into a run. Returns 0, or the run's error, or DUET_EIO where the file is
 * not whole; with a message.
 */
DUET_MUST_CHECK int duet_simulation_read(const struct duet_request *request, struct duet_run *run,
                                         FILE *stream, struct duet_message *message);

#endif
