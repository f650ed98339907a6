/* SPDX-License-Identifier: Apache-2.0 */
/* Growing ring buffers. */
#include "backends/emulated/ring.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST_CAPACITY = 16 };

bool duet__ring_reserve(struct ring *ring)
{
    if (ring->count < ring->capacity)
        return true;
    size_t capacity = ring->capacity ? 2 * ring->capacity : FIRST_CAPACITY;
    if (capacity > SIZE_MAX / ring->slot_bytes)
        return false;
    unsigned char *slots = malloc(capacity * ring->slot_bytes);
    if (!slots)
        return false;
    for (size_t i = 0; i < ring->count; i++)
        memcpy(slots + i * ring->slot_bytes, ring_at(ring, i), ring->slot_bytes);
    free(ring->slots);
    ring->slots = slots;
    ring->first = 0;
    ring->capacity = capacity;
    return true;
}

void *duet__ring_add(struct ring *ring, const void *value)
{
    return memcpy(ring_at(ring, ring->count++), value, ring->slot_bytes);
}

void duet__ring_drop(struct ring *ring)
{
    ring->first = (ring->first + 1) & (ring->capacity - 1);
    ring->count--;
}

void duet__ring_fini(struct ring *ring)
{
    free(ring->slots);
    *ring = (struct ring){.slot_bytes = ring->slot_bytes};
}
