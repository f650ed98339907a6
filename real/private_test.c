/* SPDX-License-Identifier: Apache-2.0 */
/* Tasks that a worker keeps to itself: all of them run once, and the others get theirs. */
#include "real/private.h"
#include "real/testing.h"

enum { WARM = 100, DEEP = 14 };

struct tree;

/* One call of a recursion: its children, two each, down to depth 0. */
struct call {
    struct tree *tree;
    unsigned depth;
    uint8_t pattern[40]; /* arguments travel whole */
};

struct tree {
    const struct duet_codelet *codelet;
    _Atomic(unsigned) leaves, nodes, wrong;
    unsigned fail_at; /* the how manyth leaf fails; 0: none */
    bool cancels;
};

static void fill_pattern(struct call *call)
{
    for (unsigned i = 0; i < sizeof call->pattern; i++)
        call->pattern[i] = (uint8_t)(call->depth * 7 + i);
}

static int branch(const struct duet_call *call)
{
    struct call self;
    memcpy(&self, call->args, sizeof self);
    struct tree *tree = self.tree;
    struct call check = self;
    fill_pattern(&check);
    if (memcmp(check.pattern, self.pattern, sizeof self.pattern) != 0 || call->buffer_count)
        atomic_fetch_add(&tree->wrong, 1);
    atomic_fetch_add(&tree->nodes, 1);
    if (self.depth == 0) {
        unsigned leaf = atomic_fetch_add(&tree->leaves, 1) + 1;
        if (leaf == tree->fail_at && tree->cancels)
            duet_cancel(call->runtime);
        return leaf == tree->fail_at && !tree->cancels ? DUET_EIO : DUET_OK;
    }
    for (unsigned i = 0; i < 2; i++) {
        struct call child = {.tree = tree, .depth = self.depth - 1};
        fill_pattern(&child);
        testing_submit(call->runtime, tree->codelet, NULL, 0, &child, sizeof child);
    }
    return DUET_OK;
}

static void grow(struct duet_runtime *core, struct tree *tree, unsigned depth)
{
    struct call root = {.tree = tree, .depth = depth};
    fill_pattern(&root);
    testing_submit(core, tree->codelet, NULL, 0, &root, sizeof root);
}

/* Leaves one by one, until the kernel is known to be short. */
static void warm(struct duet_runtime *core, struct tree *tree)
{
    for (unsigned i = 0; i < WARM; i++)
        grow(core, tree, 0);
    testing_must(core, duet_wait(core));
    tree->leaves = tree->nodes = 0;
    duet_stats_reset(core);
}

static void run(unsigned cpus, const char *policy, bool record, bool private)
{
    struct testing t = {.cpus = cpus, .policy = policy, .record = record};
    struct duet_runtime *core = testing_open(&t);
    struct tree tree = {.codelet = testing_codelet(core, "branch", branch, "cpu")};
    warm(core, &tree);
    for (unsigned round = 1; round <= 3; round++) {
        struct duet_stats stats;
        grow(core, &tree, DEEP);
        testing_must(core, duet_wait(core));
        duet_stats(core, &stats);
        unsigned nodes = (2U << DEEP) - 1;
        g_assert_cmpuint(tree.leaves, ==, round << DEEP);
        g_assert_cmpuint(tree.nodes, ==, round * nodes);
        g_assert_cmpuint(tree.wrong, ==, 0);
        g_assert_cmpuint(stats.tasks, ==, round * nodes);
        g_assert_cmpfloat(stats.busy_s, >, 0);
        /* those that were kept were pushed on no list */
        if (cpus == 1 && private)
            g_assert_cmpuint(stats.pops, <, nodes);
        else if (!private)
            g_assert_cmpuint(stats.pops + stats.steals, ==, round * nodes);
    }
    duet__core_free(core);
}

static void test_alone(void)
{
    run(1, "ws", false, true);
}

static void test_several(void)
{
    run(2, "ws", false, true);
    run(4, "ws", false, true);
}

/* A policy that did not say so sees every task, and a recording has every task. */
static void test_others(void)
{
    run(2, "eager", false, false);
    run(1, "heft", false, false);
    run(2, "ws", true, false);
}

/* The first failure ends the run; what was kept and had not begun does not run any more. */
static void test_failure(void)
{
    for (unsigned cpus = 1; cpus <= 2; cpus++) {
        for (unsigned cancels = 0; cancels < 2; cancels++) {
            struct testing t = {.cpus = cpus};
            struct duet_runtime *core = testing_open(&t);
            struct tree tree = {.codelet = testing_codelet(core, "branch", branch, "cpu")};
            warm(core, &tree);
            tree.fail_at = 10;
            tree.cancels = cancels;
            grow(core, &tree, DEEP);
            int error = duet_wait(core);
            g_assert_cmpint(error, ==, cancels ? DUET_ECANCELED : DUET_EIO);
            if (!cancels)
                g_assert_nonnull(strstr(duet_last_message(core), "branch"));
            g_assert_cmpuint(tree.leaves, <, 1U << DEEP);
            duet__core_free(core);
        }
    }
}

/* Submits leaves that are no children of the task that expands, and then nothing else happens. */
static int expand_to_leaves(struct duet_expansion *expansion, const struct duet_call *call)
{
    struct tree *tree;
    memcpy(&tree, call->args, sizeof tree);
    for (unsigned i = 0; i < 3; i++)
        grow(call->runtime, tree, 0);
    return DUET_OK;
}

/* A worker may be kept tasks outside of kernels, too. */
static void test_expanding(void)
{
    for (unsigned cpus = 1; cpus <= 2; cpus++) {
        struct testing t = {.cpus = cpus};
        struct duet_runtime *core = testing_open(&t);
        struct tree tree = {.codelet = testing_codelet(core, "branch", branch, "cpu")};
        struct tree *to = &tree;
        const struct duet_codelet_desc desc = {.name = "expand", .expand = expand_to_leaves};
        struct duet_codelet *codelet;
        testing_must(core, duet_codelet(core, &desc, &codelet));
        warm(core, &tree);
        for (unsigned round = 1; round <= 20; round++) {
            testing_submit(core, codelet, NULL, 0, &to, sizeof to);
            testing_must(core, duet_wait(core));
            g_assert_cmpuint(tree.leaves, ==, 3 * round);
        }
        duet__core_free(core);
    }
}

/* What is not known to be short goes the common way. */
static int nothing(const struct duet_call *call)
{
    return DUET_OK;
}

static void test_not_kept(void)
{
    struct testing t = {.cpus = 1};
    struct duet_runtime *core = testing_open(&t);
    struct private_deque deque = {.closed = true};
    const struct duet_task_desc desc = {.codelet = testing_codelet(core, "a", nothing, "cpu")};
    g_assert_false(duet__private_keep(core, 0, &deque, &desc));
    deque.closed = false;
    /* never measured: it may be long */
    g_assert_false(duet__private_keep(core, 0, &deque, &desc));
    g_assert_false(deque.open);
    g_assert_false(duet__private_run(core, 0, &deque));
    duet__private_fini(&deque);
    duet__core_free(core);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/real/private/alone", test_alone);
    g_test_add_func("/real/private/several", test_several);
    g_test_add_func("/real/private/others", test_others);
    g_test_add_func("/real/private/failure", test_failure);
    g_test_add_func("/real/private/expanding", test_expanding);
    g_test_add_func("/real/private/not_kept", test_not_kept);
    return g_test_run();
}
