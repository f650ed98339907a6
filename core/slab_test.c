/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of the slab sub-allocator: against a plain list of what is used, and its promises. */
#include <glib.h>

#include <duet/random.h>

#include "core/slab.h"

enum { BLOCKS = 200, STEPS = 20000 };

/* Bytes of the largest free piece and of all of them, found from the neighbours of one block. */
static uint64_t largest_free(const struct slab *slab, const struct slab_block *any, uint64_t *sum)
{
    uint64_t largest = 0, at = 0;
    const struct slab_block *block = any;
    *sum = 0;
    while (block->before)
        block = block->before;
    for (; block; block = block->after) {
        g_assert_cmpuint(block->offset, ==, at);
        g_assert_cmpuint(block->bytes % SLAB_ALIGN, ==, 0);
        g_assert_true(!block->free || !block->after || !block->after->free);
        at += block->bytes;
        *sum += block->free ? block->bytes : 0;
        if (block->free && block->bytes > largest)
            largest = block->bytes;
    }
    g_assert_cmpuint(at, ==, slab->capacity_bytes);
    return largest;
}

static void test_random(void)
{
    OWNED(duet__slab_fini) struct slab slab;
    struct slab_block *used[BLOCKS] = {NULL};
    uint64_t rng = 1, in_use = 0;
    unsigned refused = 0;
    g_assert_cmpint(duet__slab_init(&slab, 1000 * SLAB_ALIGN + 17), ==, 0);
    g_assert_cmpuint(slab.capacity_bytes, ==, 1000 * SLAB_ALIGN);
    for (unsigned step = 0; step < STEPS; step++) {
        unsigned i = duet_random_below(&rng, BLOCKS);
        if (used[i]) {
            in_use -= used[i]->bytes;
            duet__slab_free(&slab, used[i]);
            used[i] = NULL;
        } else {
            uint64_t bytes = 1 + duet_random_below(&rng, 40 * SLAB_ALIGN);
            used[i] = duet__slab_alloc(&slab, bytes);
            if (used[i]) {
                g_assert_cmpuint(used[i]->bytes, ==, slab_round(bytes));
                in_use += used[i]->bytes;
            } else {
                refused++;
            }
            for (unsigned j = 0, k = 0; !used[i] && j < BLOCKS && !k; j++) {
                uint64_t sum;
                if (used[j])
                    g_assert_cmpuint(largest_free(&slab, used[j], &sum), <, slab_round(bytes));
                k = used[j] != NULL;
            }
        }
        g_assert_cmpuint(slab.used_bytes, ==, in_use);
        if (used[i] && step % 16 == 0) {
            uint64_t sum;
            (void)largest_free(&slab, used[i], &sum);
            g_assert_cmpuint(sum, ==, slab.capacity_bytes - in_use);
        }
    }
    g_assert_cmpuint(refused, >, 100);
    for (unsigned i = 0; i < BLOCKS; i++)
        if (used[i])
            duet__slab_free(&slab, used[i]);
    struct slab_block *all = duet__slab_alloc(&slab, slab.capacity_bytes);
    g_assert_nonnull(all);
    g_assert_cmpuint(all->offset, ==, 0);
}

/* Every order in which three neighbours can be freed gives one piece. */
static void test_joining(void)
{
    static const unsigned orders[6][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2},
                                          {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
    for (unsigned o = 0; o < 6; o++) {
        OWNED(duet__slab_fini) struct slab slab;
        struct slab_block *block[3];
        g_assert_cmpint(duet__slab_init(&slab, 6 * SLAB_ALIGN), ==, 0);
        for (unsigned i = 0; i < 3; i++)
            block[i] = duet__slab_alloc(&slab, (i + 1) * SLAB_ALIGN);
        g_assert_null(duet__slab_alloc(&slab, 1));
        for (unsigned i = 0; i < 3; i++)
            duet__slab_free(&slab, block[orders[o][i]]);
        g_assert_nonnull(duet__slab_alloc(&slab, 6 * SLAB_ALIGN));
    }
}

/* A hole of any size takes a request of that very size, whatever other holes there are. */
static void test_exact_fit(void)
{
    OWNED(duet__slab_fini) struct slab slab;
    struct slab_block *hole[64], *wall[64];
    g_assert_cmpint(duet__slab_init(&slab, 3000 * SLAB_ALIGN), ==, 0);
    for (unsigned i = 0; i < 64; i++) {
        hole[i] = duet__slab_alloc(&slab, (i + 1) * SLAB_ALIGN);
        wall[i] = duet__slab_alloc(&slab, SLAB_ALIGN);
        g_assert_true(hole[i] && wall[i]);
    }
    struct slab_block *rest = duet__slab_alloc(&slab, slab.capacity_bytes - slab.used_bytes);
    g_assert_nonnull(rest);
    for (unsigned i = 0; i < 64; i++)
        duet__slab_free(&slab, hole[i]);
    for (unsigned i = 64; i-- > 0;) {
        hole[i] = duet__slab_alloc(&slab, (i + 1) * SLAB_ALIGN);
        g_assert_nonnull(hole[i]);
    }
    g_assert_cmpuint(slab.used_bytes, ==, slab.capacity_bytes);
}

static void test_limits(void)
{
    struct slab slab;
    g_assert_cmpint(duet__slab_init(&slab, 255), ==, 0);
    g_assert_null(duet__slab_alloc(&slab, 1));
    duet__slab_fini(&slab);
    duet__slab_fini(&slab);
    g_assert_cmpint(duet__slab_init(&slab, UINT64_MAX), ==, 0);
    struct slab_block *huge = duet__slab_alloc(&slab, UINT64_C(1) << 63);
    g_assert_nonnull(huge);
    g_assert_null(duet__slab_alloc(&slab, UINT64_C(1) << 63));
    g_assert_null(duet__slab_alloc(&slab, UINT64_MAX));
    g_assert_null(duet__slab_alloc(&slab, 0));
    duet__slab_free(&slab, huge);
    g_assert_cmpuint(slab.used_bytes, ==, 0);
    duet__slab_fini(&slab);
}

TEST_MAIN(test_random, test_joining, test_exact_fit, test_limits)
