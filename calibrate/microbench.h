/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by measurements through the public interface: a runtime, a clock, tasks, values. */
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

/* An open runtime with the kernels that measurements use. The first error stays, with its message:
 * later calls then do nothing, but waiting waits and closing closes. */
struct duet__microbench {
    const struct duet__measurement *given; /* borrowed */
    struct duet_runtime *runtime;
    const struct duet_machine *machine; /* the runtime's */
    unsigned cpus;                      /* workers of the host's memory, the first ones */
    struct duet_codelet *empty;         /* does nothing, everywhere */
    void *memory; /* tasks' data: g_free frees it once the runtime is closed */
    int error;
};

/*
 * Opens a runtime, quiet, under this policy. Without GPUs it is the host alone, not emulated: at
 * least one CPU worker, and at most `cpus` if that is not 0. Else it has so many CPU workers, at
 * most `gpus` GPUs if their number was given, and records. False: bench->error is one of duet_open,
 * DUET_ENOMEM or DUET_ECANCELED, with its message. Either way it is to be closed. Closing returns
 * bench->error, or if that is 0 the status of duet_close.
 */
DUET_MUST_CHECK bool duet__microbench_open(struct duet__microbench *bench,
                                           const struct duet__measurement *given,
                                           const char *policy, int cpus, int gpus);
DUET_MUST_CHECK int duet__microbench_close(struct duet__microbench *bench);

/* True if there is no error so far, and the user wants more; if he does not, that is the error. */
bool duet__microbench_goes_on(struct duet__microbench *bench);

/* True if another one is wanted after `count`: up to `least`, then up to `most` until the date. */
bool duet__microbench_more(struct duet__microbench *bench, size_t count, size_t least, size_t most,
                           double end_s);

/* Returns the date at which this part of the remaining time ends. */
double duet__microbench_share(const struct duet__microbench *bench, double part);

/* Notes an error of the runtime, if it is the first one; 0 is none. */
void duet__microbench_note(struct duet__microbench *bench, int error);

/* Makes a kernel for all architectures, which does nothing where it is NULL. NULL after an
 * error. */
struct duet_codelet *duet__microbench_kernel(struct duet__microbench *bench, const char *name,
                                             duet_kernel_fn cpu, duet_kernel_fn emulated);

/* Registers data of `bytes` bytes; NULL after an error. To be forgotten before its memory is
 * freed. */
struct duet_handle *duet__microbench_vector(struct duet__microbench *bench, void *data,
                                            size_t bytes);
void duet__microbench_forget(struct duet__microbench *bench,
                             struct duet_handle *handle); /* NULL is fine */

/* Submits a task, on this worker if the policy is "pinned"; kernels find `context` as their
 * argument. */
void duet__microbench_submit(struct duet__microbench *bench, const struct duet_codelet *codelet,
                             unsigned worker, const struct duet_access *accesses, size_t count,
                             void *context);
void duet__microbench_wait(struct duet__microbench *bench);
/* Waits. Returns the number of records since the last reset; *events is the caller's (free). */
size_t duet__microbench_events(struct duet__microbench *bench, struct duet_event **events);

/* Sets the times of a cost, unless there are none, and frees the values (double). */
void duet__measured_set(struct duet__measured *out, GArray *values);

#endif
