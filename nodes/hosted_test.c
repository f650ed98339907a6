/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A process that hosts all nodes, as a simulation does, beside processes that host one each: the
 * same program computes the same, sends the same messages, and replicas leave nothing behind.
 */
#include "nodes/testing_vectors.h"

enum { NODES = 5, VECTORS = 9, STEPS = 400 };

struct outcome {
    uint64_t seed;
    uint64_t words[VECTORS][WORDS], expected[VECTORS];
    uint64_t messages, bytes;
    unsigned received[FABRIC_NODES][FABRIC_NODES];
};

/* A task on one node or another, or what the application does with data. */
static void step(struct node *node, const struct codelets *make, struct duet_handle **handles,
                 uint64_t *expected, uint64_t *rng)
{
    const unsigned v = duet_random_below(rng, VECTORS), value = duet_random_below(rng, 1000);
    const unsigned where = duet_random_below(rng, 2) ? duet_random_below(rng, NODES) : DUET_NOBODY;
    const unsigned kind = duet_random_below(rng, 16);
    if (kind < 4) {
        submit(node, make->look, DUET_R, handles[v], expected[v], where);
    } else if (kind < 6) {
        submit(node, make->set, DUET_W, handles[v], value, where);
        expected[v] = value;
    } else if (kind < 13) {
        const enum duet_mode mode = kind < 8 ? DUET_RW : kind == 8 ? DUET_COMMUTE : DUET_REDUCE;
        submit(node, make->add, mode, handles[v], value, where);
        expected[v] += value;
    } else if (kind == 13) {
        ok(node, duet_migrate(node->duet, handles[v], value % NODES));
    } else if (kind == 14) {
        ok(node, duet_fetch(node->duet, handles[v], value % NODES));
    } else {
        ok(node, duet_wont_use(node->duet, handles[v]));
    }
}

static void program(struct node *node)
{
    struct outcome *outcome = node->data;
    const struct codelets make = make_codelets(node->duet);
    struct duet_handle *handles[VECTORS], *other;
    uint64_t rng = outcome->seed, expected[VECTORS] = {0}, words[WORDS] = {0};
    /* to say how data is reduced is to use it; with an owner it may also come later */
    ok(node, duet_register_vector(node->duet, words, WORDS, sizeof *words, &other));
    ok(node, duet_set_reduction(node->duet, other, make.init, make.combine));
    REFUSED(node->duet, duet_own(node->duet, other, 0), DUET_EINVAL, "used already");
    ok(node, duet_unregister(node->duet, other));
    other = vector(node, 0, words);
    submit(node, make.set, DUET_W, other, 1, 1);
    submit(node, make.look, DUET_R, other, 1, 0);
    ok(node, duet_set_reduction(node->duet, other, make.init, make.combine));
    submit(node, make.add, DUET_REDUCE, other, 2, 2);
    submit(node, make.look, DUET_R, other, 3, 0);
    ok(node, duet_unregister(node->duet, other));
    for (unsigned v = 0; v < VECTORS; v++) {
        handles[v] = vector(node, 0, outcome->words[v]);
        ok(node, duet_set_reduction(node->duet, handles[v], make.init, make.combine));
        ok(node, duet_migrate(node->duet, handles[v], v % NODES));
    }
    for (unsigned i = 0; i < STEPS; i++) {
        step(node, &make, handles, expected, &rng);
        if (i % 128 == 127)
            ok(node, duet_wait(node->duet));
    }
    for (unsigned v = 0; v < VECTORS; v++) {
        ok(node, duet_migrate(node->duet, handles[v], 0));
        ok(node, v % 2 ? duet_unregister(node->duet, handles[v])
                       : duet_unregister_submit(node->duet, handles[v]));
    }
    ok(node, duet_wait(node->duet));
    if (node->number == 0)
        memcpy(outcome->expected, expected, sizeof expected);
}

/* Runs one thread, which hosts all the nodes. */
static void run_hosted(struct fabric *fabric, struct outcome *outcome)
{
    struct duet_runtime *cores[NODES];
    struct duet_config config;
    duet_config_init(&config);
    config.emulate = "free";
    config.cpus = config.gpus = 1;
    config.window = outcome->seed % 2 ? 0 : 3;
    config.no_bind = config.quiet = true;
    for (unsigned n = 0; n < NODES; n++)
        g_assert_cmpint(duet_open(&cores[n], &config, NULL), ==, DUET_OK);
    fabric_join(fabric, 0, cores, NODES, duet__grid_square(NODES));
    struct node node = {.fabric = fabric, .duet = cores[0], .data = outcome};
    g_assert_true(duet_node_here(node.duet, NODES - 1) && !duet_node_here(node.duet, NODES));
    program(&node);
    for (unsigned n = 0; n < NODES; n++) /* replicas, parts of sums, what has arrived */
        g_assert_cmpuint(duet__registered_bytes(cores[n]), ==, 0);
    node_close(&node);
    for (unsigned n = 1; n < NODES; n++)
        g_assert_cmpint(duet_close(cores[n]), ==, DUET_OK);
}

static void end(struct fabric *fabric, struct outcome *outcome)
{
    outcome->messages = fabric->messages;
    outcome->bytes = fabric->bytes;
    memcpy(outcome->received, fabric->received, sizeof fabric->received);
    fabric_free(&fabric);
    for (unsigned v = 0; v < VECTORS; v++)
        for (unsigned i = 0; i < WORDS; i++)
            g_assert_cmpuint(outcome->words[v][i], ==, outcome->expected[v]);
}

static void compare(uint64_t seed)
{
    struct outcome *apart = g_new0(struct outcome, 1), *together = g_new0(struct outcome, 1);
    struct fabric *fabric = fabric_new(NODES, seed);
    apart->seed = together->seed = seed;
    run_nodes(fabric, duet__grid_square(NODES), 1, program, apart);
    end(fabric, apart);
    fabric = fabric_new(NODES, seed + 1);
    run_hosted(fabric, together);
    end(fabric, together);
    g_assert_cmpuint(apart->messages, >, STEPS / 4);
    g_assert_cmpuint(apart->messages, ==, together->messages);
    g_assert_cmpuint(apart->bytes, ==, together->bytes);
    g_assert_cmpmem(apart->received, sizeof apart->received, together->received,
                    sizeof together->received);
    g_free(apart);
    g_free(together);
}

static void test_same(void)
{
    for (uint64_t seed = 1; seed <= 8; seed++) {
        g_test_message("program %u", (unsigned)seed);
        compare(seed);
    }
}

TEST_MAIN(test_same)
