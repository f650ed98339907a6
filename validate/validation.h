/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Comparisons of cases that were both predicted and measured (or of any two sets of runs of the
 * same problems): verdicts, and the texts made from them.
 */
#ifndef DUET_VALIDATION_H
#define DUET_VALIDATION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <duet/machine.h>

#include "base/stats.h"
#include "runs/monitor.h"
#include "runs/request.h"
#include "trace/account.h"
#include "workloads/files/graph.h"

/* One side of a case. It borrows everything. */
struct duet__side {
    const double *makespans_s; /* seconds, of its runs */
    size_t count;              /* 0 only where the case has failed */
    /*
     * runs of each round in which they were made, those of a round one after another: they have the
     * state of the machine in common (duet__summarise_clusters); round_count 0: not known, or
     * nothing in common
     */
    const size_t *rounds;
    size_t round_count;
    const struct duet__account *account;     /* the mean of its runs; NULL: not known */
    const struct duet__recording *recording; /* the run nearest to the median; NULL: none */
    const struct duet__run_plan *plan;       /* the plan of that run; NULL: it had none */
    struct duet__summary summary;            /* set by duet__validation_judge */
};

/* One problem under one policy on certain resources. */
struct duet__case {
    const char *workload, *settings, *platform, *policy;
    const char *priorities; /* priorities of its tasks: "workload", "none" or "bottom-level" */
    uint64_t n, tile;       /* 0: not known */
    char precision;
    unsigned cpus, gpus;
    bool set_arch, hold;
    struct duet__side predicted, measured;
    double low_s, high_s; /* interval in which the measured median is expected in 90 of 100 cases;
                             0: none was predicted */
    /*
     * Speed of the machine when this was measured, relative to its calibration: time of a reference
     * kernel then by time of it now. 0: not known.
     */
    double speed;
    bool disturbed;      /* other processes used the cores in all rounds: nothing is concluded */
    const char *failure; /* why the case could not be predicted or measured; NULL: it could */
    /* duet__validation_judge sets the fields below; NaN: not known */
    double error;                         /* predicted median / measured median - 1 */
    double error_low, error_high;         /* 95 % interval of `error`: duet__ratio_interval */
    double noise;                         /* half-width of the measured median's interval by the
                                             median; NaN: one run */
    struct duet__explanation explanation; /* count 0: not known */
};

/* Cases, and facts that they share. */
struct duet__validation {
    const char *command;      /* the command line */
    const char *title;        /* "cholesky and lu on vm" */
    const char *first_name;   /* name of the side `predicted`: "predicted", or "A: run.json" */
    const char *second_name;  /* name of the side `measured`: "measured" */
    const char *machine;      /* the machine of the measured runs, one line */
    const char *calibration;  /* the calibration that was predicted from, one line; "" if nothing is
                                 known */
    const char *date;         /* date of the runs: "2026-11-21 20:00 UTC" */
    struct duet__case *cases; /* borrowed */
    size_t case_count;
    double fail_over; /* relative error from which the check fails; 0: no check */
    /* rounds, from 1, in which other processes used the cores, and the measured runs that were left
       out for that; if all rounds of a case were disturbed, its runs are all there */
    const size_t *disturbed_rounds;
    size_t disturbed_count, left_out;
    /* duet__validation_judge sets the fields below */
    char *labels[2]; /* the part of each name that a heading has room for: "A" of "A: run.json";
                        owned */
    size_t known;    /* number of cases with an error */
    double median, p95, worst; /* absolute errors of the cases; NaN if there are none */
    double bias;               /* median of the signed errors */
    size_t within_noise;       /* number of errors that are not larger than the case's noise, which
                                  measuring again would give */
    double noise;              /* median of the cases' noise; NaN: no noise is known */
    size_t unsettled;          /* cases of which nothing is concluded, as others used the cores */
    size_t intervals, inside;  /* cases with an interval, and those measured inside theirs */
    char *verdict; /* one sentence: do both sides agree within noise, how large is it, and what
                      would make it smaller; NULL: noise not known; owned */
    /*
     * groups of cases that differ in the policy alone, and of these, those whose fastest policy is
     * predicted to be the fastest; pairs of policies in them, and pairs in the predicted order; a
     * pair whose measured medians differ by no more than both noises together is no pair, and where
     * noise hides which policy is fastest, each of those that may be is right
     */
    size_t groups, best_right, pairs, pairs_right;
    size_t failed;  /* number of cases over fail_over, if that is not 0 */
    size_t refused; /* number of cases with a failure: they could not be predicted or measured */
};

/* Judges the cases. Results from values that are not all finite are not known. */
void duet__validation_judge(struct duet__validation *validation);

/* Frees explanations and labels; safe before the judging, and twice. */
void duet__validation_fini(struct duet__validation *validation);

/* True if the problem and the machine are the same, but for the platform's name and the policy. */
bool duet__case_alike(const struct duet__case *a, const struct duet__case *b);

/* Returns "lu variant=left, n 4096, tile 256, heft, 4 CPUs, 1 GPU"; never NULL. Free with
   g_free. */
char *duet__case_name(const struct duet__case *the);

/* The writers of judged cases leave write errors to the one who closes the stream. */

/* Writes tables and the explanation for a terminal. `verbose`: the explanation of every case, else
   of the worst ones. */
void duet__validation_write_text(FILE *stream, const struct duet__validation *validation,
                                 bool verbose);
/* Writes one JSON object: docs/formats.md. */
void duet__validation_write_json(FILE *stream, const struct duet__validation *validation);
/* Writes CSV: a header and one line a case. */
void duet__validation_write_csv(FILE *stream, const struct duet__validation *validation);

/* ------------------------------------------------------------------------------------------- */
/* Gains of a run by changes of the machine, the policy or the tiles: found by simulating them. */

/* One change. */
struct duet__change {
    char *what;        /* "dgemm on c2050 twice as fast", owned */
    bool buys;         /* the change needs other hardware, or faster kernels; else an option brings
                          it */
    bool bound;        /* the change is no possible one, but a bound: no policy is faster */
    double makespan_s; /* NaN: the change could not be simulated */
    char *why;         /* why it could not be simulated, owned; else NULL */
};

struct duet__what_if {
    double reference_s; /* simulated makespan of the same graph without a change */
    const char *guess;  /* the guess in request->guesses that reference_s rests on; NULL: none */
    GArray *changes;    /* struct duet__change, the shortest makespan first */
};

/*
 * Simulates changes of the run of a trace, all at once, as many processes at a time as
 * request->jobs says. `request`: simulates the run's graph, checked, on a platform by its name;
 * `path`: that of the run. A change that rests on one of request->guesses, as all do if the run
 * without a change does, has that as its `why`. *number: the signal that ended it, or 0. The caller
 * owns *out (duet__what_if_fini). Returns errors of duet__platform_load, duet__request_build and
 * duet__simulate, and of the simulation without a change.
 */
DUET_MUST_CHECK int duet__what_if_make(const struct duet__request *request,
                                       const struct duet__trace *trace,
                                       const struct duet__path *path,
                                       struct duet__progress *progress, struct duet__what_if *out,
                                       int *number, struct duet_message *message);

/*
 * Sets a request to the workload of a trace with its parameters, its size and this tile, in place
 * of a graph. Returns DUET_ENOTFOUND if the workload is none of duet's own or has no tiles, or
 * errors of its check.
 */
DUET_MUST_CHECK int duet__what_if_workload(struct duet__request *request,
                                           const struct duet__trace *trace, uint64_t tile,
                                           struct duet_message *message);

/* Returns the bytes that the memory of each GPU holds; 0: not known, or they differ, or there is
   none. */
uint64_t duet__what_if_memory(const struct duet_machine *machine);

void duet__what_if_fini(struct duet__what_if *what_if); /* safe on a zeroed one, and twice */

#endif
