/* SPDX-License-Identifier: Apache-2.0 */
/* Runs of OpenMP programs with duet's recorder in them, a tool that LLVM's OpenMP runtime opens. */
#ifndef DUET_CLI_OPENMP_H
#define DUET_CLI_OPENMP_H

#include <stdbool.h>
#include <stdint.h>

struct duet__openmp {
    char **program;     /* the program and its arguments, NULL-ended */
    const char *out;    /* the file that the recorder writes */
    uint64_t threads;   /* number of threads; 0: as the environment has it */
    uint64_t bytes;     /* size of what a depend clause names, in bytes; 0: not known */
    uint64_t loops;     /* parts that a loop is cut into; 0: a loop stays with its threads */
    bool static_loops;  /* also cut what may be a static loop of gcc's */
    bool only_makespan; /* the makespan alone is measured: no task is recorded, or delayed by
                           recording */
    bool quiet;         /* discard the program's standard output */
};

/*
 * Runs the program until it ends. Complains if it cannot be run, or has written no graph without
 * saying why. Signals that end a process are sent on to it, but for SIGINT, which a terminal sends
 * to both; *number is the last such signal, or 0. Returns the program's own exit status, or
 * DUET__FAILED, DUET__MISUSED.
 */
int duet__openmp_run(const struct duet__openmp *run, int *number);

struct duet__job;

/*
 * Executes `duet validate --openmp`: runs job->program in rounds, recorded and not, simulates the
 * recordings, and prints both makespans by number of threads. Returns the exit status.
 */
int duet__openmp_validate(struct duet__job *job);

#endif
