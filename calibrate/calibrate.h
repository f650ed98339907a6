/* SPDX-License-Identifier: Apache-2.0 */
/* Calibration of this machine: the request, the plan of runs, measuring them within a time, and the
 * results. */
#ifndef DUET_CALIBRATE_CALIBRATE_H
#define DUET_CALIBRATE_CALIBRATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "calibrate/microbench.h"
#include "calibrate/model.h"
#include "platforms/platform.h"
#include "runs/monitor.h"
#include "runs/request.h"
#include "runs/rounds.h"
#include "runtime/open.h"
#include "runtime/settings.h"

enum { DUET__LEAST_ROUNDS = 3 }; /* fewer rounds say little of the spread of times */

/* The request of a calibration. Zero-initialise; duet__calibrate_request_fini frees it, half-built
 * or not. */
struct duet__calibrate_request {
    /* configuration and seed of all runs, without workload and problem; borrowed. Its policy may be
       NULL: then there are two, in turn */
    const struct duet__request *runs;
    /* struct duet__setup: exactly their workloads, tiles and precisions, on devices alone if they
       say so; NULL: chosen by the members below */
    GArray *subjects;
    GPtrArray *workloads; /* const struct duet__workload * */
    GPtrArray *traces;    /* const char *, borrowed: files of runs that replace measuring */
    bool chosen;          /* workloads were named; else all that can run are measured */
    struct duet__numbers sizes, tiles; /* borrowed; empty: by default */
    const char *precisions;            /* "d", "s", "sd": a constant */
    double budget_s;
    uint64_t rounds; /* exactly so many; 0: as many as there is time for */
    bool paced;      /* emulates a platform's times: nothing is computed */
    bool no_costs, no_copies;
    char *name; /* name of the described machine */
};

void duet__calibrate_request_fini(struct duet__calibrate_request *request);

/* Why a problem has its size. */
enum duet__size {
    DUET__SIZE_GIVEN, /* it was asked for */
    DUET__SIZE_WARM,  /* its data is to fit into caches, if tiles allow that */
    DUET__SIZE_COLD,  /* its data is to be larger than caches */
};

/* A problem on certain workers, with runs in each round. */
struct duet__setup {
    const struct duet__workload *workload;
    struct duet__problem problem; /* n is 0 until duet__setup_size has chosen it */
    uint64_t warmup_n;            /* size of the warm-up run */
    enum duet__size size;
    bool devices;  /* only kernels of devices, which have run on them alone */
    bool optional; /* not requested: left out if the budget has no time for it */
    bool failed;   /* a run has failed: the setup is not tried again */
    int cpus, gpus;
    unsigned group; /* setups that differ only in size and resources have the same number */
    /* measured so far; runs 0: it was left out */
    uint64_t runs, tasks;
    double run_s;  /* mean of one run, from its first submission on */
    double turn_s; /* length of its last turn, including making data */
};

/* A measurement that failed. */
struct duet__failure {
    char what[96]; /* name of the setup in messages */
    int error;
    struct duet_message message;
};

/* A calibration under way, and its results. Zero-initialise but for the first three members, then
 * duet__calibrating_look; duet__calibrating_fini frees it, half-built or not. */
struct duet__calibrating {
    const struct duet__calibrate_request *request; /* borrowed */
    struct duet__monitor *monitor; /* borrowed, started when something is measured */
    struct duet__progress bar;     /* zeroed: none */
    double start_s;                /* moved on by the pauses */
    double paused_s;               /* begin of the last pause, since start_s */
    struct duet__failure now;      /* the current measurement, and why it failed */
    struct duet__info info;        /* the machine, with all its workers */
    struct duet_sharing known;     /* the shared cache as the system reports it */
    unsigned cpus, gpus;           /* workers */
    double pace;                   /* scale of emulated times, else 1 */
    GArray *setups;                /* struct duet__setup */
    unsigned groups;
    struct duet__rounds rounds;    /* rounds whose cases are the setups */
    GArray *runs;                  /* struct duet__recorded_run, whose recordings are owned here */
    GArray *failures;              /* struct duet__failure */
    uint64_t left_out;             /* disturbed runs that the model leaves out */
    struct duet__disturbance load; /* disturbance by others, over all of it */
    double wall_s, runs_s;         /* time of the whole calibration, and of its rounds */
    double probe_s;
    struct duet__measured costs[DUET__COSTS];
    bool has_costs, has_copies;
    struct duet__bandwidth bandwidth;
    struct duet__copies copies;
    struct duet__model model;
};

void duet__calibrating_fini(struct duet__calibrating *c);

/* ------------------------------------------------------------------------------------------- */
/* plan.c                                                                                        */

/* Makes the list of setups for the machine at hand. DUET_EINVAL with a message if a workload that
 * was named cannot run with any of the sizes. */
DUET_MUST_CHECK int duet__plan_make(struct duet__calibrating *c, struct duet_message *message);

/*
 * Chooses the size of a setup's problem if it is not known yet: data of four times the shared
 * cache; less if a run would take longer than `fair_s`, by the speed of its group so far, but more
 * than one and a half times the cache while a run takes less than thrice `fair_s`. In any case it
 * is half as large again, each way, as the problem that is to fit into caches.
 */
void duet__setup_size(const struct duet__calibrating *c, struct duet__setup *setup, double fair_s);

/* Estimates the seconds of a turn with one run, by the nearest run of its workload; 0: not
 * known. */
double duet__setup_seconds(const struct duet__calibrating *c, const struct duet__setup *setup);

/* Counts a run that took so long. */
static inline void duet__setup_count(struct duet__setup *setup, double seconds)
{
    setup->run_s = (setup->run_s * (double)setup->runs + seconds) / (double)(setup->runs + 1);
    setup->runs++;
}

/* "alone", "busy", "gpus": the workers of the setup's runs; and their size. Constants. */
const char *duet__setup_workers(const struct duet__setup *setup);
const char *duet__setup_size_name(const struct duet__setup *setup);

static inline struct duet__setup *duet__setup_at(const struct duet__calibrating *c, guint place)
{
    return &g_array_index(c->setups, struct duet__setup, place);
}

/* ------------------------------------------------------------------------------------------- */
/* measure.c: look, plan, then measure all at once or in parts */

/* Looks at the machine to be measured. Errors of duet_open. */
DUET_MUST_CHECK int duet__calibrating_look(struct duet__calibrating *c,
                                           struct duet_message *message);

/* The functions below end soon after a signal. A failure is noted (once for failures with the same
 * words), and the rest goes on. */

/* Measures all that was requested, and fits, if anything was measured. */
void duet__calibrating_all(struct duet__calibrating *c);

/* Begins or ceases to count time, and frees the data that was kept for later runs. */
void duet__calibrating_go_on(struct duet__calibrating *c);
void duet__calibrating_pause(struct duet__calibrating *c);

/* Measures the speed of the cores, the runtime's operations, bandwidth and copies. */
void duet__calibrating_once(struct duet__calibrating *c);

/*
 * Gives each setup its turn, beginning after the last slice's, until `seconds` have passed; the
 * first time until each had its turn; or for the requested number of rounds. A round over all
 * setups is to take `round_s`.
 */
void duet__calibrating_slice(struct duet__calibrating *c, double seconds, double round_s);

/* Fits the model to all runs so far, except those that others disturbed. */
void duet__calibrating_fit(struct duet__calibrating *c);

/* ------------------------------------------------------------------------------------------- */
/* traces.c                                                                                      */

/*
 * Adds the runs in the traces of the request as if they had been measured, each under the name of
 * its workload or program. `runs` are the request's, and keep what is needed of them. DUET_EIO,
 * DUET_EPARSE; DUET_EINVAL if a run was simulated, or has architectures that this machine has not;
 * with a message.
 */
DUET_MUST_CHECK int duet__calibrating_read(struct duet__calibrating *c, struct duet__request *runs,
                                           struct duet_message *message);

/* ------------------------------------------------------------------------------------------- */
/* machine.c                                                                                     */

/* Looks at the machine that c->request configures: fills info, pace, cpus, gpus, known. info is to
 * be freed by duet__info_fini in any case. Errors of duet_open. */
DUET_MUST_CHECK int duet__machine_look(struct duet__calibrating *c, struct duet_message *message);

/* Returns the system's name of its cores; NULL: it has none. */
const char *duet__processor(const struct duet__calibrating *c);

/* Size of the last cache before memory, as the first core sees it; 0: not known. */
uint64_t duet__cache_find(void);

/* Describes the machine with all measured figures, kernel times included. duet__platform_fini frees
 * it. */
void duet__describe_machine(const struct duet__calibrating *c, struct duet__platform *platform);

/* ------------------------------------------------------------------------------------------- */
/* The quality of a calibration in a few figures                                                 */

/* Errors of the model on executions that it has not seen; relative. */
struct duet__confidence {
    size_t points;                     /* number of combinations of kernel, size, architecture and
                                          workload */
    double half;                       /* half of them have a smaller error of the sum */
    double most;                       /* nine of ten have a smaller error of the sum */
    const struct duet__quality *worst; /* the point with the largest error; NULL: there is none */
    double worst_error;                /* error of worst, signed; NaN: there is none */
    uint64_t samples, rejected;        /* executions */
    double all_s, rejected_s, fresh_s; /* sums over all points' struct duet__quality */
    uint64_t fewest_runs;              /* fewest that a setup has */
    uint64_t fewest_samples;           /* fewest that a point has */
};

void duet__confidence(const struct duet__calibrating *c, struct duet__confidence *out);

#endif
