/* SPDX-License-Identifier: Apache-2.0 */
/* `duet calibrate`: what its files share. */
#ifndef DUET_CLI_CALIBRATE_H
#define DUET_CLI_CALIBRATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "calibrate/copies.h"
#include "calibrate/costs.h"
#include "calibrate/load.h"
#include "calibrate/model.h"
#include "cli/job.h"
#include "world/info.h"
#include "platforms/platform.h"
#include "runs/monitor.h"

enum { DUET__ROUNDS = 3 }; /* less of them say little of how times spread */

/* Of which runs are to be made. */
struct duet__subject {
    const struct duet_workload *workload;
    uint64_t tile;
    char precision;
};

/* What was asked for. Zero-initialise; duet__wish_fini frees it, half-built or not. */
struct duet__wish {
    struct duet__job job;   /* its configuration, policy and seed; no workload and problem */
    GArray *workloads;      /* const struct duet_workload * */
    bool chosen;            /* they were named; else those that are usual, where they can run */
    GArray *sizes, *tiles;  /* uint64_t; empty: by default */
    const char *precisions; /* "d", "s", "sd": a constant */
    GArray *subjects;       /* struct duet__subject: these alone; NULL: what the above stand for */
    double budget_s;
    uint64_t rounds; /* whatever time they take; 0: as many as there is time for */
    bool paced;      /* at the pace of a platform: nothing is computed */
    bool no_costs, no_copies, compare_models;
    char *name; /* of the machine that is described */
    char *out;  /* file of its description */
    enum duet_write how;
};

/* Why a problem has its size. */
enum duet__size {
    DUET__SIZE_GIVEN, /* it was asked for */
    DUET__SIZE_WARM,  /* its data is to fit into caches, if tiles allow that */
    DUET__SIZE_COLD,  /* its data is to be larger than these */
};

/* One kind of runs: of a problem on certain resources. */
struct duet__item {
    const struct duet_workload *workload;
    struct duet_problem problem; /* n is 0 until duet__item_size has chosen it */
    uint64_t warmup_n;           /* of the run before the measured ones */
    enum duet__size size;
    bool devices;  /* kernels that devices have run on these only */
    bool optional; /* nobody has asked for it: left out where the budget has no time for it */
    int cpus, gpus;
    unsigned group; /* items that differ only in size and resources have the same number */
    /* what has been measured; runs 0: it was left out */
    uint64_t runs, tasks;
    double run_s;   /* mean of one run, from its first submission on */
    double visit_s; /* what all of it took the last time, data included */
};

/* Data that further visits may need. */
struct duet__held {
    const struct duet_workload *workload;
    struct duet_problem problem;
    void *data; /* NULL: none */
};

/* What was found. Zero-initialise; duet__found_fini frees it, half-built or not. */
struct duet__found {
    struct duet__info info;    /* the machine, with all its workers */
    struct duet_sharing known; /* sizes of caches as the system tells them */
    unsigned cpus, gpus;       /* workers */
    double pace;               /* of emulated times: their scale, else 1 */
    GArray *items;             /* struct duet__item */
    unsigned groups;
    struct duet__held held[2];     /* of the last warm-up, and of the last problem beyond that */
    GPtrArray *taken;              /* struct duet__observation */
    uint64_t rounds;               /* finished */
    double wall_s, runs_s;         /* all of it, and the rounds */
    struct duet__disturbance load; /* by others, over all of it */
    GArray *disturbed;             /* bool, by taken: others computed meanwhile */
    GArray *disturbed_rounds;      /* uint64_t, counted from 1 */
    uint64_t left_out;             /* disturbed runs that the model is not made from */
    double probe_s;
    struct duet__measured costs[DUET__COSTS];
    bool has_costs, has_copies;
    struct duet__bandwidth bandwidth; /* samples 0: not measured */
    struct duet__copies copies;
    struct duet__model model;
    int number; /* of the signal by which it was given up; 0: none */
};

static inline const struct duet_workload *duet__wish_workload(const struct duet__wish *wish,
                                                              guint index)
{
    return g_array_index(wish->workloads, const struct duet_workload *, index);
}

/* As duet__simulation_parse. */
int duet__wish_parse(struct duet__wish *wish, int argc, char **argv);
void duet__wish_fini(struct duet__wish *wish);

/* What machine and file are called: `name`, or after wish->out, or after the host (each NULL: not
 * given); completes wish->out. DUET_EINVAL, as for a file that does not end in .json. */
DUET_MUST_CHECK int duet__wish_name(struct duet__wish *wish, const char *name,
                                    struct duet_message *message);

/* ------------------------------------------------------------------------------------------- */
/* calibrate_plan.c                                                                              */

/*
 * Makes the list of items: found->info, known, cpus and gpus are there. DUET_EINVAL with a message
 * where a workload that was named cannot run with any of the sizes.
 */
DUET_MUST_CHECK int duet__plan_make(const struct duet__wish *wish, struct duet__found *found,
                                    struct duet_message *message);

/*
 * Chooses the size of an item's problem where it is not known yet: data of four times the shared
 * cache, less where a run would then take longer than `fair_s` by what its group has been measured
 * to do; but more than one and a half times the cache while a run takes less than thrice that.
 * In any case it is half as large again, each way, as what is to fit into caches.
 */
void duet__item_size(struct duet__found *found, struct duet__item *item, double fair_s);

/* What a visit of it with one run may take, by the nearest one of its workload; 0: not known. */
double duet__item_seconds(const struct duet__found *found, const struct duet__item *item);

/* "alone", "busy", "gpus": which workers the item's runs have; and in what size. Constants. */
const char *duet__item_workers(const struct duet__item *item);
const char *duet__item_size_name(const struct duet__item *item);

/* ------------------------------------------------------------------------------------------- */
/* calibrate_measure.c, calibrate_visit.c                                                        */

/*
 * Measures everything that was asked for into a zeroed found. Exit status: DUET__DONE also if a
 * signal came, else after a complaint.
 */
int duet__measure(const struct duet__wish *wish, struct duet__found *found);

/*
 * The same in parts, for those who measure something else in between: look, then the plan, then
 * what is measured once, slices of runs, and the fit.
 */

/* Measuring under way. Zeroed but for the first three, then duet__measuring_go_on. */
struct duet__measuring {
    const struct duet__wish *wish;
    struct duet__found *found;
    struct duet_monitor *monitor; /* started */
    struct duet_progress bar;     /* zeroed: none */
    double start_s;               /* later by the pauses */
    double paused_s;              /* when the last one began, since start_s */
    guint next;                   /* item */
    char what[96];                /* what is being measured, for people */
    struct duet_message message;  /* of what failed */
};

/* What there is to be measured on, into a zeroed found. Errors of duet_open. */
DUET_MUST_CHECK int duet__measure_look(const struct duet__wish *wish, struct duet__found *found,
                                       struct duet_message *message);

/* Begins to count time, or ceases to; the data that was kept for further visits goes. */
void duet__measuring_go_on(struct duet__measuring *measuring);
void duet__measuring_pause(struct duet__measuring *measuring);

/*
 * The speed of the cores, the runtime's operations, bandwidth, copies. This and those below: 0 also
 * where a signal came, errors with measuring->message and ->what.
 */
DUET_MUST_CHECK int duet__measure_once(struct duet__measuring *measuring);

/*
 * Visits item after item, from the one at which the last slice ended on, until so many seconds have
 * passed; the first time until each had its turn. A round over all of them is to take `round_s`.
 */
DUET_MUST_CHECK int duet__measure_slice(struct duet__measuring *measuring, double seconds,
                                        double round_s);

/* The model of all runs so far. */
DUET_MUST_CHECK int duet__measure_fit(struct duet__measuring *measuring);

/* What a visit of an item needs. */
struct duet__visit {
    const struct duet__wish *wish;
    struct duet__found *found;
    struct duet__item *item;
    struct duet_monitor *monitor;
    double slice_s; /* further runs are made until so much has passed, three at most */
};

/*
 * Makes some recorded runs of the item into found->taken, after one that is not measured. Their
 * data is kept for the next visits, which often need the same (duet__held_free). 0 also
 * where a signal came meanwhile. Errors of duet_open and of runs, with a message.
 */
DUET_MUST_CHECK int duet__visit_make(const struct duet__visit *visit, struct duet_message *message);

/* Frees the data that visits have kept for others. */
void duet__held_free(struct duet__found *found);

void duet__found_fini(struct duet__found *found);

/* ------------------------------------------------------------------------------------------- */
/* calibrate_machine.c                                                                           */

/* Sizes of the caches that the first core has for itself and that it shares; 0: not known. */
void duet__caches_find(struct duet_sharing *sharing);

/* Describes the machine by what was found, kernel times included. duet_platform_fini frees it. */
void duet__describe_machine(const struct duet__wish *wish, const struct duet__found *found,
                            struct duet_platform *platform);

/* ------------------------------------------------------------------------------------------- */
/* calibrate_summary.c, calibrate_text.c, calibrate_json.c                                       */

/* How well the model predicts executions that it has not seen; relative errors. */
struct duet__confidence {
    size_t points;                     /* kernels times sizes, architectures and workloads */
    double half;                       /* half of them are predicted within this, in sum */
    double most;                       /* and nine of ten within this */
    const struct duet__quality *worst; /* NULL: there is none */
    uint64_t samples, rejected;        /* executions */
    uint64_t fewest_runs;              /* of an item */
    uint64_t fewest_samples;           /* of a point */
};

void duet__confidence(const struct duet__found *found, struct duet__confidence *out);

/* Prints the report for people, and for programs (docs/formats.md). */
void duet__calibrate_put_text(const struct duet__wish *wish, const struct duet__found *found,
                              const struct duet_platform *platform, FILE *stream);
void duet__calibrate_put_json(const struct duet__wish *wish, const struct duet__found *found,
                              const struct duet_platform *platform, FILE *stream);

#endif
