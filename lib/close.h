/* SPDX-License-Identifier: Apache-2.0 */
/* What a runtime keeps from its opening until its closing. */
#ifndef DUET_LIB_CLOSE_H
#define DUET_LIB_CLOSE_H

#include <duet/duet.h>

#include "platforms/platform.h"

/*
 * Keeps the platform (taken over, whatever the result) and what the configuration wants at the
 * closing. DUET_ENOMEM.
 */
DUET_MUST_CHECK int duet__remember(struct duet_runtime *runtime, const struct duet_config *config,
                                   struct duet_platform *platform);

#endif
