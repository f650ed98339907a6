/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in this process. A session is one runtime under one policy, in which runs of a request
 * follow each other on the same data: whoever wants some makes one after another, looks at each,
 * stops when it likes, and closes it.
 */
#ifndef DUET_RUNS_SESSION_H
#define DUET_RUNS_SESSION_H

#include <stdbool.h>

#include "runs/monitor.h"
#include "runs/request.h"
#include "runtime/schedule.h"
#include "trace/run.h"

/* A session under way. Zero-initialise, then set the caller's members. */
struct duet__session {
    /* members of the caller */
    struct duet__request *request; /* the first session fills in its machine */
    const char *policy;
    struct duet__monitor *monitor; /* started before any runtime is opened; NULL: none */
    /* members of the caller, which may change between runs */
    struct duet__problem problem; /* with generated data, or none where paced */
    bool quiet;                   /* true if remarks on such a machine have been made before */
    bool last;                    /* true if the next run is the last one under this policy */
    /* members of the session */
    struct duet_runtime *runtime;
    void *state;    /* the workload's state of the run at hand */
    int error;      /* error of the last run */
    bool scheduled; /* true if the policy follows a schedule */
    bool spent;     /* true if data cannot be taken back: the next run has another runtime */
};

/*
 * Opens the runtime, which duet__session_run does itself where there is none. Errors of duet_open,
 * with a message: nothing need be closed then.
 */
DUET_MUST_CHECK int duet__session_open(struct duet__session *session, struct duet_message *message);

/*
 * Makes one run from the filling of its data on, and measures it into a zeroed one; NULL: it is a
 * warm-up. It is recorded if `record` says so. Returns 0, what failed with its message (of a real
 * run DUET_ETASK where tasks had begun, so that the input is not to blame), or, where a signal came
 * before it was finished, DUET_ECANCELED: the run is not made then. After an error, close.
 */
DUET_MUST_CHECK int duet__session_run(struct duet__session *session, struct duet__run *run,
                                      enum duet__recorded record, struct duet_message *message);

/* Closes the runtime, without waiting for what is left after an error or a signal. */
void duet__session_close(struct duet__session *session);

/*
 * Makes the warm-ups and the runs of every policy of a request into series[policy], which
 * duet__series_fini frees, on this machine and on data that is generated once. Runs before one that
 * fails count. Returns 0, also where a signal came to the monitor, or why there is no data, with a
 * message.
 */
DUET_MUST_CHECK int duet__run_all(struct duet__request *request, struct duet__monitor *monitor,
                                  struct duet__series *series, struct duet_message *message);

/*
 * Processes that are the nodes of one run, over MPI, agree while no runtime is open.
 * Returns whether all processes can go on: 0, the error of the first that cannot, with its message,
 * or above 0 the number of the signal that came to one of them, which all monitors then have.
 * `error` is this process's error, or such a number. `together`: there are others; it is the same
 * in all and from the first run to the last. Else only this process counts. Collective if
 * `together`: a process that acted on a signal without it would leave others waiting.
 */
DUET_MUST_CHECK int duet__processes_agree(bool together, struct duet__monitor *monitor, int error,
                                          struct duet_message *message);

/* True if other processes make the request's runs together with this one. */
bool duet__processes_share(const struct duet__request *request);

/* Tells the others why this process ends before it has agreed on anything with them. */
void duet__processes_decline(const char *why);

/* ------------------------------------------------------------------------------------------- */
/*
 * Programs that make their task graphs themselves, with libduet, as workloads: each run is a
 * process of its own, which is told by its environment what to be (world, policy, seed, ...), and
 * leaves its trace.
 */

/*
 * Makes a program the workload of a request: `argv`, NULL-ended, has it and its arguments, and is
 * kept by the request and its copies. It is called as its file is, in letters that a name can have.
 * DUET_EINVAL where there is none, DUET_ENOTFOUND where it cannot be run, with a message.
 */
DUET_MUST_CHECK int duet__program_take(struct duet__request *request, char *const *argv,
                                       struct duet_message *message);

/*
 * Runs the program of a request once, under a policy, with the request's configuration and seed,
 * and reads what it leaves into a zeroed run (NULL: it is a warm-up), with its recording,
 * or without `records` with no more of that than the machine of one node. Its
 * standard input is empty, its output is dropped, and of what it says on standard error the last
 * line is in the message if it fails. The platform that the request has in memory is the program's.
 * A signal that the monitor notes ends it (NULL: who forked this process does, by its process
 * group). DUET_ECANCELED for that, and where a signal ended the program; DUET_ETASK where it has
 * failed or left no trace, or several; DUET_EIO.
 */
DUET_MUST_CHECK int duet__program_run(const struct duet__request *request, const char *policy,
                                      struct duet__monitor *monitor, bool records,
                                      struct duet__run *run, struct duet_message *message);

/* ------------------------------------------------------------------------------------------- */
/*
 * Simulated runs, each in a child process (executor.h), as many at a time as the request says. The
 * result does not depend on which child ends first.
 */

/*
 * Makes all runs of a request that was built into series[policy], which duet__series_fini frees. Of
 * a policy, those before the first one that fails are made, whatever happened first. A signal that
 * ends a process (unless it is ignored) ends the children only: *number is then its number, and
 * their runs are not made. Returns 0, or DUET_EIO with a message where the system has no means for
 * it.
 */
DUET_MUST_CHECK int duet__simulate(const struct duet__request *request,
                                   struct duet__progress *progress, struct duet__series *series,
                                   int *number, struct duet_message *message);

/*
 * Makes the first run of the first policy in this process into a
 * zeroed run. Errors of duet__session_run.
 */
DUET_MUST_CHECK int duet__simulate_here(const struct duet__request *request, struct duet__run *run,
                                        struct duet_message *message);

/* ------------------------------------------------------------------------------------------- */
/* Search for better schedules, by simulation */

/* The result of a search. */
struct duet__improved {
    struct duet__run run;            /* with its recording; for duet__run_fini */
    struct duet__schedule *schedule; /* as it was followed; for duet__schedule_free */
    uint64_t tries;                  /* schedules that were simulated */
    double before_s; /* makespan of the best schedule that it began with, followed */
};

/*
 * Looks for `seconds` for a schedule of the request's tasks with a shorter makespan than those of
 * the first runs of `count` series, which were recorded, or not made. As many processes as the
 * request says follow paths of their own, between the moments at which all go on from the best. A
 * path is a local search: a task of the critical path, or another one, moves to another worker or
 * to an earlier place, which keeps the order of tasks that depend on each other; what the
 * simulation then takes longer is kept with a probability that falls to 0 (simulated annealing:
 * Kirkpatrick, Gelatt, Vecchi, Science 220, 1983). The request was built, simulates one node
 * without noise, and is no program.
 *
 * A signal (*number, 0: none) ends the search, whose result so far counts. Errors of
 * duet__schedule_take where no series has a schedule, and of a simulation, with a message: *out has
 * nothing then.
 */
DUET_MUST_CHECK int duet__improve(const struct duet__request *request,
                                  const struct duet__series *series, size_t count, double seconds,
                                  struct duet__improved *out, int *number,
                                  struct duet_message *message);

#endif
