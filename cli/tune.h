/* SPDX-License-Identifier: Apache-2.0 */
/* The report of `duet tune`. */
#ifndef DUET_CLI_TUNE_H
#define DUET_CLI_TUNE_H

#include "cli/job.h"
#include "study/tune.h"

/* Prints what was found, and writes the variables of the choice. Returns the exit status. */
int duet__tune_report(const struct duet__tune *tune, const struct duet__job *job);

#endif
