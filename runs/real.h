/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs on this machine. A session is one runtime under one policy, in which runs of a request
 * follow each other on the same data: whoever wants some opens it, makes one after another, looks
 * at each, and stops when it likes.
 */
#ifndef DUET_RUNS_REAL_H
#define DUET_RUNS_REAL_H

#include <stdbool.h>
#include <stddef.h>

#include "runs/monitor.h"
#include "runs/request.h"
#include "runs/run.h"

/* A session under way. Zero-initialise, set what is said to be the caller's, then open. */
struct duet_session {
    /* the caller's: */
    struct duet_request *request; /* its machine is filled in by the first session */
    const char *policy;
    struct duet_monitor *monitor; /* started before any runtime is opened */
    /* the caller's, may be changed between runs: */
    struct duet_problem problem; /* with the data that was generated for it, or none where paced */
    bool quiet; /* what is to be said of a machine such as this has been said before */
    /* the session's own: */
    struct duet_runtime *runtime;
    void *state; /* the workload's, of the run at hand */
    int error;   /* of the last run */
};

/* Opens the runtime. Errors of duet_open, with a message: nothing need be closed then. */
DUET_MUST_CHECK int duet_session_open(struct duet_session *session, struct duet_message *message);

/*
 * Makes one run from the filling of its data on, and measures it into a run that duet_runs_new has
 * made; NULL: it is a warm-up. It is recorded if `record` says so. Returns 0, what failed with its
 * message (DUET_ETASK where tasks had begun, so that the input is not to blame), or, where a signal
 * came meanwhile, DUET_ECANCELED: the run is not made then. After an error, close.
 */
DUET_MUST_CHECK int duet_session_run(struct duet_session *session, struct duet_run *run,
                                     enum duet_records record, struct duet_message *message);

/* Closes the runtime, without waiting for what is left after an error or a signal. */
void duet_session_close(struct duet_session *session);

/* Makes the warm-ups and the runs that were requested, in a session of their own. */
void duet_series_make(struct duet_series *series, struct duet_session *session);

#endif
