/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kernel times that a program's own runs leave in a platform file, run after run. duet_open and
 * duet_close call these functions where duet_config.calibrate names a file; calibrate/history.c,
 * which is above this folder, has them.
 */
#ifndef DUET_RUNTIME_HISTORY_H
#define DUET_RUNTIME_HISTORY_H

#include <duet/duet.h>

#include "trace/recording.h"

struct duet__history;

/*
 * Looks at this machine, and at the file that config->calibrate names: there is none yet, or one
 * of this machine that can be written again. *out is the caller's (duet__history_free), and needs
 * the configuration no more. Errors of duet__platform_may_write and of looking at the machine;
 * DUET_EINVAL where the file is of another one; with a message.
 */
DUET_MUST_CHECK int duet__history_open(struct duet__history **out, const struct duet_config *config,
                                       struct duet_message *message);

/*
 * Adds the executions of a recorded run (with accesses), made in this context: kernel times are
 * fitted as `duet calibrate` does, and joined by duet__platform_pool with those of the file, which
 * is read and replaced in one step under duet__history_lock. Of a file that is not there yet the
 * machine is described without measuring anything. A run in which no kernel has ended well leaves
 * the file as it was, and so do errors, with a message: those of reading and writing it, and of
 * duet__model_fit.
 */
DUET_MUST_CHECK int duet__history_add(const struct duet__history *history,
                                      const struct duet__recording *recording, const char *context,
                                      struct duet_message *message);

void duet__history_free(struct duet__history *history); /* NULL is fine */

/*
 * Locks FILE.lock beside a platform file, for all who add to it: a descriptor for
 * duet__history_unlock, or DUET_EIO with a message, also where others keep it for a minute.
 */
DUET_MUST_CHECK int duet__history_lock(const char *path, struct duet_message *message);
void duet__history_unlock(const char *path, int locked);

#endif
