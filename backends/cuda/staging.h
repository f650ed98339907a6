/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies of memory that is not page-locked: in pieces through page-locked buffers, of which one is
 * filled or emptied by the host while the device copies the other. One of these for each direction
 * of a device, whose stream keeps everything in order.
 */
#ifndef DUET_CUDA_STAGING_H
#define DUET_CUDA_STAGING_H

#include "backends/cuda/errors.h"
#include "backends/pieces.h"

enum {
    STAGING_BUFFERS = 2,
    STAGING_BYTES = 4 << 20, /* of a buffer, but in tests */
};

/* What is on its way through a buffer. */
struct chunk {
    uint64_t owner; /* whose it is */
    struct piece piece;
};

struct staging {
    unsigned char *memory; /* the buffers; NULL: not there */
    size_t bytes;          /* of each */
    cudaEvent_t passed[STAGING_BUFFERS];
    struct chunk chunks[STAGING_BUFFERS];
    unsigned first, count; /* chunks on their way, oldest first, and their buffers */
};

/*
 * Allocates the buffers, of so many bytes each; the device is current. false: nothing is there, and
 * *failure says why.
 */
DUET_MUST_CHECK bool duet__staging_open(struct staging *staging, size_t bytes,
                                        struct failure *failure);
/* Safe on a zeroed one. Nothing is on its way. */
void duet__staging_close(struct staging *staging);

/* The buffer behind the newest chunk, which is free if there are fewer than STAGING_BUFFERS. */
static inline unsigned staging_next(const struct staging *staging)
{
    return (staging->first + staging->count) % STAGING_BUFFERS;
}

static inline unsigned char *staging_buffer(const struct staging *staging, unsigned which)
{
    return staging->memory + which * staging->bytes;
}

#endif
