/* SPDX-License-Identifier: Apache-2.0 */
/* Processes that are the nodes of one run, over MPI: what they agree on while no runtime is open.
 */
#ifndef DUET_RUNS_PROCESSES_H
#define DUET_RUNS_PROCESSES_H

#include "runs/monitor.h"
#include "runs/request.h"

/*
 * Whether all can go on: 0, the error of the first that cannot, with its message, or above 0 the
 * number of the signal that came to one of them, which is the monitor's then in all. `error` is
 * this one's, or such a number. `together`: there are others, which is the same in all of them and
 * from the first run to the last; else it has what it says. Collective then: what one of them does
 * about a signal without it, others would wait for.
 */
DUET_MUST_CHECK int duet__processes_agree(bool together, struct duet__monitor *monitor, int error,
                                          struct duet_message *message);

/* Whether there are others with which the request's runs are made. */
bool duet__processes_share(const struct duet__request *request);

/* This process ends before it has agreed on anything with the others, which are told why. */
void duet__processes_decline(const char *why);

#endif
