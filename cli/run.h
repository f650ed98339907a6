/* SPDX-License-Identifier: Apache-2.0 */
/* `duet run`: what its files share. */
#ifndef DUET_CLI_RUN_H
#define DUET_CLI_RUN_H

#include <stdbool.h>
#include <stddef.h>

#include "cli/job.h"

/* The records of a run, with what they point to. Zero-initialise; duet__record_fini frees it. */
struct duet__record {
    struct duet_recording recording; /* machine NULL: not recorded */
    struct duet_event *events;
    char **kernels; /* NULL-ended */
};

void duet__record_fini(struct duet__record *record);

/*
 * Called after each measured run: may take the record over (and leave it zeroed). An error ends the
 * runs.
 */
typedef int (*duet__each_run)(void *self, const struct duet_run *run, struct duet__record *record,
                              struct duet_message *message);

/* What was asked for. Zero-initialise; duet__trial_fini frees it, half-built or not. */
struct duet__trial {
    struct duet__job job; /* machine and platform's name: known once a runtime is open */
    size_t warmups;       /* runs of each policy before those that are measured */
    bool paced;           /* at the pace of a platform: nothing is computed */
    bool verify;
    /* NULL: the first run of each policy is recorded if a file wants it; else every run is, for
       this function, and bounds are not computed */
    duet__each_run each;
    /* asked after each measured run whether it was the last one of its policy; NULL: as many are
       made as were asked for */
    bool (*enough)(void *self);
    void *self; /* first argument of both */
};

/* What the runs of one policy left. Zero-initialise. */
struct duet__series {
    struct duet_run *runs;      /* room for as many as were asked for */
    size_t count;               /* that are finished */
    struct duet__record record; /* of the first */
};

/* What all runs left, and how they ended. */
struct duet__findings {
    struct duet__series *series; /* one a policy */
    const char *formula;         /* of the residuals; NULL: nothing was verified */
    double threshold;
    int number; /* of the signal by which they were given up; 0: none */
};

/* As duet__simulation_parse. */
int duet__trial_parse(struct duet__trial *trial, int argc, char **argv);

void duet__trial_fini(struct duet__trial *trial);

/*
 * Makes the runs, policy after policy, on data that is generated once. findings->series has one
 * zeroed element a policy and is the caller's (duet__series_fini). Exit status: DUET__DONE also if
 * a signal came, DUET__FAILED or DUET__MISUSED after a complaint.
 */
int duet__trial_run(struct duet__trial *trial, struct duet__findings *findings);

struct duet__attendant;

/*
 * The same on data that the caller has generated (NULL where paced), beside an attendant that it
 * has started; findings->number stays. Returns 0, also if a signal came, or what failed with its
 * message: nothing is complained of.
 */
DUET_MUST_CHECK int duet__trial_go(struct duet__trial *trial, struct duet__attendant *attendant,
                                   void *data, struct duet__findings *findings,
                                   struct duet_message *message);

void duet__series_fini(struct duet__series *series);

#endif
