/* SPDX-License-Identifier: Apache-2.0 */
/* Explains why one run took as long as it did: `duet explain`, for people and for programs. */
#ifndef DUET_REPORT_WHY_H
#define DUET_REPORT_WHY_H

#include <stdio.h>

#include "trace/counters.h"
#include "trace/trace.h"
#include "trace/account.h"
#include "validate/what_if.h"

/* Analysis of a run, all borrowed. */
struct duet__why {
    const char *path_name; /* the run's file */
    const char *command;   /* command line of the report */
    const struct duet__trace *trace;
    const struct duet__account *account;
    const struct duet__path *path;
    const struct duet__node_use *uses;
    const struct duet__what_if *what_if; /* NULL: nothing was simulated */
    const char *simulated;               /* platform of the simulations, "idgraf"; NULL likewise */
};

/* Names of states in JSON: "to_device". */
extern const char *const duet__state_names[DUET_STATES];

void duet__why_write_text(FILE *stream, const struct duet__why *why);
void duet__why_write_json(FILE *stream, const struct duet__why *why);

#endif
