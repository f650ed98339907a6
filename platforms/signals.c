/* SPDX-License-Identifier: Apache-2.0 */
/* Signals that wait while something is written. */
#include "platforms/signals.h"

#include <stddef.h>

void duet__signals_hold(sigset_t *before)
{
    sigset_t ends;

    sigemptyset(&ends);
    sigaddset(&ends, SIGINT);
    sigaddset(&ends, SIGTERM);
    sigaddset(&ends, SIGHUP);
    pthread_sigmask(SIG_BLOCK, &ends, before);
}

void duet__signals_release(const sigset_t *before)
{
    pthread_sigmask(SIG_SETMASK, before, NULL);
}
