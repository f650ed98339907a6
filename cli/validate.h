/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `duet validate`: what its files share. Cases are made from specs (cross products), predicted by
 * simulations, measured by runs, and reported.
 */
#ifndef DUET_CLI_VALIDATE_H
#define DUET_CLI_VALIDATE_H

#include <stdbool.h>
#include <stddef.h>

#include <glib.h>

#include "cli/job.h"
#include "platforms/platform.h"
#include "runs/monitor.h"
#include "runs/run.h"
#include "validate/account.h"

/*
 * A cross product of cases. Texts as on the command line, whose numbers were checked; a list
 * without elements stands for what is taken if nothing is said.
 */
struct duet__spec {
    char *workload, *precision; /* precision NULL: the default */
    char **n, **tile, **policies, **cpus, **gpus;
    char **params; /* "NAME=VALUE" */
    bool set_arch;
};

/* Runs of one side of a case. Zero-initialise; duet__side_fini. */
struct duet__side {
    size_t room, count;  /* runs that there is room for, that there are */
    bool keep;           /* recordings are wanted */
    double *makespans_s; /* by run, as what follows */
    struct duet_account *accounts;
    struct duet_recording *records; /* zeroed where not kept */
    GArray *rounds;                 /* size_t: runs of each round; NULL: not made in rounds */
    bool fresh;                     /* the next run is the first of a round */
    /* made by duet__side_conclude */
    struct duet_account mean;
    bool accounted;
    const struct duet_recording *middle; /* of the run nearest to the median; NULL: none */
};

/* One case. */
struct duet__case_pair {
    struct duet_request real;      /* measures */
    struct duet_request simulated; /* predicts */
    unsigned group;                /* of neighbours that compute on the same data */
    unsigned cpus, gpus;
    char *settings; /* "variant=left, width=8" */
    struct duet__side measured, predicted;
    double spent_s; /* on its measured runs, with what is done between them */
    GArray *probes; /* double: seconds of the reference kernel, one a round */
    char *failure;  /* why it could not be made; NULL: it could */
    int error;      /* behind it */
    bool refused;   /* by the workload or the platform, before anything was made */
};

/* What was asked for, and what came out. Zero-initialise; duet__validate_fini frees it. */
struct duet__validate {
    struct duet__job job; /* command, seed, formats, page */
    char *cases;          /* file they come from; NULL: the command line */
    char *platform_name;  /* predicted from: name or file */
    struct duet_platform *platform;
    bool paced, noise, follow_speed, verbose;
    double scale;           /* of the measured times; 1 but for paced ones */
    double wake_s, event_s; /* of this machine's threads; 0: not measured */
    char *thread_costs;     /* the same, as costs of the simulations */
    size_t reps, rounds, sim_reps, warmups;
    double until;       /* relative half-width of a median's interval; 0: no more than `reps` */
    double case_time_s; /* of measured runs of a case; `reps` are made anyway */
    double probed_s, probe_at_s;           /* last time of the reference kernel, and when */
    struct duet__calibrating *calibrating; /* NULL: the platform is there */
    unsigned jobs;                         /* simulations at a time */
    double budget_s;                       /* no round begins after so long; 0: all do */
    double fail_over;                      /* relative error; 0: no check */
    GPtrArray *specs;                      /* struct duet__spec */
    struct duet__case_pair *pairs;
    size_t pair_count;
    int number; /* of the signal by which it was given up; 0: none */
};

/* As duet__simulation_parse; the pairs are made. */
int duet__validate_parse(struct duet__validate *validate, int argc, char **argv);

void duet__validate_fini(struct duet__validate *validate);

/* ------------------------------------------------------------------------------------------- */
/* Specs                                                                                        */

/* The specs that the options describe, one for each workload in argv[1] and after. */
DUET_MUST_CHECK int duet__specs_from_texts(GPtrArray *specs, const struct duet__texts *texts,
                                           int argc, char *const *argv,
                                           struct duet_message *message);

/*
 * Those of a file, docs/validate.md. DUET_EIO, DUET_EPARSE, DUET_EINVAL, with a message that names
 * file and place.
 */
DUET_MUST_CHECK int duet__specs_from_file(GPtrArray *specs, const char *path,
                                          struct duet_message *message);

/* Checks a spec that was read, and replaces "all" policies by their names. */
DUET_MUST_CHECK int duet__spec_check(struct duet__spec *spec, struct duet_message *message);

void duet__spec_free(void *spec);

/* ------------------------------------------------------------------------------------------- */
/* Cases                                                                                        */

/*
 * Makes the pairs of all specs. A case that its workload or the platform refuses is one with a
 * failure, if there are others. Errors as of reading a job.
 */
DUET_MUST_CHECK int duet__pairs_make(struct duet__validate *validate,
                                     const struct duet__texts *texts, struct duet_message *message);

void duet__pair_fini(struct duet__case_pair *pair);

/* Notes that it could not be made, while `doing` ("measured"); the first note stays. */
void duet__pair_fail(struct duet__case_pair *pair, const char *doing, int error,
                     const struct duet_message *message);

/* ------------------------------------------------------------------------------------------- */
/* Sides                                                                                        */

void duet__side_fini(struct duet__side *side);

/*
 * Takes the next run, recorded with dates that count from the first submission: accounts it, and
 * keeps its records if that is wanted and it is among the first. The run is freed. Errors of
 * duet_account_make.
 */
DUET_MUST_CHECK int duet__side_put(struct duet__side *side, struct duet_run *run,
                                   struct duet_message *message);

/* The runs that are put from now on, in the order of their slots, are of another round. */
void duet__side_begin(struct duet__side *side);

/* Half of the 95 % interval of the median, by the median; INFINITY of less than two runs. */
double duet__side_width(const struct duet__side *side);

/*
 * About what it would be if rounds did not differ, which is what more runs in a round make
 * narrower: from the distances of runs from the medians of their rounds, as of normally distributed
 * ones. INFINITY of less than two runs a round on average, which say nothing of it.
 */
double duet__side_width_within(const struct duet__side *side);

/*
 * After the last run (of at least one): multiplies all times by `factor`, makes the mean account,
 * and keeps one recording, that of the run nearest to the median among those that were kept.
 */
DUET_MUST_CHECK int duet__side_conclude(struct duet__side *side, double factor,
                                        struct duet_message *message);

/* ------------------------------------------------------------------------------------------- */
/* Threads of this machine: validate_threads.c                                                  */

/*
 * Measures what waking a thread and noticing a device's end take here, and gives that to the
 * simulations of all cases. For paced emulations. Errors of duet__costs_measure; 0 also where a
 * signal came, which is validate->number then.
 */
DUET_MUST_CHECK int duet__threads_measure(struct duet__validate *validate,
                                          struct duet_message *message);

/* ------------------------------------------------------------------------------------------- */
/* Calibration in between: validate_calibrate.c                                                 */

/*
 * Looks at the machine and makes a platform of it that has no times yet, with which cases can be
 * made. Errors of duet_open and of the files.
 */
DUET_MUST_CHECK int duet__calibrating_begin(struct duet__validate *validate,
                                            const struct duet__texts *texts,
                                            struct duet_message *message);

/* Plans what is to be measured: of all pairs that can be. DUET_EINVAL. */
DUET_MUST_CHECK int duet__calibrating_plan(struct duet__validate *validate,
                                           struct duet_message *message);

/*
 * Measures before round `round`, from 0 on, or after the last one, when the runs of the pairs have
 * taken `runs_s` so far. Exit status: DUET__DONE also if a signal came.
 */
int duet__calibrating_slice(struct duet__validate *validate, size_t round, double runs_s,
                            struct duet_monitor *monitor);

/*
 * Fits, writes and loads the platform, from which all pairs are to be predicted then; signals are
 * blocked until duet__calibrating_end, after the predictions. Exit status.
 */
int duet__calibrating_finish(struct duet__validate *validate);

/* Removes files that nobody has asked for. */
void duet__calibrating_end(struct duet__calibrating *calibrating);

/* "calibrated in the same 4 minutes: 312 runs"; caller frees. */
char *duet__calibrating_text(const struct duet__validate *validate);

void duet__calibrating_free(struct duet__calibrating *calibrating); /* NULL is fine */

/* Builds the simulated machine of a pair anew, from another platform. As duet_platform_build. */
DUET_MUST_CHECK int duet__pair_rebuild(const struct duet__validate *validate,
                                       struct duet__case_pair *pair, struct duet_message *message);

/* ------------------------------------------------------------------------------------------- */
/* What is done                                                                                 */

/* The simulations of all pairs. Notes what fails, and the signal if one came. */
void duet__validate_predict(struct duet__validate *validate);

/*
 * The runs of all pairs, in rounds; with calibration before, between and after them. Likewise; data
 * that cannot be made is a failure of its pairs. Exit status: DUET__DONE also if a signal came,
 * else after a complaint about the calibration.
 */
int duet__validate_measure(struct duet__validate *validate);

/* Speed of the machine by that of its calibration, when the pair was measured; 0: not known. */
double duet__pair_speed(const struct duet__validate *validate, const struct duet__case_pair *pair);

/*
 * The report of the pairs that were predicted and measured, or failed. Exit status:
 * DUET__FAILED after a complaint, or where the check fails.
 */
int duet__validate_report(struct duet__validate *validate);

#endif
