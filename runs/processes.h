/* SPDX-License-Identifier: Apache-2.0 */
/* Processes that are the nodes of one run, over MPI, and agree while no runtime is open. */
#ifndef DUET_RUNS_PROCESSES_H
#define DUET_RUNS_PROCESSES_H

#include "runs/monitor.h"
#include "runs/request.h"

/*
 * Returns whether all processes can go on: 0, the error of the first that cannot, with its message,
 * or above 0 the number of the signal that came to one of them, which all monitors then have.
 * `error` is this process's error, or such a number. `together`: there are others; it is the same
 * in all and from the first run to the last. Else only this process counts. Collective if
 * `together`: a process that acted on a signal without it would leave others waiting.
 */
DUET_MUST_CHECK int duet__processes_agree(bool together, struct duet__monitor *monitor, int error,
                                          struct duet_message *message);

/* True if other processes make the request's runs together with this one. */
bool duet__processes_share(const struct duet__request *request);

/* Tells the others why this process ends before it has agreed on anything with them. */
void duet__processes_decline(const char *why);

#endif
