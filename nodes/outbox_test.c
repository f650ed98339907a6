/* SPDX-License-Identifier: Apache-2.0 */
/* The order in which messages are sent, what is under way at most, and that many cost no more. */
#include <glib.h>

#include <duet/random.h>

#include "nodes/transport.h"

static GSList *under_way;

static struct duet__message *message(unsigned to, int priority, uint64_t turn, uint64_t bytes)
{
    struct duet__message *made = g_new0(struct duet__message, 1);
    made->to = to;
    made->priority = priority;
    made->turn = turn;
    made->bytes = bytes;
    return made;
}

/* Takes one, which stays under way. */
static struct duet__message *take(struct duet__outbox *outbox)
{
    struct duet__message *taken = duet__outbox_take(outbox);
    if (taken)
        under_way = g_slist_prepend(under_way, taken);
    return taken;
}

static void end(struct duet__outbox *outbox, struct duet__message *message)
{
    under_way = g_slist_remove(under_way, message);
    duet__outbox_gone(outbox, message);
    g_free(message);
}

/* Takes a message, which is to be this one. */
static struct duet__message *expect(struct duet__outbox *outbox, int priority, uint64_t turn)
{
    struct duet__message *taken = take(outbox);
    g_assert_nonnull(taken);
    g_assert_cmpint(taken->priority, ==, priority);
    g_assert_cmpuint(taken->turn, ==, turn);
    return taken;
}

static void empty(struct duet__outbox *outbox, unsigned left)
{
    for (; under_way || take(outbox); left--)
        end(outbox, under_way->data);
    g_assert_cmpuint(left, ==, 0);
    duet__outbox_free(outbox);
}

static void test_order(void)
{
    struct duet__outbox *outbox;
    g_assert_cmpint(duet__outbox_new(&outbox, 3), ==, 0);
    g_assert_null(duet__outbox_take(outbox));
    duet__outbox_put(outbox, message(1, 0, 7, 1));
    duet__outbox_put(outbox, message(1, 5, 9, 1));
    duet__outbox_put(outbox, message(1, 5, 8, 1));
    duet__outbox_put(outbox, message(2, 1, 3, 1));
    (void)expect(outbox, 5, 8);
    (void)expect(outbox, 1, 3); /* the two destinations in turn */
    (void)expect(outbox, 5, 9);
    (void)expect(outbox, 0, 7);
    g_assert_null(duet__outbox_take(outbox));
    empty(outbox, 4);
}

/*
 * Messages and bytes to one destination are limited; other destinations go on; the least turn goes
 * in any case.
 */
static void test_limits(void)
{
    struct duet__outbox *outbox;
    struct duet__message *one = NULL;
    g_assert_cmpint(duet__outbox_new(&outbox, 2), ==, 0);
    for (unsigned i = 0; i <= DUET__OUT_MESSAGES; i++)
        duet__outbox_put(outbox, message(0, 0, 100 + i, 1));
    duet__outbox_put(outbox, message(1, 0, 1, DUET__OUT_BYTES));
    duet__outbox_put(outbox, message(1, 0, 2, 1));
    for (unsigned i = 0; i <= DUET__OUT_MESSAGES; i++) {
        struct duet__message *taken = take(outbox);
        one = taken && taken->to == 0 && !one ? taken : one;
    }
    g_assert_null(duet__outbox_take(outbox)); /* one to either waits */
    duet__outbox_put(outbox, message(0, 9, 500, 1));
    g_assert_null(duet__outbox_take(outbox));
    duet__outbox_put(outbox, message(0, -9, 50, 1));
    (void)expect(outbox, -9, 50);
    g_assert_null(duet__outbox_take(outbox)); /* that one is under way */
    end(outbox, one);
    g_assert_null(duet__outbox_take(outbox)); /* as many as may be */
    empty(outbox, DUET__OUT_MESSAGES + 4);
}

/* In any order, all of them; by priority, as long as there is room. */
static void test_random(void)
{
    enum { COUNT = 2000 };
    struct duet__outbox *outbox;
    uint64_t rng = 3;
    unsigned put = 0, gone = 0;
    GPtrArray *sent = g_ptr_array_new();
    g_assert_cmpint(duet__outbox_new(&outbox, 1), ==, 0);
    while (gone < COUNT) {
        if (put < COUNT && duet_random_below(&rng, 3)) {
            put++;
            duet__outbox_put(outbox, message(0, (int)duet_random_below(&rng, 9),
                                             1 + duet_random_below(&rng, 1000), 1));
        }
        struct duet__message *taken = duet__outbox_take(outbox);
        if (taken)
            g_ptr_array_add(sent, taken);
        if (sent->len > DUET__OUT_MESSAGES) { /* the least of all, only */
            const struct duet__message *last = g_ptr_array_index(sent, sent->len - 1);
            for (unsigned i = 0; taken && i + 1 < sent->len; i++)
                g_assert_cmpuint(last->turn, <,
                                 ((struct duet__message *)g_ptr_array_index(sent, i))->turn);
        }
        if (sent->len && (put == COUNT || duet_random_below(&rng, 4) == 0)) {
            struct duet__message *one =
                g_ptr_array_remove_index_fast(sent, duet_random_below(&rng, sent->len));
            duet__outbox_gone(outbox, one);
            g_free(one);
            gone++;
        }
    }
    g_ptr_array_free(sent, true);
    empty(outbox, 0);
}

/* Ever higher priorities, ever lower turns: a million wait, and each goes at a small cost. */
static void test_many(void)
{
    enum { COUNT = 1000000 };
    struct duet__outbox *outbox;
    struct duet__message *all = g_new0(struct duet__message, COUNT), *taken;
    unsigned gone = 0;
    g_assert_cmpint(duet__outbox_new(&outbox, 1), ==, 0);
    for (unsigned i = 0; i < COUNT; i++) {
        all[i].priority = (int)i;
        all[i].turn = i + 1;
        duet__outbox_put(outbox, &all[i]);
        if (i < DUET__OUT_MESSAGES)
            (void)duet__outbox_take(outbox);
        else
            g_assert_null(duet__outbox_take(outbox));
    }
    for (unsigned i = 0; i < DUET__OUT_MESSAGES; i++, gone++)
        duet__outbox_gone(outbox, &all[i]);
    for (; (taken = duet__outbox_take(outbox)); gone++)
        duet__outbox_gone(outbox, taken);
    g_assert_cmpuint(gone, ==, COUNT);
    g_free(all);
    empty(outbox, 0);
}

TEST_MAIN(test_order, test_limits, test_random, test_many)
