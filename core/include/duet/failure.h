/* SPDX-License-Identifier: Apache-2.0 */
/*
 * After an error: which data is valid, which tasks did not run, and how to go on. Data becomes
 * invalid when a task that was to write it fails, or does not run because the run has ended or its
 * input is invalid; so does data whose last copy is lost with a device. The conventions are those
 * of duet/duet.h.
 */
#ifndef DUET_FAILURE_H
#define DUET_FAILURE_H

#include <duet/handles.h>

#ifdef __cplusplus
extern "C" {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow" /* a function may have the name of a struct, as in C */
#endif

/*
 * True if the handle holds the result of the tasks submitted so far or, while some are in flight,
 * of those that have ended. False if a task that was to write it has failed, or did not run because
 * the run had failed or its input was invalid, and if its last copy was lost with a device. A task
 * or an acquisition with DUET_W alone makes it valid again; an acquisition with DUET_RW of data of
 * which any part is invalid makes all of it so. False for NULL and for data of another runtime.
 */
DUET_EXPORT bool duet_valid(struct duet_runtime *runtime, struct duet_handle *handle);

/*
 * Makes a runtime usable again after any error of tasks or devices, and after duet_cancel. Blocks
 * until all submitted tasks have ended, and forgets the error. Valid data stays valid, and tasks
 * submitted from now on run; those that read invalid data do not, without a message, and what they
 * would write is invalid. Lost devices stay lost. No other thread may submit meanwhile. Errors:
 * DUET_ESTUCK; DUET_EINVAL inside a task.
 */
DUET_EXPORT DUET_MUST_CHECK int duet_recover(struct duet_runtime *runtime);

/* Number of tasks that have ended without a result since the runtime was opened. */
struct duet_failures {
    uint64_t failed; /* their kernel or expansion returned an error, or no worker could run them
                      */
    uint64_t
        cancelled; /* tasks that did not run, as the run had ended or their input was invalid */
};
DUET_EXPORT void duet_failures(const struct duet_runtime *runtime, struct duet_failures *out);

#ifdef __cplusplus
#pragma GCC diagnostic pop
}
#endif
#endif
