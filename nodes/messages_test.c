/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sent messages: those that the distribution needs, once to each node that needs it, and no more.
 */
#include <semaphore.h>

#include "nodes/testing_vectors.h"

/* ------------------------------------------------------------------------------------------- */

/* All nodes read what the first one writes, several times; then another one writes it. */
static void broadcast(struct node *node)
{
    const struct codelets make = make_codelets(node->duet);
    uint64_t words[WORDS] = {0};
    struct duet_handle *handle = vector(node, 0, words);
    submit(node, make.set, DUET_W, handle, 1, DUET_NOBODY);
    for (unsigned times = 0; times < 2; times++)
        for (unsigned n = 0; n < node->fabric->count; n++)
            submit(node, make.look, DUET_R, handle, 1, n);
    submit(node, make.add, DUET_RW, handle, 5, 3);
    submit(node, make.look, DUET_R, handle, 6, 3);
    ok(node, duet_unregister(node->duet, handle));
    g_assert_cmpuint(words[0], ==, node->number == 0 ? 6 : 0);
}

/*
 * Along a binomial tree: holder k has it from k without its highest bit, so that the first sends
 * log2 of them and the depth is that, too. And the new version home.
 */
static void test_broadcast(void)
{
    OWNED(fabric_free) struct fabric *fabric = fabric_new(8, 1);
    run_nodes(fabric, (struct duet_grid){2, 4}, 0, broadcast, NULL);
    g_assert_cmpuint(fabric->messages, ==, 7 + 1);
    g_assert_cmpuint(fabric->bytes, ==, 8 * BYTES);
    static const unsigned parents[8] = {0, 0, 0, 1, 0, 1, 2, 3};
    for (unsigned to = 1; to < 8; to++)
        g_assert_cmpuint(fabric->received[parents[to]][to], ==, 1);
    g_assert_cmpuint(fabric->received[3][0], ==, 1);
}

/* Nodes of tasks: the given one, the owner of written data, the owner of read data. */
static void places(struct node *node)
{
    const struct codelets make = make_codelets(node->duet);
    uint64_t words[2][WORDS] = {{0}};
    struct duet_handle *a = vector(node, 1, words[0]), *b = vector(node, 2, words[1]);
    const struct duet_access reads[] = {{a, DUET_R}, {b, DUET_R}},
                             writes[] = {{a, DUET_R}, {b, DUET_RW}};
    const uint64_t none = 0;
    struct duet_task_desc desc = {.codelet = make.look,
                                  .accesses = reads,
                                  .access_count = 2,
                                  .args = &none,
                                  .args_bytes = sizeof none};
    ok(node, duet_submit(node->duet, &desc)); /* on 1: b goes there */
    desc.accesses = writes;
    ok(node, duet_submit(node->duet, &desc)); /* on 2: a goes there */
    ok(node, duet_submit(node->duet, &desc)); /* which has it */
    ok(node, duet_migrate(node->duet, a, 0));
    g_assert_cmpuint(duet_owner(a), ==, 0);
    submit(node, make.add, DUET_RW, a, 1, DUET_NOBODY); /* on 0 */
    ok(node, duet_fetch(node->duet, a, 2));
    ok(node, duet_fetch(node->duet, a, 2));
    submit(node, make.look, DUET_R, a, 1, 2);
    ok(node, duet_wont_use(node->duet, a));
    submit(node, make.look, DUET_R, a, 1, 2); /* once more, since the replica was dropped */
    ok(node, duet_wait(node->duet));
}

static void test_places(void)
{
    OWNED(fabric_free) struct fabric *fabric = fabric_new(3, 2);
    run_nodes(fabric, (struct duet_grid){1, 3}, 1, places, NULL);
    static const unsigned received[3][3] = {{0, 0, 2}, {1, 0, 1}, {0, 1, 0}};
    for (unsigned from = 0; from < 3; from++)
        for (unsigned to = 0; to < 3; to++)
            g_assert_cmpuint(fabric->received[from][to], ==, received[from][to]);
}

/*
 * Sums of all nodes: one message from each but the first, and one task each that adds. Then a node
 * reads twice, and there is more in between.
 */
static void reduce(struct node *node)
{
    const struct codelets make = make_codelets(node->duet);
    const unsigned count = node->fabric->count;
    uint64_t words[WORDS] = {0};
    struct duet_handle *handle = vector(node, 1, words);
    ok(node, duet_set_reduction(node->duet, handle, make.init, make.combine));
    submit(node, make.set, DUET_W, handle, 1000, DUET_NOBODY);
    for (unsigned i = 0; i < 20 * count; i++)
        submit(node, make.add, DUET_REDUCE, handle, i, i % count);
    const uint64_t total = 1000 + 10 * count * (20 * count - 1);
    submit(node, make.look, DUET_R, handle, total, DUET_NOBODY);
    submit(node, make.look, DUET_R, handle, total, 3);
    submit(node, make.add, DUET_REDUCE, handle, 5, 1); /* where it is: others' replicas are old */
    submit(node, make.look, DUET_R, handle, total + 5, 3);
    submit(node, make.add, DUET_REDUCE, handle, 1, 0);
    submit(node, make.set, DUET_W, handle, 7, DUET_NOBODY); /* what was added is of no use */
    ok(node, duet_unregister(node->duet, handle));
    g_assert_cmpuint(words[0], ==, node->number == 1 ? 7 : 0);
}

static void test_reduce(void)
{
    OWNED(fabric_free) struct fabric *fabric = fabric_new(5, 3);
    run_nodes(fabric, (struct duet_grid){1, 5}, 0, reduce, NULL);
    g_assert_cmpuint(fabric->messages, ==, 4 + 2);
    g_assert_cmpuint(fabric->received[1][3], ==, 2);
    /* in order of the first task: 1 is the root, then 0, 2, 3, 4 */
    g_assert_cmpuint(fabric->received[0][1], ==, 1);
    g_assert_cmpuint(fabric->received[2][1], ==, 1);
    g_assert_cmpuint(fabric->received[3][2], ==, 1);
    g_assert_cmpuint(fabric->received[4][1], ==, 1);
}

/* The application's own accesses. */
static void acquire(struct node *node)
{
    const struct codelets make = make_codelets(node->duet);
    uint64_t words[WORDS] = {0};
    bool here;
    struct duet_handle *handle = vector(node, 2, words);
    submit(node, make.set, DUET_W, handle, 1, DUET_NOBODY);
    ok(node, duet_acquire(node->duet, handle, DUET_RW));
    for (unsigned i = 0; i < WORDS; i++)
        ((uint64_t *)duet_address(handle))[i]++;
    ok(node, duet_release(node->duet, handle));
    submit(node, make.look, DUET_R, handle, 2, 1); /* all have it */
    ok(node, duet_acquire_on(node->duet, handle, DUET_RW, 0, &here));
    g_assert_true(here == (node->number == 0));
    for (unsigned i = 0; here && i < WORDS; i++)
        ((uint64_t *)duet_address(handle))[i]++;
    const struct duet_access access = {handle, DUET_R};
    const struct duet_task_desc desc = {.codelet = make.look,
                                        .accesses = &access,
                                        .access_count = 1};
    g_assert_cmpint(duet_submit(node->duet, &desc), ==, DUET_EINVAL);
    g_assert_cmpint(duet_acquire(node->duet, handle, DUET_R), ==, DUET_EINVAL);
    ok(node, duet_release(node->duet, handle));
    g_assert_cmpint(duet_release(node->duet, handle), ==, DUET_EINVAL);
    submit(node, make.look, DUET_R, handle, 3, 1);
    ok(node, duet_acquire_on(node->duet, handle, DUET_W, 1, NULL));
    for (unsigned i = 0; node->number == 1 && i < WORDS; i++)
        ((uint64_t *)duet_address(handle))[i] = 9;
    ok(node, duet_release(node->duet, handle));
    ok(node, duet_unregister(node->duet, handle));
    g_assert_cmpuint(words[0], ==, node->number == 2 ? 9 : 0);
}

static void test_acquire(void)
{
    OWNED(fabric_free) struct fabric *fabric = fabric_new(3, 4);
    run_nodes(fabric, (struct duet_grid){1, 3}, 1, acquire, NULL);
    g_assert_cmpuint(fabric->messages, ==, 2 + 1 + 1);
}

enum { WINDOW = 8 };

/*
 * The first node only sends: it is never further ahead of what was sent than its window. The other
 * one begins when that is almost full.
 */
static void run_ahead(struct node *node)
{
    const struct codelets make = make_codelets(node->duet);
    static uint64_t words[10 * WINDOW][WORDS];
    struct duet_handle *handles[10 * WINDOW];
    for (unsigned i = 0; i < 10 * WINDOW; i++)
        handles[i] = vector(node, 0, words[i]);
    if (node->number)
        (void)sem_wait(node->data);
    for (unsigned i = 0; i < 10 * WINDOW; i++) {
        submit(node, make.look, DUET_R, handles[i], 0, 1);
        pthread_mutex_lock(&node->fabric->lock);
        g_assert_cmpuint(i + 1, <=, node->fabric->messages + WINDOW + 1);
        pthread_mutex_unlock(&node->fabric->lock);
        if (node->number == 0 && i == WINDOW - 2)
            (void)sem_post(node->data);
    }
    ok(node, duet_wait(node->duet));
}

static void test_run_ahead(void)
{
    OWNED(fabric_free) struct fabric *fabric = fabric_new(2, 5);
    sem_t begun;
    fabric->window = WINDOW;
    (void)sem_init(&begun, 0, 0);
    run_nodes(fabric, (struct duet_grid){1, 2}, 0, run_ahead, &begun);
    (void)sem_destroy(&begun);
}

/* Memory that was taken for a replica is given back with it. */
static void give_back(struct node *node)
{
    const struct codelets make = make_codelets(node->duet);
    uint64_t words[WORDS] = {0};
    struct duet_handle *handle = vector(node, 0, words);
    submit(node, make.look, DUET_R, handle, 0, 1);
    submit(node, make.look, DUET_R, handle, 0, 2);
    ok(node, duet_wait(node->duet));
    g_assert_nonnull(duet_address(handle));
    submit(node, make.add, DUET_RW, handle, 1, 0);
    ok(node, duet_wait(node->duet));
    g_assert_true((node->number == 0) == (duet_address(handle) != NULL));
    ok(node, duet_unregister(node->duet, handle));
}

static void test_give_back(void)
{
    OWNED(fabric_free) struct fabric *fabric = fabric_new(3, 6);
    run_nodes(fabric, (struct duet_grid){3, 1}, 1, give_back, NULL);
}

TEST_MAIN(test_broadcast, test_places, test_reduce, test_acquire, test_run_ahead, test_give_back)
