/* SPDX-License-Identifier: Apache-2.0 */
/* What a runtime keeps from its opening until its closing. */
#ifndef DUET_WORLD_CLOSE_H
#define DUET_WORLD_CLOSE_H

#include <duet/duet.h>

#include "world/open.h"

/*
 * Keeps the kernel times that the runtime lives by (NULL: none), which it takes over, until the
 * runtime is freed, and what the configuration wants at the closing.
 */
void duet__remember(struct duet_runtime *runtime, const struct duet_config *config,
                    struct duet__times *times);

#endif
