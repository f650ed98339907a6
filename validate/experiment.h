/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cases that are predicted by simulations and measured by runs in rounds: what is asked for, and
 * what comes of it. Whoever wants one sets the first part, makes the cases, predicts and measures
 * in whatever order, and concludes.
 */
#ifndef DUET_VALIDATE_EXPERIMENT_H
#define DUET_VALIDATE_EXPERIMENT_H

#include <stdbool.h>
#include <stddef.h>

#include <glib.h>

#include "calibrate/calibrate.h"
#include "platforms/platform.h"
#include "runs/monitor.h"
#include "runs/progress.h"
#include "runs/request.h"
#include "validate/sample.h"
#include "validate/validation.h"

/* One case. */
struct duet__trial {
    struct duet__request real;      /* measures */
    struct duet__request simulated; /* predicts */
    unsigned group;                 /* of neighbours that compute on the same data */
    unsigned cpus, gpus;
    char *settings; /* "variant=left, width=8" */
    struct duet__sample measured, predicted;
    double spent_s; /* on its measured runs, with what is done between them */
    GArray *probes; /* double: seconds of the reference kernel, one a round */
    char *failure;  /* why it could not be made; NULL: it could */
    int error;      /* behind it */
    bool refused;   /* by the workload or the platform, before anything was made */
};

/* duet__experiment_init before anything else; duet__experiment_fini frees it. */
struct duet__experiment {
    /*
     * What is asked for. Of `base` all that the measured runs have in common: emulation, seed,
     * warm-ups, and as `reps` the runs of a case at least; as `jobs` the simulations at a time;
     * `extrapolate` and `without` are the simulations'.
     */
    struct duet__request base;
    GArray *asked; /* struct duet__request, owned: of each case, with one policy */
    struct duet__platform *platform; /* predicted from, owned, with its name or file */
    char *platform_name;
    char *calibrated; /* when and by how much, for reports; owned; NULL: some time before */
    size_t rounds, sim_reps;
    double until;        /* relative half-width of a median's interval; 0: no more than `reps` */
    double case_time_s;  /* of measured runs of a case; `reps` are made anyway */
    bool noise;          /* of the simulations */
    bool keep;           /* recordings are wanted */
    bool probe;          /* how fast the machine is, each round */
    bool follow_speed;   /* divide predictions by that */
    bool keep_disturbed; /* runs during which others used the cores; else they are left out */
    /* What comes of it. */
    struct duet__trial *trials;
    size_t trial_count;
    double wake_s, event_s;      /* of this machine's threads; 0: not measured */
    double probed_s, probe_at_s; /* last time of the reference kernel, and when */
    GArray *disturbed;           /* size_t: rounds, from 1, in which others used the cores */
    size_t left_out;             /* runs of them that nothing is concluded from */
    int number;                  /* of the signal by which it was given up; 0: none */
    bool together;               /* some of its runs are made by several processes, over MPI */
    struct duet__case *cases;    /* that are concluded */
    GPtrArray *texts;            /* of what is concluded */
};

void duet__experiment_init(struct duet__experiment *experiment);
void duet__experiment_fini(struct duet__experiment *experiment);

/*
 * Makes the trials of all that is asked for. A case that its workload or the platform refuses is
 * one with a failure, if there are others. DUET_EINVAL and errors of building a machine.
 */
DUET_MUST_CHECK int duet__trials_make(struct duet__experiment *experiment,
                                      struct duet_message *message);

/* The simulated machines of all trials anew, from the platform that the experiment has now. */
void duet__trials_rebuild(struct duet__experiment *experiment);

/* Notes that it could not be made, while `doing` ("measured"); the first note stays. */
void duet__trial_fail(struct duet__trial *trial, const char *doing, int error,
                      const struct duet_message *message);

/* How far it has come. */
struct duet__tally {
    size_t left, runs, predicted; /* trials that did not fail; of these, measured runs, and trials
                                     that are predicted */
    size_t failures;              /* of trials that had not been refused */
    const struct duet__trial *failed; /* the first of them */
};

struct duet__tally duet__experiment_tally(const struct duet__experiment *experiment);

/*
 * Measures what waking a thread and noticing a device's end take here, and gives that to the
 * simulations of all cases: for emulated platforms, whose kernels and copies last what they say,
 * while threads are this machine's. Errors of duet__costs_measure; 0 also where a signal came.
 */
DUET_MUST_CHECK int duet__experiment_measure_threads(struct duet__experiment *experiment,
                                                     struct duet_message *message);

/* The simulations of all trials. Notes what fails, and the signal if one came. */
void duet__experiment_predict(struct duet__experiment *experiment, bool quiet);

/*
 * One round of measured runs of all trials, beside a monitor that was started: every case has some
 * runs in each round, so that a machine that becomes slower or faster meanwhile does so for all of
 * them. Notes what fails, and of which cases the runs were disturbed by other processes. Returns
 * the number of the signal that ended it, here or in another process of several nodes, or 0.
 */
int duet__experiment_measure_round(struct duet__experiment *experiment, size_t number,
                                   struct duet__monitor *monitor, struct duet__progress *progress);

/*
 * The cases that there is something to say of, both sides in the same unit of time, and what is
 * known of them all: everything in *out is borrowed from the experiment. Not its command and
 * fail_over, which are the caller's.
 */
void duet__experiment_conclude(struct duet__experiment *experiment, struct duet__validation *out);

/* ------------------------------------------------------------------------------------------- */
/* recalibrate.c                                                                                */

/*
 * Calibration between the rounds, so that the machine is measured as it is in the same minutes:
 * what duet calibrate does, in slices. Zero-initialise, set what is the caller's;
 * duet__recalibration_fini.
 */
struct duet__recalibration {
    double time_s;             /* the caller's; 0: as much as the measured runs of the cases take */
    struct duet__request runs; /* what all runs of the calibration have in common */
    struct duet__calibrate_request request; /* its name, of the machine, is the caller's */
    struct duet__calibrating calibrating;   /* its first failure says what failed */
    GTimer *timer;                          /* from the beginning on */
};

void duet__recalibration_fini(struct duet__recalibration *recalibration);

/*
 * Looks at the machine, and makes a platform of it that has no times yet the experiment's, with
 * which cases can be made: what is asked for is there. Errors of duet_open.
 */
DUET_MUST_CHECK int duet__recalibration_begin(struct duet__recalibration *recalibration,
                                              struct duet__experiment *experiment,
                                              struct duet_message *message);

/* Plans what is to be measured: of all trials that can be. DUET_EINVAL. */
DUET_MUST_CHECK int duet__recalibration_plan(struct duet__recalibration *recalibration,
                                             const struct duet__experiment *experiment,
                                             struct duet_message *message);

/*
 * Measures before round `round`, from 0 on, or after the last one, when the runs of the trials have
 * taken `runs_s` so far. What fails is noted, and the rest goes on.
 */
void duet__recalibration_slice(struct duet__recalibration *recalibration,
                               const struct duet__experiment *experiment, size_t round,
                               double runs_s, struct duet__monitor *monitor);

/* Fits, and makes what was found the platform that all trials are predicted from. False: there is
   nothing to fit to. */
DUET_MUST_CHECK bool duet__recalibration_finish(struct duet__recalibration *recalibration,
                                                struct duet__experiment *experiment);

#endif
