/* SPDX-License-Identifier: Apache-2.0 */
/* Explains why one run took as long as it did: `duet explain`, for people and for programs. */
#ifndef DUET_REPORT_WHY_H
#define DUET_REPORT_WHY_H

#include <stdio.h>

#include "trace/counters.h"
#include "trace/trace.h"
#include "trace/path.h"
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

/* Possible main causes. */
enum duet__cause {
    DUET_CAUSE_MEMORY,    /* data comes again, or has to leave */
    DUET_CAUSE_TO_DEVICE, /* data from the host, to it, between devices, from other nodes */
    DUET_CAUSE_TO_HOST,
    DUET_CAUSE_BETWEEN,
    DUET_CAUSE_MESSAGE,
    DUET_CAUSE_OVERHEAD,    /* tasks are short compared with starting them */
    DUET_CAUSE_SUBMISSION,  /* the application submits late */
    DUET_CAUSE_PRIORITIES,  /* tasks ran before others on which more depends */
    DUET_CAUSE_KERNEL,      /* one kernel, on an architecture that is not the fastest */
    DUET_CAUSE_CHOICE,      /* ready tasks wait elsewhere */
    DUET_CAUSE_PARALLELISM, /* too few tasks are ready */
    DUET_CAUSE_WORK,        /* the processors compute nearly all the time */
};

const char *duet__cause_name(enum duet__cause cause); /* Returns the name of a cause: "memory",
                                                         ... */

/*
 * Returns a sentence about the main cause of the run's length, *cause, for g_free. By thresholds: a
 * quarter of the critical path, or of the time of the processors that there are most of, is a
 * cause.
 */
char *duet__why_sentence(const struct duet__why *why, enum duet__cause *cause);

/* Returns the name of a part of the path: "dgemm on c2050", "copies to devices"; for g_free. */
char *duet__why_part(const struct duet__why *why, const struct duet__path_part *part);

void duet__why_write_text(FILE *stream, const struct duet__why *why);
void duet__why_write_json(FILE *stream, const struct duet__why *why);

#endif
