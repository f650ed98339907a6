/* SPDX-License-Identifier: Apache-2.0 */
/* `duet validate`: what its files share. */
#ifndef DUET_CLI_VALIDATE_H
#define DUET_CLI_VALIDATE_H

#include <stdbool.h>

#include "cli/job.h"
#include "validate/experiment.h"
#include "validate/recalibrate.h"

/* What was asked for, and what comes of it. */
struct duet__validate {
    struct duet__job job; /* command, formats, page */
    struct duet_experiment experiment;
    char *cases; /* file they come from; NULL: the command line */
    bool verbose, calibrate;
    double budget_s;                         /* no round begins after so long; 0: all do */
    double fail_over;                        /* relative error; 0: no check */
    struct duet_recalibration recalibration; /* where `calibrate` says so */
    char *out;                               /* file for it; NULL: none is wanted */
};

/* Reads a command line, and makes the cases. Returns -1 to go on, or an exit status. */
int duet__validate_parse(struct duet__validate *validate, int argc, char **argv);

#endif
