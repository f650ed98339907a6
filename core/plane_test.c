/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of rectangles in a plane, against comparing each with each. */
#include <glib.h>

#include <duet/random.h>

#include "core/plane.h"

enum { MANY = 400, ROUNDS = 4000 };

static bool meet(struct rectangle a, struct rectangle b)
{
    return a.row < b.row + b.rows && b.row < a.row + a.rows && a.col < b.col + b.cols &&
           b.col < a.col + a.cols;
}

static struct rectangle draw(uint64_t *rng, unsigned edge)
{
    return (struct rectangle){duet_random_below(rng, edge), duet_random_below(rng, edge),
                              1 + duet_random_below(rng, edge / 4),
                              1 + duet_random_below(rng, edge / 4)};
}

/* Adds what meets nothing, takes something out now and then. */
static void test_random(void)
{
    static const unsigned edges[] = {8, 30, 100};
    for (unsigned e = 0; e < G_N_ELEMENTS(edges); e++) {
        uint64_t rng = e + 1;
        struct plane plane = {0};
        struct rectangle there[MANY];
        bool in[MANY] = {false};
        for (unsigned i = 0; i < ROUNDS; i++) {
            struct rectangle wanted = draw(&rng, edges[e]);
            const struct rectangle *found = duet__plane_find(&plane, wanted);
            bool any = false;
            unsigned at = duet_random_below(&rng, MANY);
            for (unsigned j = 0; j < MANY; j++)
                any |= in[j] && meet(there[j], wanted);
            g_assert_true(any == (found != NULL));
            g_assert_true(!found || meet(*found, wanted));
            if (in[at]) {
                duet__plane_remove(&plane, there[at]);
                in[at] = false;
            } else if (!any) {
                there[at] = wanted;
                in[at] = true;
                g_assert_true(duet__plane_add(&plane, wanted, &there[at]));
            }
        }
        duet__plane_fini(&plane);
        g_assert_null(plane.strips);
    }
}

/* Tiles of a matrix: what touches is no overlap. */
static void test_tiles(void)
{
    enum { EDGE = 256, TILE = 64 };
    OWNED(duet__plane_fini) struct plane plane = {0};
    for (uint64_t row = 0; row < EDGE; row++)
        for (uint64_t col = 0; col < EDGE; col++) {
            const struct rectangle tile = {row * TILE, col * TILE, TILE, TILE};
            g_assert_null(duet__plane_find(&plane, tile));
            g_assert_true(duet__plane_add(&plane, tile, &plane));
        }
    const struct rectangle corner = {TILE - 1, TILE - 1, 2, 2};
    g_assert_true(duet__plane_find(&plane, corner) == &plane);
    for (uint64_t i = 0; i < EDGE; i++)
        duet__plane_remove(&plane, (struct rectangle){i * TILE, i * TILE, TILE, TILE});
    g_assert_null(duet__plane_find(&plane, (struct rectangle){TILE, TILE, TILE, TILE}));
}

TEST_MAIN(test_random, test_tiles)
