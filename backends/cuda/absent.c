/* SPDX-License-Identifier: Apache-2.0 */
/* Stub for NVIDIA GPUs where duet was built without CUDA: there are none. */
#include "backends/backend.h"

static unsigned absent_count(struct duet_message *why)
{
    (void)duet_fail(why, DUET_EABSENT,
                    "this duet was built without CUDA (the toolkit was not found, or "
                    "DUET_CUDA=OFF)");
    return 0;
}

const struct duet__backend duet__backend_cuda = {
    .name = "cuda",
    .description = "NVIDIA GPUs (not in this build)",
    .count = absent_count,
};
