/* SPDX-License-Identifier: Apache-2.0 */
/* `duet calibrate`: its options and its reports. */
#ifndef DUET_CLI_CALIBRATE_H
#define DUET_CLI_CALIBRATE_H

#include <stdio.h>

#include "calibrate/calibrate.h"
#include "cli/job.h"
#include "runs/executor.h"
#include "runs/monitor.h"

/* The request of `duet calibrate`, from its command line. */
struct duet__calibrate_options {
    struct duet__job *job; /* its request holds what all runs have in common */
    struct duet__calibrate_request request;
    char *out; /* file of the machine's description */
    enum duet__write how;
};

/*
 * Names machine and file: after `name`, or after *out, or after the host (each NULL: not given).
 * Fills in what is missing of *out and *machine, which the caller frees, also after an error.
 * Returns DUET_EINVAL, also for a file that does not end in .json.
 */
DUET_MUST_CHECK int duet__calibrate_names(const char *name, char **out, char **machine,
                                          struct duet_message *message);

/*
 * Measures this machine, writes it and prints a report, unless it is a part of something larger
 * (job->in_table). Returns the exit status, after a complaint if it is not DUET__DONE.
 */
int duet__calibrate(struct duet__calibrate_options *options);

/* Reports what could not be measured. Returns the exit status: DUET__DONE if all could be. */
int duet__calibrate_complain(const struct duet__calibrating *c);

/*
 * Executes a job in a process of its own, as CUDA does not work in children of a process that has
 * used it. A held signal ends it; *number is that signal, or 0. Returns true if the job left a
 * result. signals NULL: none ends it.
 */
bool duet__do_apart(duet__execute_fn *execute, void *data, const struct duet__signals *signals,
                    int *number);

/* Returns false if a platform's file, which exists and ends in .json, is not of this machine with
   these devices (NULL: the usual ones). Looks in a process of its own. */
bool duet__is_here(const char *platform, const char *devices, const struct duet__signals *signals,
                   int *number);

/* Warns, before minutes of measuring, if other processes use the machine. */
void duet__warn_of_load(void);

/* Prints the report for people; duet__calibrate_put_json, for programs (docs/calibrate.md). */
void duet__calibrate_put_text(const struct duet__calibrate_options *options,
                              const struct duet__calibrating *c,
                              const struct duet__platform *platform, FILE *stream);
void duet__calibrate_put_json(const struct duet__calibrate_options *options,
                              const struct duet__calibrating *c,
                              const struct duet__platform *platform, FILE *stream);

/*
 * Measures messages over MPI, and nothing else, and writes their network into the existing file.
 * Returns the exit status.
 */
int duet__calibrate_nodes(const struct duet__calibrate_options *options);

#endif
