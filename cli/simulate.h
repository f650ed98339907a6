/* SPDX-License-Identifier: Apache-2.0 */
/* `duet simulate`: what its files share. */
#ifndef DUET_CLI_SIMULATE_H
#define DUET_CLI_SIMULATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "cli/job.h"
#include "cli/progress.h"
#include "report/report.h"

struct duet__outcome;

/* Called when run `rep` of a policy has ended, in no certain order. An error ends the others. */
typedef int (*duet__each_outcome)(void *self, size_t policy, size_t rep,
                                  const struct duet__outcome *outcome,
                                  struct duet_message *message);

/* What was asked for. Zero-initialise; duet__simulation_fini frees it, half-built or not. */
struct duet__simulation {
    struct duet__job job; /* run r of a policy has seed job.seed + r */
    unsigned jobs;        /* runs at a time */
    bool wall;            /* report how long they took */
    /* NULL: the first run of each policy is recorded if a file wants it; else every run is, for
       this function, and freed after that */
    duet__each_outcome each;
    void *self; /* its first argument */
};

/* What one run left. Zero-initialise. */
struct duet__outcome {
    struct duet_run run;
    struct duet_recording recording; /* points into `mapping`; machine NULL: not recorded */
    const char **kernels;            /* what recording.kernels is */
    void *mapping;
    size_t mapped_bytes;
};

/*
 * Reads the command line and checks everything that can be checked before a run: workload, sizes,
 * policies, platform, machine. Returns -1 to go on, or an exit status (0 after "--policy help").
 */
int duet__simulation_parse(struct duet__simulation *simulation, int argc, char **argv);

void duet__simulation_fini(struct duet__simulation *simulation);

/*
 * Makes all runs in child processes, `jobs` at a time. outcomes[policy * reps + run] is filled and
 * owned by the caller (duet__outcome_fini). The first run of each policy is recorded if a file
 * wants it. Returns an exit status; after a complaint on standard error outcomes may be partly
 * filled. A signal that ends the process ends the children too.
 */
int duet__simulation_run(const struct duet__simulation *simulation, struct duet__outcome *outcomes);

void duet__outcome_fini(struct duet__outcome *outcome);

/* Several simulations that are made one after another: initialise the progress of them all. */
struct duet__sequence {
    struct duet__progress progress;
    uint64_t tasks, runs; /* finished before the one at hand */
    int number;           /* of the signal by which they were given up; 0: none */
};

/*
 * As duet__simulation_run, of a simulation with `each`. A signal ends the runs but not the process.
 * Returns 0, also if a signal came, or what failed with its message: nothing is complained of.
 */
DUET_MUST_CHECK int duet__simulation_go(const struct duet__simulation *simulation,
                                        struct duet__sequence *sequence,
                                        struct duet_message *message);

/* Counter of finished tasks that a run shares with the process that started it. */
typedef _Atomic uint64_t duet__counter;

/*
 * In a child process: makes one run and writes what came out to `stream`, to be read by
 * duet__outcome_read. Counts finished tasks in *done while it lasts.
 */
void duet__simulation_child(const struct duet__simulation *simulation, size_t policy, size_t rep,
                            FILE *stream, duet__counter *done);

/*
 * Reads what a child wrote to the file `fd`. Returns the run's error code with its message, or
 * DUET_EIO where the file is not whole.
 */
DUET_MUST_CHECK int duet__outcome_read(struct duet__outcome *outcome, int fd,
                                       const struct duet_machine *machine,
                                       struct duet_message *message);

#endif
