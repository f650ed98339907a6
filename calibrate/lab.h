/* SPDX-License-Identifier: Apache-2.0 */
/* What measurements through the public interface share: a runtime, a clock, a budget, samples. */
#ifndef DUET_CALIBRATE_LAB_H
#define DUET_CALIBRATE_LAB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <duet/duet.h>
#include <duet/trace.h>

#include "calibrate/costs.h"
#include "world/clock.h"

/* How long measurements may take. */
struct duet__budget {
    double end_s; /* on duet__clock_s */
    bool (*stop)(void *context);
    void *context;
};

/*
 * An open runtime with the kernels that measurements use. The first error stays, with its message:
 * what is asked of the lab from then on does nothing, but that waiting waits and closing closes.
 */
struct duet__lab {
    struct duet_runtime *runtime;
    const struct duet_machine *machine; /* the runtime's */
    unsigned cpus;                      /* workers of the host's memory, the first ones */
    struct duet_codelet *empty;         /* does nothing, everywhere */
    struct duet_codelet *fill;          /* on emulated devices fills its data, else does nothing */
    const struct duet__budget *budget;  /* borrowed */
    struct duet_message *message;       /* borrowed */
    int error;
};

/* Values measured one after the other. */
struct duet__values {
    double *values;
    size_t count, capacity;
};

/* The budget of `seconds` from now. */
struct duet__budget duet__lab_budget(double seconds, bool (*stop)(void *context), void *context);

/* DUET_ECANCELED with a message if the user wants no more, else 0. */
DUET_MUST_CHECK int duet__budget_check(const struct duet__budget *budget,
                                       struct duet_message *message);

/* Of what is left of the budget the part `share`, as the date on which it ends. */
double duet__budget_share(const struct duet__budget *budget, double share);

/* Without an error so far, and the user wants more: otherwise that is the error. */
bool duet__lab_goes_on(struct duet__lab *lab);

/*
 * Configurations for measurements, from the user's: quiet, without traces, with this policy.
 * The host alone: no device, no emulation (at least one CPU worker, at most `cpus` if that is not
 * 0); or with devices (`cpus` CPU workers).
 */
struct duet_config duet__lab_host(const struct duet_config *config, const char *policy, int cpus);
struct duet_config duet__lab_devices(const struct duet_config *config, int cpus);

/* true if kernels of this configuration compute nothing, in a pace that a platform gives. */
bool duet__lab_paced(const struct duet_config *config);

/*
 * Opens. False: lab->error is one of duet_open, DUET_ENOMEM or DUET_ECANCELED, with its message.
 * Either way it is to be closed. Closing returns lab->error, or if that is 0 what duet_close says.
 */
DUET_MUST_CHECK bool duet__lab_open(struct duet__lab *lab, const struct duet_config *config,
                                    const struct duet__budget *budget,
                                    struct duet_message *message);
DUET_MUST_CHECK int duet__lab_close(struct duet__lab *lab);

/* What the runtime says of an error, if it is the first one, is the lab's; 0 is none. */
void duet__lab_note(struct duet__lab *lab, int error);

/* One more kernel for all architectures that implements `run` on CPUs. */
struct duet_codelet *duet__lab_kernel(struct duet__lab *lab, const char *name, duet_kernel_fn run);

/* Data of `bytes` bytes; NULL after an error. It is to be forgotten before its memory goes. */
struct duet_handle *duet__lab_vector(struct duet__lab *lab, void *data, size_t bytes);
void duet__lab_forget(struct duet__lab *lab, struct duet_handle *handle); /* NULL is fine */

/* Submits, on this worker if the policy is "pinned"; kernels find `context` as their argument. */
void duet__lab_submit(struct duet__lab *lab, const struct duet_codelet *codelet, unsigned worker,
                      const struct duet_access *accesses, size_t count);
void duet__lab_submit_with(struct duet__lab *lab, const struct duet_codelet *codelet,
                           unsigned worker, const struct duet_access *accesses, size_t count,
                           void *context);
void duet__lab_wait(struct duet__lab *lab);
/* Waits; then the records since the last reset: *events is the caller's (free). How many. */
size_t duet__lab_events(struct duet__lab *lab, struct duet_event **events);

/* The hardware thread that the calling thread runs on, or -1. */
int duet__lab_processor(void);
/*
 * Keeps the calling thread off a hardware thread until duet__lab_back, which frees what this
 * returns: NULL, with nothing changed, where it may run nowhere else. NULL is fine there.
 */
void *duet__lab_aside(int processor);
void duet__lab_back(void *before);

void duet__values_add(struct duet__values *samples, double value);
/* Summarises into *out (its names stay), and forgets them. */
void duet__values_report(struct duet__values *samples, struct duet__measured *out);
void duet__values_fini(struct duet__values *samples); /* safe on zeroed ones, and twice */

/* ------------------------------------------------------------------------------------------- */
/* The parts of duet__costs_measure: each opens a lab of its own, and closes it                  */

/* One measurement of all costs. */
struct duet__costing {
    const struct duet_config *config;
    struct duet__budget budget;
    struct duet__measured *costs; /* DUET__COSTS */
    struct duet_message *message;
};

/* Why there is no figure. At most 95 bytes. */
void duet__costing_why(struct duet__costing *costing, enum duet__cost cost, const char *why);

/* Errors of all: of duet_open, DUET_ENOMEM, DUET_ETASK, DUET_ECANCELED; with a message. */
DUET_MUST_CHECK int duet__costs_tasks(struct duet__costing *costing);   /* SUBMIT to TASK */
DUET_MUST_CHECK int duet__costs_steals(struct duet__costing *costing);  /* STEAL, ATTEMPT */
DUET_MUST_CHECK int duet__costs_wakes(struct duet__costing *costing);   /* WAKE, SPIN */
DUET_MUST_CHECK int duet__costs_devices(struct duet__costing *costing); /* the others */

#endif
