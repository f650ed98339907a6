/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Nested tasks that a worker keeps to itself: all of them run once, the others get theirs, and a
 * recording has them and changes nothing.
 */
#include "real/testing.h"

enum { WARM = 100, DEEP = 12 };

static const double USUAL_S = 2e-6; /* of the kernel, at most; what is kept takes 10 us */

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
    unsigned fail_at; /* the how manyth leaf fails, and later ones wait for that; 0: none */
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
        while (tree->fail_at && leaf > tree->fail_at && !duet__failed(call->runtime))
            testing_sleep(1e-4);
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

/* Leaves one by one, until the kernel is known to be short. How long they took, in seconds. */
static double warm(struct duet_runtime *core, struct tree *tree)
{
    struct duet_stats stats;
    for (unsigned i = 0; i < WARM; i++)
        grow(core, tree, 0);
    testing_must(core, duet_wait(core));
    tree->leaves = tree->nodes = 0;
    duet_stats(core, &stats);
    duet_stats_reset(core);
    return stats.busy_s;
}

static void run(unsigned cpus, const char *policy, bool record, bool keeps)
{
    struct testing t = {.cpus = cpus, .policy = policy, .record = record};
    OWNED(testing_close) struct duet_runtime *core = testing_open(&t);
    struct tree tree = {.codelet = testing_codelet(core, "branch", branch, "cpu")};
    double warm_s = warm(core, &tree);
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
        /* those that were kept were pushed on no list; under a sanitizer, and where the thread is
           preempted, the kernel may take longer than what is kept */
        g_assert_cmpuint(stats.pops + stats.steals, <=, round * nodes);
        if (cpus == 1 && keeps && warm_s + stats.busy_s < USUAL_S * (double)stats.tasks)
            g_assert_cmpuint(stats.pops, <, nodes);
        else if (!keeps)
            g_assert_cmpuint(stats.pops + stats.steals, ==, round * nodes);
    }
}

static void test_alone(void)
{
    run(1, "ws", false, true);
    run(1, "ws", true, true);
}

static void test_several(void)
{
    run(2, "ws", false, true);
    run(4, "ws", false, true);
    run(2, "ws", true, true);
}

/* A policy that did not say so sees every task. */
static void test_others(void)
{
    run(2, "eager", false, false);
    run(1, "heft", false, false);
}

/* The first failure ends the run; what was kept and had not begun does not run any more. */
static void test_failure(void)
{
    for (unsigned cpus = 1; cpus <= 2; cpus++) {
        for (unsigned cancels = 0; cancels < 2; cancels++) {
            struct testing t = {.cpus = cpus};
            OWNED(testing_close) struct duet_runtime *core = testing_open(&t);
            struct tree tree = {.codelet = testing_codelet(core, "branch", branch, "cpu")};
            (void)warm(core, &tree);
            tree.fail_at = 10;
            tree.cancels = cancels;
            grow(core, &tree, DEEP);
            int error = duet_wait(core);
            g_assert_cmpint(error, ==, cancels ? DUET_ECANCELED : DUET_EIO);
            if (!cancels)
                TOLD(core, "branch");
            g_assert_cmpuint(tree.leaves, <, 1U << DEEP);
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
        OWNED(testing_close) struct duet_runtime *core = testing_open(&t);
        struct tree tree = {.codelet = testing_codelet(core, "branch", branch, "cpu")};
        struct tree *to = &tree;
        const struct duet_codelet_desc desc = {.name = "expand", .expand = expand_to_leaves};
        struct duet_codelet *codelet;
        testing_must(core, duet_register_codelet(core, &desc, &codelet));
        (void)warm(core, &tree);
        for (unsigned round = 1; round <= 20; round++) {
            testing_submit(core, codelet, NULL, 0, &to, sizeof to);
            testing_must(core, duet_wait(core));
            g_assert_cmpuint(tree.leaves, ==, 3 * round);
        }
    }
}

/* ------------------------------------------------------------------------------------------- */
/* Recordings */

enum { ORDERED = 200 };

/* Order of a recursion's tasks, by their numbers in it. */
struct order {
    const struct duet_codelet *codelet;
    unsigned ran[ORDERED], count;
};

struct ordered {
    struct order *order;
    unsigned number;
};

static int note(const struct duet_call *call)
{
    struct ordered self;
    memcpy(&self, call->args, sizeof self);
    struct order *order = self.order;
    g_assert_cmpuint(order->count, <, ORDERED);
    order->ran[order->count++] = self.number;
    for (unsigned i = 1; i <= 2; i++) {
        struct ordered child = {.order = order, .number = 2 * self.number + i};
        if (child.number < ORDERED)
            testing_submit(call->runtime, order->codelet, NULL, 0, &child, sizeof child);
    }
    return DUET_OK;
}

/* Runs tasks that submit nothing, until the kernel is known to be short. */
static void learn(struct duet_runtime *core, struct order *order)
{
    for (unsigned i = 0; i < WARM; i++) {
        struct ordered last = {.order = order, .number = ORDERED - 1};
        testing_submit(core, order->codelet, NULL, 0, &last, sizeof last);
        testing_must(core, duet_wait(core));
        order->count = 0;
    }
}

/* The records of the recursion: all that ran since the date, each once, one after another. */
static void check_records(struct duet_runtime *core, double since_s)
{
    g_autofree struct duet_event *events = NULL;
    size_t count, found = 0;
    testing_must(core, duet_trace_events(core, &events, &count));
    double end_s = 0;
    for (size_t i = 0; i < count; i++) {
        if (events[i].start_s < since_s)
            continue;
        found++;
        g_assert_cmpfloat(events[i].start_s, >=, end_s);
        g_assert_cmpfloat(events[i].start_s, >=, events[i].ready_s);
        g_assert_cmpfloat(events[i].ready_s, >=, events[i].submit_s);
        g_assert_cmpfloat(events[i].submit_s, >=, since_s);
        g_assert_false(events[i].failed);
        end_s = events[i].end_s;
        for (size_t j = 0; j < i; j++)
            g_assert_cmpuint(events[j].id, !=, events[i].id);
    }
    g_assert_cmpuint(found, ==, ORDERED);
}

/* Returns the number of tasks that the worker has kept to itself. */
static uint64_t run_in_order(bool record, struct order *order)
{
    struct testing t = {.cpus = 1, .policy = "ws", .record = record};
    struct duet_runtime *core = testing_open(&t);
    struct duet_stats before, after;
    order->codelet = testing_codelet(core, "note", note, "cpu");
    learn(core, order);
    duet_stats(core, &before);
    double since_s = duet_now(core);
    struct ordered root = {.order = order, .number = 0};
    testing_submit(core, order->codelet, NULL, 0, &root, sizeof root);
    testing_must(core, duet_wait(core));
    duet_stats(core, &after);
    g_assert_cmpuint(order->count, ==, ORDERED);
    g_assert_cmpuint(after.tasks - before.tasks, ==, ORDERED);
    if (record)
        check_records(core, since_s);
    duet__core_free(core);
    return ORDERED - (after.pops - before.pops);
}

/* Traced tasks are those that ran. */
static void test_recorded(void)
{
    /* another process may have made the kernel look long */
    for (unsigned i = 0; i < 20; i++) {
        struct order orders[2] = {{0}};
        uint64_t kept = run_in_order(false, &orders[0]), with = run_in_order(true, &orders[1]);
        if (kept == ORDERED - 1 && with == ORDERED - 1) {
            g_assert_cmpmem(orders[0].ran, sizeof orders[0].ran, orders[1].ran,
                            sizeof orders[1].ran);
            return;
        }
    }
    g_test_skip("kernels of nothing take long here");
}

TEST_MAIN(test_alone, test_several, test_others, test_failure, test_expanding, test_recorded)
