/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies of memory that is not page-locked: in pieces through page-locked buffers, of which the
 * host fills or empties one while the device copies the other. One object for each direction of a
 * device, whose stream keeps everything in order.
 */
#ifndef DUET_CUDA_STAGING_H
#define DUET_CUDA_STAGING_H

#include "backends/cuda/errors.h"
#include "backends/common.h"

enum {
    STAGING_BUFFERS = 2,
    STAGING_BYTES = 4 << 20, /* size of a buffer, except in tests */
};

/* A piece on its way through a buffer. */
struct chunk {
    uint64_t owner; /* number of its command in the stream */
    struct piece piece;
};

struct staging {
    unsigned char *memory; /* the buffers; NULL: none */
    size_t bytes;          /* size of each */
    cudaEvent_t passed[STAGING_BUFFERS];
    struct chunk chunks[STAGING_BUFFERS];
    unsigned first, count; /* chunks on their way, oldest first, and their buffers */
};

/*
 * Allocates the buffers, of so many bytes each, for the current device. Returns false with the
 * reason in *failure; nothing is allocated then.
 */
DUET_MUST_CHECK bool duet__staging_open(struct staging *staging, size_t bytes,
                                        struct failure *failure);
/* Frees the buffers. Safe on a zeroed object. Nothing is on its way. */
void duet__staging_close(struct staging *staging);

/*
 * Returns the buffer behind the newest chunk, which is free if there are fewer than
 * STAGING_BUFFERS.
 */
static inline unsigned staging_next(const struct staging *staging)
{
    return (staging->first + staging->count) % STAGING_BUFFERS;
}

static inline unsigned char *staging_buffer(const struct staging *staging, unsigned which)
{
    return staging->memory + which * staging->bytes;
}

#endif
