/* SPDX-License-Identifier: Apache-2.0 */
/* files.c: signals that wait while something is written. */
#ifndef DUET_PLATFORMS_SIGNALS_H
#define DUET_PLATFORMS_SIGNALS_H

#include <signal.h>

/*
 * SIGINT, SIGTERM and SIGHUP wait, so that files are whole and no temporary one stays, until
 * duet__signals_admit. *before: the calling thread's mask as it was.
 */
void duet__signals_defer(sigset_t *before);

/* One that has come meanwhile has its effect now, unless it was blocked before. */
void duet__signals_admit(const sigset_t *before);

#endif
