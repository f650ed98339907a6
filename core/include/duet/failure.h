/* SPDX-License-Identifier: Apache-2.0 */
/*
 * After an error: which data is valid, what did not run, and how to go on. A task that fails, and
 * one that does not run because the run has ended or what it reads is not valid, leaves what it was
 * to write not valid; so does a device that is lost with the last copy. The conventions are those
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
#pragma GCC visibility push(default) /* exported by libduet, as nothing else is */

/*
 * Whether the handle holds what the tasks submitted so far were to make of it, or those of them
 * that have ended, while some are in flight. Not if one that was to write it has failed, or did not
 * run because the run had failed or what it reads was not valid, nor if its last copy was lost with
 * a device; until a task, or an acquisition, with DUET_W alone has written it anew.
 */
bool duet_valid(struct duet_runtime *runtime, struct duet_handle *handle);

/*
 * Makes a runtime usable again after any error of tasks or devices, and after duet_cancel: blocks
 * until all that was submitted has ended, and forgets the error. What is valid stays so, and tasks
 * that are submitted from now on run; those that read what is not valid do not, in silence, and
 * leave nothing valid. Devices that are lost stay so. No other thread submits meanwhile. Errors:
 * DUET_ESTUCK; DUET_EINVAL inside a task.
 */
DUET_MUST_CHECK int duet_recover(struct duet_runtime *runtime);

/* Tasks that have ended without a result since the runtime was opened. */
struct duet_failures {
    uint64_t failed;    /* their kernel or expansion returned an error, or nobody could run them */
    uint64_t cancelled; /* they did not run: the run had ended, or what they read was not valid */
};
void duet_failures(const struct duet_runtime *runtime, struct duet_failures *out);

#pragma GCC visibility pop
#ifdef __cplusplus
#pragma GCC diagnostic pop
}
#endif
#endif
