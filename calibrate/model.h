/* SPDX-License-Identifier: Apache-2.0 */
/* Fits kernel times to recorded runs on this machine: a struct duet__point for each kernel,
 * architecture, size and workload, and the size of the shared cache that explains them best. */
#ifndef DUET_CALIBRATE_MODEL_H
#define DUET_CALIBRATE_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <glib.h>

#include <duet/machine.h>

#include "base/stats.h"
#include "platforms/model/effects.h"
#include "trace/recording.h"

/* ------------------------------------------------------------------------------------------- */
/* Executions in recorded runs: their times, busy neighbours, and operands. */

/* One recorded run. Everything is borrowed. */
struct duet__recorded_run {
    struct duet__recording recording; /* has accesses, else operands are not known */
    const char *context;              /* the workload; NULL: "" */
    /* equal for runs of the same problem on as many workers under one policy; 0: like no other */
    uint64_t repeats;
    /* equal for runs of one problem on as many workers, under any policy; 0: not known */
    uint64_t problem;
    bool disturbed; /* others computed meanwhile; the caller decides whether to use it */
};

/* One executed task. */
struct duet__execution {
    double seconds;    /* length, without the runtime's overhead */
    double others;     /* mean number of the socket's other CPU workers that computed meanwhile */
    uint32_t run;      /* index of its run */
    uint32_t worker;   /* index in the run's machine */
    uint32_t workers;  /* number of CPU workers of its socket, itself included; 0: on a device */
    bool fresh;        /* first of its run to write some data, as far as operands are known */
    uint32_t operands; /* number; 0 if accesses were not recorded, and on devices */
    size_t first;      /* index of its first operand */
};

/* The executions of a run: `first` to first + count - 1, in order of their beginning. */
struct duet__executed_run {
    const struct duet__recorded_run *of; /* borrowed */
    size_t first, count;
    uint64_t registered_bytes; /* sum over all distinct handles */
    double state; /* state of the machine then, see duet__states_remove; 0: not known */
    double kept;  /* time of its kernels by their usual time, without outliers */
    double total; /* the same with outliers, by the median `kept` of equal runs; 0: not known */
};

/* Executions of one kernel on one architecture in one workload, with the same work: a point. */
struct duet__group {
    const char *kernel, *arch, *context; /* borrowed */
    double work;                         /* > 0 */
    bool host;                           /* all its executions ran on CPU workers */
    GArray *members;                     /* size_t: indices, in order of runs */
};

/* Executions and their groups. Those that failed or have no work are in no group. */
struct duet__executions {
    struct duet__execution *list;
    size_t count;
    struct duet__operand *operands;
    size_t operand_count;
    struct duet__executed_run *runs;
    size_t run_count;
    GArray *groups; /* struct duet__group, by names of context, architecture, kernel, and work */
};

static inline const struct duet__group *duet__group_at(const struct duet__executions *executions,
                                                       guint place)
{
    return &g_array_index(executions->groups, struct duet__group, place);
}

/*
 * Reads the TASK records of all runs. `overhead_s` is subtracted from every time, of which at least
 * a tenth is left. *out borrows from `runs` and is the caller's (duet__executions_fini).
 * DUET_EINVAL with a message if there is no execution; *out is then empty.
 */
DUET_MUST_CHECK int duet__executions_read(const struct duet__recorded_run *runs, size_t run_count,
                                          double overhead_s, struct duet__executions *out,
                                          struct duet_message *message);

void duet__executions_fini(struct duet__executions *executions); /* safe on a zeroed one, twice */

/* Sets missing[i], the part of operand i that is in no cache, for the first `limit` executions of
 * each run (0: all), with caches of this size. */
void duet__missing_find(const struct duet__executions *executions,
                        const struct duet_sharing *sharing, size_t limit, double *missing);

/*
 * Takes the state of the machine out of the times of host kernels. On a machine that others use, or
 * whose clock changes, a whole run may be faster or slower than equal runs
 * (duet__recorded_run.repeats): its state is that factor. It is the median over the run's
 * executions, weighted by their usual times, of measured by usual time; the usual time is the
 * median of that kernel in equal runs. States are scaled to a median of 1, and times are divided by
 * them: they become those of the median state. Fewer than three equal runs have no known state (0),
 * and keep their times. *out is set to the distribution of these factors, but of all time in
 * kernels, outliers included, by the median of runs on one worker, or on several; these medians,
 * above 1 where most runs have outliers, are out->alone and out->busy. Its drift is from the
 * medians of the fifths of the runs, in their order. Where too few runs are equal, a run's factor
 * is the time of its kernels by their median in all runs on as many workers.
 */
void duet__states_remove(struct duet__executions *all, struct duet__states *out);

/* ------------------------------------------------------------------------------------------- */
/* Fits times as a base and a part for memory; finds outliers. */

/* Data to fit. Everything is borrowed. */
struct duet__fit_data {
    size_t count;
    const double *missing; /* count, each from 0 to 1 */
    const double *seconds; /* count, each > 0 */
    const bool *used;      /* count */
    bool flat;             /* fits the base alone */
    /* prior of memory_s, for data that does not tell (seconds), and its deviation (relative to the
     * median time, > 0) */
    double prior_s, spread;
};

struct duet__fit {
    double base_s; /* > 0 if any row was used */
    double memory_s;
};

/*
 * Robust least squares on relative errors: seconds = base_s + memory_s * missing, neither negative.
 * The first fit divides each row by its measured time, which bounds the effect of outliers above;
 * later ones by the expected time, with Huber's weights (Annals of Mathematical Statistics 35(1),
 * 1964). memory_s has a normal prior around prior_s. At last both are scaled so that the sum of all
 * used times is that of the expected ones. Without used rows *out is 0.
 */
void duet__fit(const struct duet__fit_data *data, struct duet__fit *out);

/* Returns the expected time of a row. */
static inline double duet__fit_seconds(const struct duet__fit *fit, double missing)
{
    return fit->base_s + fit->memory_s * missing;
}

/* Least factor of an outlier's time: see duet__outliers. */
#define DUET__OUTLIER 1.5
/* Most time that a stall loses. */
#define DUET__STALL_S 200e-6

/* Returns the median of at most about 2000 of the values, evenly spread; 0 without any. */
double duet__rough_median(const double *values, size_t count);

/*
 * Marks outliers: rejected[i]. With r = measured / expected, its median m, and d the median of
 * |log(r / m)| over r < m, which outliers hardly change, a candidate has
 *   |log(r / m)| > 8 d and is beyond a factor DUET__OUTLIER, or r / m > 3.
 * Kept nevertheless are
 * - stalls: those above that lost at most 200 us, as long as all of them together are at most 5 %
 * of the kernel's expected time: interrupts and the like are part of every run, and a short kernel
 *   shows them as large factors;
 * - everything if more than a quarter would be rejected: such a kernel has a wide distribution, and
 *   no outliers.
 * Returns how many were rejected.
 */
size_t duet__outliers(const double *measured, const double *expected, size_t count, bool *rejected);

/* ------------------------------------------------------------------------------------------- */
/* Fits the time of one kernel to executions of one point. */

/* ------------------------------------------------------------------------------------------- */
/* The data of the fit */

/* One execution, beside its time. */
struct duet__row {
    uint32_t run;
    double others;      /* mean number of the socket's other workers that computed */
    double workers;     /* number in its socket; 0: on a device */
    double bytes;       /* sum over all operands */
    double from_memory; /* bytes of `bytes` that were missing in the socket's cache */
};

struct duet__rows {
    size_t count;
    double *seconds;
    double *missing; /* part of each row's bytes that came from memory */
    struct duet__row *list;
    double bytes; /* mean */
};

/*
 * Makes the rows of a group: all its executions, or with `limit` above 0 those among the first
 * `limit` of their run. `missing` is from duet__missing_find. The caller owns *out
 * (duet__rows_fini).
 */
void duet__rows_make(const struct duet__executions *executions, const struct duet__group *group,
                     const double *missing, size_t limit, struct duet__rows *out);

void duet__rows_fini(struct duet__rows *rows); /* safe on zeroed ones, and twice */

/* Returns the part of the socket's other workers that computed, 0 to 1. */
static inline double duet__row_busy_part(const struct duet__row *row)
{
    return row->workers > 1 ? row->others / (row->workers - 1) : 0;
}

/* True if at most a tenth of the socket's other workers computed. */
static inline bool duet__row_alone(const struct duet__row *row)
{
    return duet__row_busy_part(row) <= 0.1;
}

/* True if more than half of the socket's other workers computed. */
static inline bool duet__row_busy(const struct duet__row *row)
{
    return duet__row_busy_part(row) > 0.5;
}

/* True if most of its data was in memory. */
static inline bool duet__row_cold(const struct duet__row *row)
{
    return row->from_memory > row->bytes / 2;
}

/* ------------------------------------------------------------------------------------------- */
/* The fit                                                                                       */

struct duet__kernel_fit {
    struct duet__fit fit;
    double busy_ratio, bandwidth_Bps;
};

/* Expected time of a row, with its neighbours: that of duet__rates if the others are executions
 * like this one. */
double duet__kernel_seconds(const struct duet__kernel_fit *kernel, const struct duet__rows *rows,
                            size_t row);

/*
 * Fits the rows with used[i] (NULL: all). Base and memory come from the rows that were alone; from
 * all if fewer than 5 were alone, but all are 10 or more, or none was. With fewer than 10 rows the
 * base is their mean, and memory costs nothing. busy_ratio, in [0.8, 3], makes the expected times
 * of the busy rows add up to the measured ones; it is 1 with fewer than 5 busy rows, if even 0.8 is
 * too much (neighbours then are not the cause), or if the base comes from them. With `rejected` not
 * NULL, and all rows used, outliers are found in three rounds, marked there and left out.
 */
void duet__kernel_fit(const struct duet__rows *rows, const bool *used, double bandwidth_Bps,
                      struct duet__kernel_fit *out, bool *rejected);

/* A fit of the same form that replaces duet__kernel_fit in comparisons: bench/corpus/. */
typedef void duet__kernel_fit_fn(const struct duet__rows *rows, const bool *used,
                                 double bandwidth_Bps, struct duet__kernel_fit *out,
                                 bool *rejected);

/* ------------------------------------------------------------------------------------------- */
/* The model of a machine                                                                       */

struct duet__model_options {
    /* known resources of the machine (0: not known). The shared cache is a first guess: the fit
     * finds the part that a program gets */
    struct duet_sharing sharing;
    /* the runtime's time for a task on its worker within the measured time of a kernel (see
     * real/worker.c: a kernel begins when the worker asks for it); is subtracted. 0: nothing */
    double task_overhead_s;
    unsigned cores; /* most CPU workers of the machine; 1: kernels never have neighbours */
    unsigned folds; /* folds of cross-validation, at least 2; 0: 5; 1: none */
    /* switches to leave parts of the model out (bench/corpus/) */
    duet__kernel_fit_fn *fit; /* replaces duet__kernel_fit; NULL: that */
    bool keep_states;         /* leaves the machine's states in times */
    bool keep_size;           /* keeps the given size of the shared cache */
};

/* Conditions of executions. */
enum {
    DUET__CONDITION_COLD = 1, /* most of its data came from memory (else: from caches) */
    DUET__CONDITION_BUSY = 2, /* most other workers were busy */
    DUET__CONDITIONS = 4,     /* these bits, combined */
};

/* Errors of the model on executions that it has not seen, relative to the measured times. */
struct duet__model_error {
    double sum;       /* error of all executions' sum, signed: (predicted - measured) /
                         measured */
    double execution; /* median of absolute errors of single executions */
};

/* One point, and its quality. */
struct duet__quality {
    char kernel[DUET_NAME_MAX], arch[DUET_NAME_MAX], context[DUET_NAME_MAX];
    struct duet__point point;
    /* times by conditions (their bits), count 0: none was measured; for kernels of the host */
    struct duet__summary conditions[DUET__CONDITIONS];
    struct duet__model_error error; /* cross-validated; NaN: it was not */
    double all_s;                   /* time of all executions together */
    double rejected_s;              /* time of all outliers */
    /* time that first writes of data lose as outliers, beyond what as many other executions lose;
     * 0 if all are first writes. Undisturbed runs count */
    double fresh_s;
};

/* Owned by the caller: duet__model_fini. */
struct duet__model {
    struct duet__calibration calibration; /* curves with contexts */
    struct duet_sharing sharing;   /* from the options, with the size found; bandwidth at least that
                                      of kernels */
    struct duet__quality *quality; /* one a point */
    size_t quality_count;
};

/*
 * Fits. Host kernels (of workers of node 0) get everything a struct duet__point has; those of
 * devices mean, median, deviation, noise, samples. Kernels that failed are left out. Outliers are
 * rejected (by the rule in docs/calibrate.md) and counted. Runs with one busy worker give the
 * condition "others idle", runs with several the busy ones. Times of the host are those of the
 * machine's median state (duet__states_remove). DUET_EINVAL where there is no execution at all;
 * *out is then empty.
 */
DUET_MUST_CHECK int duet__model_fit(const struct duet__recorded_run *runs, size_t run_count,
                                    const struct duet__model_options *options,
                                    struct duet__model *out, struct duet_message *message);

void duet__model_fini(struct duet__model *model); /* safe on a zeroed one, and twice */

#endif
