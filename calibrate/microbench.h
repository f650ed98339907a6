/* SPDX-License-Identifier: Apache-2.0 */
/* What measurements through the public interface share: a runtime, a clock, tasks, values. */
#ifndef DUET_CALIBRATE_LAB_H
#define DUET_CALIBRATE_LAB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <glib.h>

#include <duet/duet.h>
#include <duet/trace.h>

#include "calibrate/costs.h"
#include "base/clock.h"

/*
 * An open runtime with the kernels that measurements use. The first error stays, with its message:
 * what is asked of the bench from then on does nothing, but that waiting waits and closing closes.
 */
struct duet__microbench {
    const struct duet__measurement *given; /* borrowed */
    struct duet_runtime *runtime;
    const struct duet_machine *machine; /* the runtime's */
    unsigned cpus;                      /* workers of the host's memory, the first ones */
    struct duet_codelet *empty;         /* does nothing, everywhere */
    void *memory; /* that tasks use: g_free frees it once the runtime is closed */
    int error;
};

/*
 * Opens what was given, quiet, under this policy. Without GPUs it is the host alone, not emulated:
 * at least one CPU worker, and at most `cpus` if that is not 0. Else it has so many CPU workers,
 * `gpus` GPUs at most if their number was given, and records. False: bench->error is one of
 * duet_open, DUET_ENOMEM or DUET_ECANCELED, with its message. Either way it is to be closed.
 * Closing returns bench->error, or if that is 0 what duet_close says.
 */
DUET_MUST_CHECK bool duet__microbench_open(struct duet__microbench *bench,
                                           const struct duet__measurement *given,
                                           const char *policy, int cpus, int gpus);
DUET_MUST_CHECK int duet__microbench_close(struct duet__microbench *bench);

/* Without an error so far, and the user wants more: otherwise that is the error. */
bool duet__microbench_goes_on(struct duet__microbench *bench);

/* The same for `count` repetitions so far: at least, at most, and not beyond a date in between. */
bool duet__microbench_more(struct duet__microbench *bench, size_t count, size_t least, size_t most,
                           double end_s);

/* The date on which this part of what is left of the time ends. */
double duet__microbench_share(const struct duet__microbench *bench, double part);

/* What the runtime says of an error, if it is the first one, is the bench's; 0 is none. */
void duet__microbench_note(struct duet__microbench *bench, int error);

/* One more kernel for all architectures, which does nothing where it is NULL. NULL after an error.
 */
struct duet_codelet *duet__microbench_kernel(struct duet__microbench *bench, const char *name,
                                             duet_kernel_fn cpu, duet_kernel_fn emulated);

/* Data of `bytes` bytes; NULL after an error. It is to be forgotten before its memory goes. */
struct duet_handle *duet__microbench_vector(struct duet__microbench *bench, void *data,
                                            size_t bytes);
void duet__microbench_forget(struct duet__microbench *bench,
                             struct duet_handle *handle); /* NULL is fine */

/* Submits, on this worker if the policy is "pinned"; kernels find `context` as their argument. */
void duet__microbench_submit(struct duet__microbench *bench, const struct duet_codelet *codelet,
                             unsigned worker, const struct duet_access *accesses, size_t count,
                             void *context);
void duet__microbench_wait(struct duet__microbench *bench);
/* Waits; then the records since the last reset: *events is the caller's (free). How many. */
size_t duet__microbench_events(struct duet__microbench *bench, struct duet_event **events);

/* Sets the times of a cost, unless there are none, and frees the values (double). */
void duet__measured_set(struct duet__measured *out, GArray *values);

/* The parts of duet__costs_measure: what one bench can tell. Errors are the bench's. */
void duet__costs_tasks(struct duet__microbench *bench,
                       struct duet__measured *costs); /* SUBMIT to TASK */
void duet__costs_steals(struct duet__microbench *bench, struct duet__measured *costs); /* STEAL */
void duet__costs_wakes(struct duet__microbench *bench,
                       struct duet__measured *costs); /* WAKE, SPIN */
void duet__costs_devices(struct duet__microbench *bench,
                         struct duet__measured *costs); /* the others */

#endif
