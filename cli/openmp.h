/* SPDX-License-Identifier: Apache-2.0 */
/* Runs of OpenMP programs with duet's recorder in them, a tool that LLVM's OpenMP runtime opens. */
#ifndef DUET_CLI_OPENMP_H
#define DUET_CLI_OPENMP_H

#include <stdbool.h>
#include <stdint.h>

struct duet__openmp {
    char **program;     /* and its arguments, NULL-ended */
    const char *out;    /* the file that the recorder writes */
    uint64_t threads;   /* 0: as the environment has it */
    uint64_t bytes;     /* of what a depend clause names; 0: not known */
    uint64_t loops;     /* parts of a loop; 0: it stays with its threads */
    bool static_loops;  /* also what may be a static loop of gcc's */
    bool only_makespan; /* no task is recorded, nor delayed by that */
    bool quiet;         /* without its standard output */
};

/*
 * Runs the program until it ends, and complains where it cannot be run, or where it has written no
 * graph without saying why. Signals that end a process are sent on to it, but for SIGINT, which a
 * terminal sends to both; *number is that of the last one, 0: none came. Exit status: the program's
 * own, or DUET__FAILED, DUET__MISUSED.
 */
int duet__openmp_run(const struct duet__openmp *run, int *number);

struct duet__job;

/*
 * `duet validate --openmp`: records job->program and runs it without that, in rounds, simulates
 * what was recorded, and prints both makespans by number of threads. Exit status.
 */
int duet__openmp_validate(struct duet__job *job);

#endif
