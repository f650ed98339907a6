/* SPDX-License-Identifier: Apache-2.0 */
/* Search for better schedules, by simulation. */
#ifndef DUET_RUNS_IMPROVE_H
#define DUET_RUNS_IMPROVE_H

#include "runs/monitor.h"
#include "runs/request.h"
#include "trace/run.h"

/* What a search has found. */
struct duet__improved {
    struct duet__run run; /* with its recording; for duet__run_fini */
    uint64_t tries;       /* schedules that were simulated */
    double before_s;      /* makespan of the best schedule that it began with, followed */
};

/*
 * Looks for `seconds` for a schedule of the request's tasks with a shorter makespan than those of
 * `count` recorded runs, on as many processes as the request says, each of which follows a path of
 * its own between the moments at which all go on from the best. The path is a local search: a task
 * of the critical path, or another one, moves to another worker or to an earlier place, which keeps
 * the order of tasks that depend on each other; what the simulation then takes longer is kept with
 * a probability that falls to 0 (simulated annealing: Kirkpatrick, Gelatt, Vecchi, Science 220,
 * 1983). The request was built, simulates one node without noise, and is no program.
 *
 * A signal (*number, 0: none) ends the search, whose result so far counts. Errors of
 * duet__schedule_take and of a simulation, with a message: *out has nothing then.
 */
DUET_MUST_CHECK int duet__improve(const struct duet__request *request,
                                  const struct duet__run *const *runs, size_t count, double seconds,
                                  struct duet__improved *out, int *number,
                                  struct duet_message *message);

#endif
