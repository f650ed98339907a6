/* SPDX-License-Identifier: Apache-2.0 */
/* A growing first-in first-out queue of slots of one size: no allocation per element. */
#ifndef DUET_EMULATED_RING_H
#define DUET_EMULATED_RING_H

#include <stdbool.h>
#include <stddef.h>

/* A ring. Set slot_bytes, leave the rest 0. */
struct ring {
    size_t slot_bytes;
    unsigned char *slots;
    size_t first, count, capacity; /* capacity: 0 or a power of two */
};

/* Returns the i-th oldest slot, i < count or just reserved. Valid until the next reservation. */
static inline void *ring_at(const struct ring *ring, size_t i)
{
    return ring->slots + ((ring->first + i) & (ring->capacity - 1)) * ring->slot_bytes;
}

/* Makes room for one more slot. Returns false if there is no memory; nothing has changed. */
bool duet__ring_reserve(struct ring *ring);

/* Adds a copy of *value behind the others; room was reserved. Returns its slot. */
void *duet__ring_add(struct ring *ring, const void *value);

/* Removes the oldest slot; there is one. */
void duet__ring_drop(struct ring *ring);

/* Frees the slots. Safe on a zeroed ring, and twice. */
void duet__ring_fini(struct ring *ring);

#endif
