/* SPDX-License-Identifier: Apache-2.0 */
/* A device that is gone: its tasks go to others, its replicas are void. */
#include "core/internal.h"

int duet__worker_lost(struct duet_runtime *core, unsigned worker, double now, struct duet_ops *ops)
{
    return DUET_EABSENT;
}
