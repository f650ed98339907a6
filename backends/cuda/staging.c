/* SPDX-License-Identifier: Apache-2.0 */
/* Page-locked buffers for pieces of copies. */
#include "backends/cuda/staging.h"

static bool open_all(struct staging *staging, struct failure *failure)
{
    void *memory = NULL;
    if (duet__cuda_failed(failure, "cudaHostAlloc",
                          cudaHostAlloc(&memory, STAGING_BUFFERS * staging->bytes,
                                        cudaHostAllocPortable)))
        return false;
    staging->memory = memory;
    for (unsigned i = 0; i < STAGING_BUFFERS; i++)
        if (duet__cuda_failed(failure, "cudaEventCreateWithFlags",
                              cudaEventCreateWithFlags(&staging->passed[i],
                                                       cudaEventDisableTiming)))
            return false;
    return true;
}

bool duet__staging_open(struct staging *staging, size_t bytes, struct failure *failure)
{
    *staging = (struct staging){.bytes = bytes};
    if (open_all(staging, failure))
        return true;
    duet__staging_close(staging);
    return false;
}

void duet__staging_close(struct staging *staging)
{
    for (unsigned i = 0; i < STAGING_BUFFERS; i++)
        if (staging->passed[i])
            duet__cuda_ignore(cudaEventDestroy(staging->passed[i]));
    if (staging->memory)
        duet__cuda_ignore(cudaFreeHost(staging->memory));
    *staging = (struct staging){.memory = NULL};
}
