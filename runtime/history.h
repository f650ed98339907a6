/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps kernel times of programs' own runs in a platform file, run after run. Part of libduet, too:
 * duet_open and duet_close call it if duet_config.calibrate names a file. */
#ifndef DUET_CALIBRATE_HISTORY_H
#define DUET_CALIBRATE_HISTORY_H

#include <duet/duet.h>

#include "trace/recording.h"

struct duet__history;

/*
 * Looks at this machine, and at the file that config->calibrate names: there is none yet, or one of
 * this machine that can be written again. *out is the caller's (duet__history_free), and does not
 * keep the configuration. Errors of duet__platform_may_write and of looking at the machine;
 * DUET_EINVAL if the file is of another machine; with a message.
 */
DUET_MUST_CHECK int duet__history_open(struct duet__history **out, const struct duet_config *config,
                                       struct duet_message *message);

/*
 * Adds the executions of a recorded run (with accesses), made in this context: kernel times are
 * fitted as `duet calibrate` does, and pooled (duet__platform_pool) with those of the file, which
 * is read and replaced in one step under duet__history_lock. A new file describes the machine
 * without measurements. A run without a successful kernel leaves the file as it was. So do errors,
 * with a message: those of reading and writing it, and of duet__model_fit.
 */
DUET_MUST_CHECK int duet__history_add(const struct duet__history *history,
                                      const struct duet__recording *recording, const char *context,
                                      struct duet_message *message);

void duet__history_free(struct duet__history *history); /* NULL is fine */

/* Locks FILE.lock beside a platform file, for all who add to it. Returns a descriptor for
 * duet__history_unlock, or DUET_EIO with a message, also if others keep it for a minute. */
DUET_MUST_CHECK int duet__history_lock(const char *path, struct duet_message *message);
void duet__history_unlock(const char *path, int locked);

#endif
