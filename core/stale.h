/* SPDX-License-Identifier: Apache-2.0 */
/* Replicas that a write makes invalid on other memory nodes. */
#ifndef DUET_CORE_STALE_H
#define DUET_CORE_STALE_H

#include "core/internal.h"

/* Memory nodes whose replica became invalid. */
struct stale {
    unsigned words;
    uint64_t bits[NODE_WORDS_MAX];
};

static inline uint64_t own_bit(unsigned node, unsigned word)
{
    return node / 64 == word ? UINT64_C(1) << (node % 64) : 0;
}

/*
 * Makes every replica but that on `node` invalid, where the data was written. Returns true if
 * replicas on devices are among them: these have to be told when the handle's lock is free, since a
 * node's lock comes before a handle's. The handle's lock is held.
 */
static HOT bool invalidate_others(const struct duet_runtime *core, struct duet_handle *handle,
                                  unsigned node, struct stale *stale)
{
    uint64_t devices = 0, others = 0;
    handle->version++;
    stale->words = core->node_words;
    for (unsigned word = 0; word < stale->words; word++)
        others |=
            atomic_load_explicit(&handle->valid[word], memory_order_relaxed) ^ own_bit(node, word);
    if (!others)
        return false;
    for (unsigned word = 0; word < stale->words; word++) {
        uint64_t own = own_bit(node, word);
        stale->bits[word] = atomic_load_explicit(&handle->valid[word], memory_order_relaxed) & ~own;
        atomic_store_explicit(&handle->valid[word], own, memory_order_relaxed);
        devices |= word ? stale->bits[word] : stale->bits[word] & ~(UINT64_C(1) << DUET_HOST);
    }
    return devices != 0;
}

static inline void tell_stale(struct duet_runtime *core, struct duet_handle *handle,
                              const struct stale *stale)
{
    for (unsigned word = 0; word < stale->words; word++) {
        for (uint64_t bits = stale->bits[word]; bits; bits &= bits - 1) {
            unsigned node = word * 64 + (unsigned)__builtin_ctzll(bits);
            if (node != DUET_HOST)
                duet__cache_stale(core, handle->replicas[node]);
        }
    }
}

#endif
