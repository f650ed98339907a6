/* SPDX-License-Identifier: Apache-2.0 */
/* Fits kernel times to recorded runs on this machine: a struct duet__point for each kernel,
 * architecture, size and workload, and the size of the shared cache that explains them best. */
#ifndef DUET_CALIBRATE_MODEL_H
#define DUET_CALIBRATE_MODEL_H

#include "calibrate/kernel_fit.h"
#include "base/stats.h"

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
