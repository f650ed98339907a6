/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A calibration of the machine at hand: what is asked for, which runs that takes, measuring them
 * within the time there is, and what comes of it.
 */
#ifndef DUET_CALIBRATE_CALIBRATE_H
#define DUET_CALIBRATE_CALIBRATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "calibrate/copies.h"
#include "calibrate/costs.h"
#include "calibrate/load.h"
#include "calibrate/model.h"
#include "platforms/platform.h"
#include "runs/monitor.h"
#include "runs/request.h"
#include "runtime/info.h"
#include "runtime/settings.h"

enum { DUET__LEAST_ROUNDS = 3 }; /* fewer of them say little of how times spread */

/* What runs are made of. */
struct duet__subject {
    const struct duet__workload *workload;
    uint64_t tile;
    char precision;
    bool devices; /* on devices alone */
};

/* What is to be measured. Zero-initialise; duet__calibrate_request_fini, half-built or not. */
struct duet__calibrate_request {
    /* configuration and seed of all runs, without workload and problem; borrowed. Its policy may be
       NULL: then there are two, in turn */
    const struct duet__request *runs;
    GArray *subjects; /* struct duet__subject: these alone; NULL: what the following stand for */
    GPtrArray *workloads; /* const struct duet__workload * */
    GPtrArray *traces;    /* const char *, borrowed: files whose runs are all that is looked at */
    bool chosen;          /* they were named; else those that can run are measured */
    struct duet__numbers sizes, tiles; /* borrowed; empty: by default */
    const char *precisions;            /* "d", "s", "sd": a constant */
    double budget_s;
    uint64_t rounds; /* whatever time they take; 0: as many as there is time for */
    bool paced;      /* at the pace of a platform: nothing is computed */
    bool no_costs, no_copies;
    char *name; /* of the machine that is described */
};

void duet__calibrate_request_fini(struct duet__calibrate_request *request);

/* Why a problem has its size. */
enum duet__size {
    DUET__SIZE_GIVEN, /* it was asked for */
    DUET__SIZE_WARM,  /* its data is to fit into caches, if tiles allow that */
    DUET__SIZE_COLD,  /* its data is to be larger than these */
};

/* A problem on certain resources, of which runs are made in each round. */
struct duet__setup {
    const struct duet__workload *workload;
    struct duet__problem problem; /* n is 0 until duet__setup_size has chosen it */
    uint64_t warmup_n;            /* of the run before the measured ones */
    enum duet__size size;
    bool devices;  /* kernels that devices have run on these only */
    bool optional; /* nobody has asked for it: left out where the budget has no time for it */
    bool failed;   /* it is not tried again */
    int cpus, gpus;
    unsigned group; /* setups that differ only in size and resources have the same number */
    /* what has been measured; runs 0: it was left out */
    uint64_t runs, tasks;
    double run_s;  /* mean of one run, from its first submission on */
    double turn_s; /* what all of its last turn took, data included */
};

/* What could not be measured. */
struct duet__failure {
    char what[96]; /* for people */
    int error;
    struct duet_message message;
};

/* Data that is kept for further runs. */
struct duet__kept_data {
    const struct duet__workload *workload;
    struct duet__problem problem; /* with its data; NULL: none */
};

/*
 * A calibration under way, and what comes of it. Zero-initialise but for the first three, then
 * duet__calibrating_look; duet__calibrating_fini frees it, half-built or not.
 */
struct duet__calibrating {
    const struct duet__calibrate_request *request; /* borrowed */
    struct duet__monitor *monitor;  /* borrowed, started when something is measured */
    struct duet__progress bar;      /* zeroed: none */
    double start_s;                 /* later by the pauses */
    double paused_s;                /* when the last one began, since start_s */
    struct duet__failure now;       /* what is being measured, and why it failed */
    struct duet__kept_data kept[2]; /* of the last warm-up, and of the last problem beyond that */
    struct duet__info info;         /* the machine, with all its workers */
    struct duet_sharing known;      /* the shared cache as the system tells it */
    unsigned cpus, gpus;            /* workers */
    double pace;                    /* of emulated times: their scale, else 1 */
    GArray *setups;                 /* struct duet__setup */
    unsigned groups;
    guint next;                    /* setup */
    GArray *runs;                  /* struct duet__recorded_run, whose recordings are owned here */
    GArray *disturbed_rounds;      /* uint64_t, counted from 1 */
    GArray *failures;              /* struct duet__failure */
    uint64_t left_out;             /* disturbed runs that the model is not made from */
    struct duet__disturbance load; /* by others, over all of it */
    uint64_t rounds;               /* finished */
    double wall_s, runs_s;         /* all of it, and the rounds */
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

/*
 * Makes the list of setups for the machine that was looked at. DUET_EINVAL with a message where a
 * workload that was named cannot run with any of the sizes.
 */
DUET_MUST_CHECK int duet__plan_make(struct duet__calibrating *c, struct duet_message *message);

/*
 * Chooses the size of a setup's problem where it is not known yet: data of four times the shared
 * cache, less where a run would then take longer than `fair_s` by what its group has been measured
 * to do; but more than one and a half times the cache while a run takes less than thrice that.
 * In any case it is half as large again, each way, as what is to fit into caches.
 */
void duet__setup_size(const struct duet__calibrating *c, struct duet__setup *setup, double fair_s);

/* What a turn of it with one run may take, by the nearest one of its workload; 0: not known. */
double duet__setup_seconds(const struct duet__calibrating *c, const struct duet__setup *setup);

/* "alone", "busy", "gpus": which workers the setup's runs have; and in what size. Constants. */
const char *duet__setup_workers(const struct duet__setup *setup);
const char *duet__setup_size_name(const struct duet__setup *setup);

static inline struct duet__setup *duet__setup_at(const struct duet__calibrating *c, guint place)
{
    return &g_array_index(c->setups, struct duet__setup, place);
}

/* ------------------------------------------------------------------------------------------- */
/* measure.c, turn.c: look, then the plan, then all of it at once or in parts                    */

/* What there is to be measured on. Errors of duet_open. */
DUET_MUST_CHECK int duet__calibrating_look(struct duet__calibrating *c,
                                           struct duet_message *message);

/*
 * What follows is over soon where a signal came. What fails is noted (once, where several fail with
 * the same words), and the rest goes on.
 */

/* Measures everything that was asked for, and fits, if anything was measured. */
void duet__calibrating_all(struct duet__calibrating *c);

/* Begins to count time, or ceases to; the data that was kept for further runs goes. */
void duet__calibrating_go_on(struct duet__calibrating *c);
void duet__calibrating_pause(struct duet__calibrating *c);

/* The speed of the cores, the runtime's operations, bandwidth, copies. */
void duet__calibrating_once(struct duet__calibrating *c);

/*
 * Gives setup after setup its turn, from the one at which the last slice ended on, until so many
 * seconds have passed; the first time until each had its turn; or so many rounds as were asked for.
 * A round over all of them is to take `round_s`.
 */
void duet__calibrating_slice(struct duet__calibrating *c, double seconds, double round_s);

/* The model of all runs so far, but for those that others disturbed. */
void duet__calibrating_fit(struct duet__calibrating *c);

/*
 * A turn: makes some recorded runs of the setup into c->runs, after one that is not measured, until
 * `slice_s` have passed, three at most. Their data is kept for the next turns, which often need the
 * same (duet__kept_data_free). Errors of duet_open and of runs; 0 also where a signal came.
 */
DUET_MUST_CHECK int duet__setup_measure(struct duet__calibrating *c, struct duet__setup *setup,
                                        double slice_s);

/* Frees the data that turns have kept for others. */
void duet__kept_data_free(struct duet__calibrating *c);

/* ------------------------------------------------------------------------------------------- */
/* traces.c                                                                                      */

/*
 * Adds the runs that are in the traces of the request, as if they had been measured, each under the
 * name of its workload or program. `runs` are the request's, and keep what is needed of them.
 * DUET_EIO, DUET_EPARSE; DUET_EINVAL where one is of a simulation, or of architectures that this
 * machine has not; with a message.
 */
DUET_MUST_CHECK int duet__calibrating_read(struct duet__calibrating *c, struct duet__request *runs,
                                           struct duet_message *message);

/* ------------------------------------------------------------------------------------------- */
/* machine.c                                                                                     */

/*
 * What there is to be measured on, by the configuration of c->request: info, pace, cpus, gpus,
 * known. duet__info_fini, in any case. Errors of duet_open.
 */
DUET_MUST_CHECK int duet__machine_look(struct duet__calibrating *c, struct duet_message *message);

/* What the system says of its cores; NULL: nothing. */
const char *duet__processor(const struct duet__calibrating *c);

/* Size of the last cache before memory, as the first core sees it; 0: not known. */
uint64_t duet__cache_find(void);

/* Describes the machine by what was found, kernel times included. duet__platform_fini frees it. */
void duet__describe_machine(const struct duet__calibrating *c, struct duet__platform *platform);

/* ------------------------------------------------------------------------------------------- */
/* confidence.c                                                                                  */

/* How well the model predicts executions that it has not seen; relative errors. */
struct duet__confidence {
    size_t points;                     /* kernels times sizes, architectures and workloads */
    double half;                       /* half of them are predicted within this, in sum */
    double most;                       /* and nine of ten within this */
    const struct duet__quality *worst; /* NULL: there is none */
    double worst_error;                /* of it, signed; NaN: there is none */
    uint64_t samples, rejected;        /* executions */
    double all_s, rejected_s, fresh_s; /* sums of those of struct duet__quality over points */
    uint64_t fewest_runs;              /* of a setup */
    uint64_t fewest_samples;           /* of a point */
};

void duet__confidence(const struct duet__calibrating *c, struct duet__confidence *out);

#endif
