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

/* An open runtime with the kernels that measurements use. */
struct duet__lab {
    struct duet_runtime *runtime;
    const struct duet_machine *machine; /* the runtime's */
    unsigned cpus;                      /* workers of the host's memory, the first ones */
    struct duet_codelet *empty;         /* does nothing, everywhere */
    struct duet_codelet *fill;          /* on emulated devices fills its data, else does nothing */
    struct duet_message *message;
};

/* Values measured one after the other. */
struct duet__values {
    double *values;
    size_t count, capacity;
};

/* The budget of `seconds` from now. */
struct duet__budget duet__lab_budget(double seconds, bool (*stop)(void *context), void *context);

/* DUET_ECANCELED with a message if the user wants no more, else 0. */
DUET_MUST_CHECK int duet__lab_stop(const struct duet__budget *budget, struct duet_message *message);

/* Of what is left of the budget the part `share`, as the date on which it ends. */
double duet__lab_share(const struct duet__budget *budget, double share);

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
 * Opens; errors of duet_open and DUET_ENOMEM, with a message, and nothing is open then. Closing
 * returns `error`, or if that is 0 what duet_close says. `message` is borrowed until then.
 */
DUET_MUST_CHECK int duet__lab_open(struct duet__lab *lab, const struct duet_config *config,
                                   struct duet_message *message);
DUET_MUST_CHECK int duet__lab_close(struct duet__lab *lab, int error);

/* What the runtime says of `error` becomes the message. Returns `error`. */
int duet__lab_fail(const struct duet__lab *lab, int error);

/* One more kernel for all architectures that implements `run` on CPUs. */
DUET_MUST_CHECK int duet__lab_kernel(struct duet__lab *lab, const char *name, duet_kernel_fn run,
                                     struct duet_codelet **out);

/* Submits, on this worker if the policy is "pinned". Errors with a message. */
DUET_MUST_CHECK int duet__lab_submit(const struct duet__lab *lab,
                                     const struct duet_codelet *codelet, unsigned worker,
                                     const struct duet_access *accesses, size_t count,
                                     const void *args, size_t args_bytes);
DUET_MUST_CHECK int duet__lab_wait(const struct duet__lab *lab);
/* Waits; then the records since the last reset: *events is the caller's (free). */
DUET_MUST_CHECK int duet__lab_events(const struct duet__lab *lab, struct duet_event **events,
                                     size_t *count);

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

#endif
