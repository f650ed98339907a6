/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calibration between the rounds of an experiment, so that the machine is measured as it is in the
 * same minutes: what duet calibrate does, in slices.
 */
#ifndef DUET_VALIDATE_RECALIBRATE_H
#define DUET_VALIDATE_RECALIBRATE_H

#include <glib.h>

#include "calibrate/calibrate.h"
#include "validate/experiment.h"

/* Zero-initialise, set what is the caller's; duet_recalibration_fini. */
struct duet_recalibration {
    char *name;               /* the caller's, taken over: of the machine that is described */
    double time_s;            /* the caller's; 0: as much as the measured runs of the cases take */
    struct duet_request runs; /* what all runs of the calibration have in common */
    struct duet__calibrate_request request;
    struct duet__calibrating calibrating; /* its `now` says what failed */
    GTimer *timer;                        /* from the beginning on */
};

void duet_recalibration_fini(struct duet_recalibration *recalibration);

/*
 * Looks at the machine, and makes a platform of it that has no times yet the experiment's, with
 * which cases can be made: its specs are there. Errors of duet_open.
 */
DUET_MUST_CHECK int duet_recalibration_begin(struct duet_recalibration *recalibration,
                                             struct duet_experiment *experiment,
                                             struct duet_message *message);

/* Plans what is to be measured: of all pairs that can be. DUET_EINVAL. */
DUET_MUST_CHECK int duet_recalibration_plan(struct duet_recalibration *recalibration,
                                            const struct duet_experiment *experiment,
                                            struct duet_message *message);

/*
 * Measures before round `round`, from 0 on, or after the last one, when the runs of the pairs have
 * taken `runs_s` so far. 0 also if a signal came.
 */
DUET_MUST_CHECK int duet_recalibration_slice(struct duet_recalibration *recalibration,
                                             const struct duet_experiment *experiment, size_t round,
                                             double runs_s, struct duet_monitor *monitor);

/* Fits, and makes what was found the platform that all pairs are predicted from. */
DUET_MUST_CHECK int duet_recalibration_finish(struct duet_recalibration *recalibration,
                                              struct duet_experiment *experiment);

#endif
