/* SPDX-License-Identifier: Apache-2.0 */
/* Search for better schedules, by simulation. */
#ifndef DUET_RUNS_IMPROVE_H
#define DUET_RUNS_IMPROVE_H

#include "runs/request.h"
#include "runtime/schedule.h"
#include "trace/run.h"

/* The result of a search. */
struct duet__improved {
    struct duet__run run;            /* with its recording; for duet__run_fini */
    struct duet__schedule *schedule; /* as it was followed; for duet__schedule_free */
    uint64_t tries;                  /* schedules that were simulated */
    double before_s; /* makespan of the best schedule that it began with, followed */
};

/*
 * Looks for `seconds` for a schedule of the request's tasks with a shorter makespan than those of
 * the first runs of `count` series, which were recorded, or not made. As many processes as the
 * request says follow paths of their own, between the moments at which all go on from the best. A
 * path is a local search: a task of the critical path, or another one, moves to another worker or
 * to an earlier place, which keeps the order of tasks that depend on each other; what the
 * simulation then takes longer is kept with a probability that falls to 0 (simulated annealing:
 * Kirkpatrick, Gelatt, Vecchi, Science 220, 1983). The request was built, simulates one node
 * without noise, and is no program.
 *
 * A signal (*number, 0: none) ends the search, whose result so far counts. Errors of
 * duet__schedule_take where no series has a schedule, and of a simulation, with a message: *out has
 * nothing then.
 */
DUET_MUST_CHECK int duet__improve(const struct duet__request *request,
                                  const struct duet__series *series, size_t count, double seconds,
                                  struct duet__improved *out, int *number,
                                  struct duet_message *message);

#endif
