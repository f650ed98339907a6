/* SPDX-License-Identifier: Apache-2.0 */
/* `duet validate`: what its files share. */
#ifndef DUET_CLI_VALIDATE_H
#define DUET_CLI_VALIDATE_H

#include "cli/job.h"
#include "validate/experiment.h"
#include "validate/recalibrate.h"

/* What was asked for, and what comes of it. */
struct duet__validate {
    struct duet__job job;
    struct duet_experiment experiment;
    struct duet_recalibration recalibration; /* of --calibrate */
    int written;                             /* exit status of writing its platform */
};

/* Reads a command line, and makes the cases. Returns -1 to go on, or an exit status. */
int duet__validate_parse(struct duet__validate *validate, int argc, char **argv);

/* The command, whose texts stand with its options. */
int duet__validate_run(int argc, char **argv);

#endif
