/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Simulated runs, each in a child process (executor.h), as many at a time as the request says. The
 * result does not depend on which child ends first.
 */
#ifndef DUET_RUNS_SIMULATED_H
#define DUET_RUNS_SIMULATED_H

#include "runs/progress.h"
#include "runs/request.h"
#include "trace/run.h"

/*
 * Makes all runs of a request that was built into series[policy], which duet__series_fini frees. Of
 * a policy, those before the first one that fails are made, whatever happened first. A signal that
 * ends a process (unless it is ignored) ends the children only: *number is then its number, and
 * their runs are not made. Returns 0, or DUET_EIO with a message where the system has no means for
 * it.
 */
DUET_MUST_CHECK int duet__simulate(const struct duet__request *request,
                                   struct duet__progress *progress, struct duet__series *series,
                                   int *number, struct duet_message *message);

/*
 * Makes the first run of the first policy in this process into a
 * zeroed run. Errors of duet__session_run.
 */
DUET_MUST_CHECK int duet__simulate_here(const struct duet__request *request, struct duet__run *run,
                                        struct duet_message *message);

#endif
