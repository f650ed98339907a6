/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sub-allocator of one device's memory slab: two-level segregated fit (Masmano et al., ECRTS 2004)
 * with its bookkeeping outside the slab, which the host cannot write. All sizes and offsets are
 * multiples of SLAB_ALIGN. Not thread-safe: the memory node's lock protects it.
 */
#ifndef DUET_CORE_SLAB_H
#define DUET_CORE_SLAB_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

enum {
    SLAB_ALIGN = 256, /* bytes; the alignment of cudaMalloc */
    SLAB_SECOND = 16, /* second-level lists for each power of two */
    SLAB_FIRST = 56,  /* powers of two, in units of SLAB_ALIGN: any uint64_t of bytes */
};

/* A piece of the slab, used or free. */
struct slab_block {
    uint64_t offset, bytes;
    struct slab_block *before, *after; /* neighbours by offset */
    struct slab_block *next, *prev;    /* free list; next also chains spare records */
    int free;
};

struct slab {
    uint64_t capacity_bytes;
    _Atomic(uint64_t) used_bytes; /* anybody may read it */
    uint64_t first;               /* bit i: some list of row i is not empty */
    uint32_t second[SLAB_FIRST];  /* bit j of row i: list [i][j] is not empty */
    struct slab_block *lists[SLAB_FIRST][SLAB_SECOND];
    struct slab_block *spare;       /* records to use again */
    struct slab_block *records[32]; /* arrays of records, each twice as large as the one before */
    unsigned record_arrays;
};

/* Rounds up to the size that a block really takes. */
static inline uint64_t slab_round(uint64_t bytes)
{
    return (bytes + SLAB_ALIGN - 1) / SLAB_ALIGN * SLAB_ALIGN;
}

/* Prepares a slab of capacity_bytes (rounded down). Returns 0 or DUET_ENOMEM. */
int duet__slab_init(struct slab *slab, uint64_t capacity_bytes);

/* Frees the bookkeeping. Safe on a zeroed slab. */
void duet__slab_fini(struct slab *slab);

/*
 * Returns a block of at least `bytes` > 0, or NULL when no free piece is large enough (or
 * bookkeeping memory is exhausted). A request that fits exactly into a free piece always succeeds.
 */
struct slab_block *duet__slab_alloc(struct slab *slab, uint64_t bytes);

/* Frees a block; free neighbours are joined. */
void duet__slab_free(struct slab *slab, struct slab_block *block);

#endif
