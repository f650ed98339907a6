/* SPDX-License-Identifier: Apache-2.0 */
/* `duet calibrate`: its options and its reports. */
#ifndef DUET_CLI_CALIBRATE_H
#define DUET_CLI_CALIBRATE_H

#include <stdio.h>

#include "calibrate/calibrate.h"
#include "cli/job.h"

/* What was asked for. */
struct duet__calibrate_options {
    struct duet__job *job; /* its request is what all runs have in common */
    struct duet__calibrate_request request;
    char *out; /* file of the machine's description */
    enum duet__write how;
};

/*
 * What a job's values and arguments say of it, whose request and file are freed also after an
 * error. DUET_EINVAL, DUET_ENOTFOUND and so on with a message.
 */
DUET_MUST_CHECK int duet__calibrate_read(struct duet__calibrate_options *options, int argc,
                                         char *const *argv, struct duet_message *message);

/*
 * What machine and file are called: `name`, or after *out, or after the host (each NULL: not
 * given); fills in what is missing of *out and *machine, which are the caller's to free, half-done
 * or not. DUET_EINVAL, as for a file that does not end in .json.
 */
DUET_MUST_CHECK int duet__calibrate_names(const char *name, char **out, char **machine,
                                          struct duet_message *message);

/* Says what could not be measured. Exit status: DUET__DONE where all could. */
int duet__calibrate_complain(const struct duet__calibrating *c);

/* Before minutes of measuring: complains where the machine has something else to do. */
void duet__warn_of_load(void);

/* Prints the report for people, and for programs (docs/calibrate.md). */
void duet__calibrate_put_text(const struct duet__calibrate_options *options,
                              const struct duet__calibrating *c,
                              const struct duet__platform *platform, FILE *stream);
void duet__calibrate_put_json(const struct duet__calibrate_options *options,
                              const struct duet__calibrating *c,
                              const struct duet__platform *platform, FILE *stream);

/*
 * In place of all else: measures messages over MPI and gives the file that is there their network.
 * Exit status.
 */
int duet__calibrate_nodes(const struct duet__calibrate_options *options);

#endif
