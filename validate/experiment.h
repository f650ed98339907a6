/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Experiments: cases that are predicted by simulations and measured by runs in rounds. The caller
 * sets the first part, makes the cases, predicts and measures in any order, and concludes.
 */
#ifndef DUET_VALIDATE_EXPERIMENT_H
#define DUET_VALIDATE_EXPERIMENT_H

#include <stdbool.h>
#include <stddef.h>

#include <glib.h>

#include "calibrate/calibrate.h"
#include "platforms/platform.h"
#include "runs/rounds.h"
#include "trace/run.h"
#include "validate/validation.h"

/* ------------------------------------------------------------------------------------------- */
/* The runs of one side of a case while they are made: accounted one by one, in rounds. */

/* The runs of one side: duet__sample_init before use, duet__sample_fini frees it. */
struct duet__sample {
    bool keep;           /* recordings are wanted */
    bool fresh;          /* the next run is the first of a round */
    GArray *accounts;    /* struct duet__account, by run */
    GArray *records;     /* struct duet__recording, by run; zeroed where not kept */
    GArray *rounds;      /* size_t: runs of each round; empty: the runs were not made in rounds */
    GArray *disturbed;   /* gboolean, by round: other processes computed meanwhile */
    double *makespans_s; /* seconds by run; duet__sample_conclude sets this */
    struct duet__account mean;
};

void duet__sample_init(struct duet__sample *sample, bool keep);
void duet__sample_fini(struct duet__sample *sample); /* safe on a zeroed sample */

static inline size_t duet__sample_count(const struct duet__sample *sample)
{
    return sample->accounts->len;
}

/*
 * Takes the next run, recorded with dates that count from the first submission: accounts it, and
 * keeps its records if they are wanted and there is room for their events. Frees the run. Returns
 * errors of duet__account_make.
 */
DUET_MUST_CHECK int duet__sample_put(struct duet__sample *sample, struct duet__run *run,
                                     struct duet_message *message);

/* Begins another round: the next runs belong to it. */
void duet__sample_begin(struct duet__sample *sample);

/* Notes that other processes disturbed the runs of the round at hand, if there are any yet. */
void duet__sample_disturb(struct duet__sample *sample);

/*
 * Leaves out the runs of disturbed rounds, if there are other rounds. Returns the number of runs
 * left out, which the sample then has no longer.
 */
size_t duet__sample_leave_out(struct duet__sample *sample);

/* Returns half of the 95 % interval of the median, by the median; INFINITY for less than two
   runs. */
double duet__sample_width(const struct duet__sample *sample);

/*
 * Returns about what duet__sample_width would be if rounds did not differ, which more runs in a
 * round make narrower: from the distances of runs from the medians of their rounds, as of normally
 * distributed ones. INFINITY for less than two runs a round on average, which say nothing of it.
 */
double duet__sample_width_within(const struct duet__sample *sample);

/*
 * Concludes after the last run (of at least one): multiplies all times by `factor`, makes the mean
 * account, and keeps one recording, that of the run nearest to the median among the kept ones. *out
 * borrows from the sample.
 */
void duet__sample_conclude(struct duet__sample *sample, double factor, struct duet__side *out);

/* ------------------------------------------------------------------------------------------- */
/* Experiments                                                                                  */

/* A trial: one case, and both of its sides. */
struct duet__trial {
    struct duet__request real;      /* the measured side */
    struct duet__request simulated; /* the predicted side */
    unsigned cpus, gpus;
    char *settings; /* "variant=left, width=8" */
    struct duet__sample measured, predicted;
    double low_s, high_s; /* predicted interval of the measured median; 0: none */
    bool quiet;           /* there was a round in which no other process used the cores */
    double spent_s;       /* seconds of its measured runs, with what is done between them */
    GArray *probes;       /* double: seconds of the reference kernel, one for each round */
    char *failure;        /* why the case could not be made; NULL: it could */
    int error;            /* the error of `failure` */
    bool refused;         /* the workload or the platform refused the case before any run */
};

/* An experiment. Call duet__experiment_init before anything else; duet__experiment_fini frees
   it. */
struct duet__experiment {
    /*
     * The request. `base` holds what all measured runs have in common: emulation, seed,
     * warm-ups; its `reps` are the least runs of a case, its `jobs` the simulations at a time. Only
     * simulations use its `extrapolate` and `without`.
     */
    struct duet__request base;
    /* a zeroed one for each case, but that `real` is what is asked for, with one policy; owned */
    struct duet__trial *trials;
    size_t trial_count;
    struct duet__platform *platform; /* cases are predicted from it; owned, with its name or file */
    char *platform_name;
    char *calibrated; /* when and by how much, for reports; owned; NULL: at an earlier time */
    size_t round_count, sim_reps;
    double until;       /* relative half-width of a median's interval; 0: only `reps` are made */
    double case_time_s; /* seconds of measured runs of a case; `reps` are made anyway */
    bool noise;         /* simulations draw their times */
    size_t intervals;   /* simulations from which the interval of a case is predicted; 0: none is */
    bool keep;          /* recordings are wanted */
    bool probe;         /* measure how fast the machine is, each round */
    bool follow_speed;  /* divide predictions by the speed that `probe` measures */
    bool keep_disturbed; /* keep runs during which others used the cores; else they are left out */
    /* Results. */
    double wake_s, event_s;      /* seconds, of this machine's threads; 0: not measured */
    double probed_s, probe_at_s; /* last time of the reference kernel, and its date */
    struct duet__rounds rounds;  /* rounds made so far; their cases are the trials */
    size_t left_out;             /* runs of disturbed rounds that nothing is concluded from */
    int number;                  /* signal by which the experiment was given up; 0: none */
    bool together;               /* several processes make some of its runs, over MPI */
    struct duet__case *cases;    /* the concluded cases */
    GPtrArray *texts;            /* texts of `cases`, owned */
};

void duet__experiment_init(struct duet__experiment *experiment);
void duet__experiment_fini(struct duet__experiment *experiment);

/*
 * Completes the trials of all cases. A case that its workload or the platform
 * refuses becomes a trial with a failure, if there are others. Returns DUET_EINVAL and errors of
 * building a machine.
 */
DUET_MUST_CHECK int duet__trials_make(struct duet__experiment *experiment,
                                      struct duet_message *message);

/* Builds the simulated machines of all trials anew, from the platform that the experiment has
   now. */
void duet__trials_rebuild(struct duet__experiment *experiment);

/* Notes that a trial could not be made, while `doing` ("measured"); the first note stays. */
void duet__trial_fail(struct duet__trial *trial, const char *doing, int error,
                      const struct duet_message *message);

/* The progress of an experiment. */
struct duet__tally {
    size_t left, runs, predicted; /* number of trials that did not fail, of their measured runs, and
                                     of those that are predicted */
    size_t failures;              /* number of failed trials that had not been refused */
    const struct duet__trial *failed; /* the first trial in `failures` */
};

struct duet__tally duet__experiment_tally(const struct duet__experiment *experiment);

/*
 * Measures what waking a thread and noticing a device's end take here, and gives these times to the
 * simulations of all cases: for emulated platforms, whose kernels and copies last what they say,
 * while threads are this machine's. Returns errors of duet__costs_measure; 0 also if a signal came.
 */
DUET_MUST_CHECK int duet__experiment_measure_threads(struct duet__experiment *experiment,
                                                     struct duet_message *message);

/* Simulates all trials. Notes failures, and the signal if one came. */
void duet__experiment_predict(struct duet__experiment *experiment, bool quiet);

/*
 * Makes one round of measured runs of all trials, beside a monitor that was started. Notes
 * failures, and the cases whose runs other processes disturbed. Returns the signal that ended it,
 * here or in another process of several nodes, or 0.
 */
int duet__experiment_measure_round(struct duet__experiment *experiment,
                                   struct duet__monitor *monitor, struct duet__progress *progress);

/*
 * Concludes all cases that have results: both sides in the same unit of time, and facts of all
 * cases. The experiment lends everything in *out but its command and fail_over, which the caller
 * sets.
 */
void duet__experiment_conclude(struct duet__experiment *experiment, struct duet__validation *out);

/* ------------------------------------------------------------------------------------------- */
/* Calibration between rounds                                                                   */

/*
 * A calibration between the rounds, so that the machine is measured as it is in the same minutes:
 * the work of duet calibrate, in slices. Zero-initialise it and set the caller's fields;
 * duet__recalibration_fini frees it.
 */
struct duet__recalibration {
    double time_s;             /* set by the caller; 0: as much as the measured runs of the cases
                                  take */
    struct duet__request runs; /* holds what all runs of the calibration have in common */
    struct duet__calibrate_request request; /* the caller sets its name, that of the machine */
    struct duet__calibrating
        calibrating; /* calibration under way; its first failure says what failed */
    GTimer *timer;   /* runs from the beginning on */
};

void duet__recalibration_fini(struct duet__recalibration *recalibration);

/*
 * Examines the machine, and gives the experiment its platform, which has no times yet, but allows
 * to make the cases: what is asked for is there. Returns errors of duet_open.
 */
DUET_MUST_CHECK int duet__recalibration_begin(struct duet__recalibration *recalibration,
                                              struct duet__experiment *experiment,
                                              struct duet_message *message);

/* Plans the measurements, for all trials that can be made. Returns DUET_EINVAL. */
DUET_MUST_CHECK int duet__recalibration_plan(struct duet__recalibration *recalibration,
                                             const struct duet__experiment *experiment,
                                             struct duet_message *message);

/*
 * Measures before the next round, or after the last one, when the runs of the trials have taken
 * `runs_s` so far. Failures are noted, and the rest goes on.
 */
void duet__recalibration_slice(struct duet__recalibration *recalibration,
                               const struct duet__experiment *experiment, double runs_s,
                               struct duet__monitor *monitor);

/* Fits the model, and predicts all trials from the resulting platform. Returns false if there is
   nothing to fit to. */
DUET_MUST_CHECK bool duet__recalibration_finish(struct duet__recalibration *recalibration,
                                                struct duet__experiment *experiment);

#endif
