/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From recorded runs on this machine to what its kernels take: for each kernel, architecture, size
 * and workload a struct duet_point, and the sizes of caches that explain the times best.
 */
#ifndef DUET_CALIBRATE_MODEL_H
#define DUET_CALIBRATE_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <duet/calibration.h>
#include <duet/error.h>
#include <duet/machine.h>
#include <duet/trace.h>

#include "report/recording.h"

/* One recorded run. Everything is borrowed. */
struct duet__observation {
    struct duet_recording recording;
    const struct duet_trace_access *accesses; /* as duet_trace_accesses gives them */
    size_t access_count;
    const char *context; /* the workload */
    /* the same for runs that did the same: the same problem, on as many workers, under one policy;
       0: like no other */
    uint64_t item;
};

struct duet__model_options {
    /* what the machine is known to have: sizes of caches (0: not known). The shared cache is a
       first guess: what a program gets of it is found out */
    struct duet_sharing sharing;
    /* what the runtime spends on a task on its worker, within the measured time of a kernel (see
       real/worker.c: a kernel begins when the worker asks for it); is subtracted. 0: nothing */
    double task_overhead_s;
    unsigned folds; /* of the cross-validation, at least 2; 0: 5 */
};

/* How good the model of one point is. */
struct duet__quality {
    char kernel[DUET_NAME_MAX], arch[DUET_NAME_MAX], context[DUET_NAME_MAX];
    double work, size;
    uint64_t samples, rejected;
    double mean_s, median_s, deviation_s;
    /*
     * Cross-validated, both relative: of the sum over all executions that were left out, signed
     * (predicted - measured) / measured; and the median over single executions, absolute.
     */
    double sum_error, execution_error;
    /* the same with the mean alone as model: what caches and neighbours are worth */
    double mean_execution_error;
};

/* Owned by the caller: duet__model_fini. */
struct duet__model {
    struct duet_calibration calibration; /* curves with contexts */
    struct duet_sharing sharing;   /* of the options, the sizes as found; the bandwidth at least
                                      what kernels got */
    struct duet__quality *quality; /* one a point */
    size_t quality_count;
};

/*
 * Fits. Host kernels (of workers of node 0) get everything a struct duet_point has; those of
 * devices mean, median, deviation, quantiles, samples. Kernels that failed are left out. Outliers
 * are rejected (the rule stands in docs/calibrate.md) and counted. Runs with one busy worker give
 * the condition "others idle", runs with several the busy ones. Times of the host are those of the
 * machine's median state (states.h), and how far states are from that is run_deviation.
 * Errors: DUET_EINVAL (no execution at all), DUET_ENOMEM; *out is then empty.
 */
DUET_MUST_CHECK int duet__model_fit(const struct duet__observation *runs, size_t run_count,
                                    const struct duet__model_options *options,
                                    struct duet__model *out, struct duet_message *message);

void duet__model_fini(struct duet__model *model); /* safe on a zeroed one, and twice */

#endif
