/* SPDX-License-Identifier: Apache-2.0 */
/* Failures end all nodes with one message; what is not for several nodes is refused with a line. */
#include <semaphore.h>

#include "nodes/testing_vectors.h"

static sem_t refused_second;

static int fails(const struct duet_call *call)
{
    return duet_fail(call->message, DUET_ETASK, "on purpose");
}

/* Everybody waits for node 2, whose task fails. */
static void fail(struct node *node)
{
    const struct codelets make = make_codelets(node->duet);
    struct duet_codelet *bad = codelet(node->duet, "bad", fails);
    uint64_t words[2][WORDS] = {{0}};
    struct duet_handle *a = vector(node, 2, words[0]), *b = vector(node, 0, words[1]);
    for (unsigned i = 0; i < 50; i++)
        submit(node, make.add, DUET_RW, a, 1, i % 4);
    submit(node, bad, DUET_RW, a, 0, 2);
    for (unsigned i = 0; i < 50; i++)
        submit(node, make.add, DUET_RW, i % 2 ? a : b, 1, i % 4);
    if (node->number == 3) /* one waits for data, the others for all */
        g_assert_cmpint(duet_acquire_on(node->duet, a, DUET_R, 3, NULL), ==, DUET_ETASK);
    else
        g_assert_cmpint(duet_wait(node->duet), ==, DUET_ETASK);
    const char *message = duet_last_message(node->duet);
    g_assert_nonnull(strstr(message, "on purpose"));
    g_assert_true(node->number == 2 || g_str_has_prefix(message, "node 2: "));
    g_assert_cmpint(duet_unregister(node->duet, b), ==, DUET_ETASK);
    g_assert_cmpint(duet_recover(node->duet), ==, DUET_EINVAL);
}

static void test_fail(void)
{
    for (uint64_t seed = 0; seed < 5; seed++) {
        OWNED(fabric_free) struct fabric *fabric = fabric_new(4, seed);
        run_nodes(fabric, (struct duet_grid){2, 2}, 1, fail, NULL);
        g_assert_cmpint(fabric->error, ==, DUET_ETASK);
        g_assert_cmpuint(fabric->failures, ==, 1);
        g_assert_cmpuint(fabric->failed_node, ==, 2);
    }
}

#define refused(node, call, why) REFUSED((node)->duet, call, DUET_EINVAL, why)

/* A refused call has no effect, in any process. */
static void refuse(struct node *node)
{
    const struct codelets make = make_codelets(node->duet);
    struct duet_runtime *duet = node->duet;
    uint64_t words[2][WORDS] = {{0}}, own_words[WORDS] = {0};
    const uint64_t one = 1;
    struct duet_handle *a = vector(node, 0, words[0]), *b = vector(node, 1, words[1]), *own,
                       *parts[2];
    struct duet_ref *ref = NULL, *after[1];
    ok(node, duet_register_vector(duet, own_words, WORDS, sizeof one, &own));
    submit(node, make.add, DUET_RW, own, 5, DUET_NOBODY); /* in every process */
    struct duet_access accesses[2] = {{a, DUET_R}, {own, DUET_RW}};
    struct duet_task_extra extra = {.ref = &ref};
    struct duet_task_desc desc = {.codelet = make.combine, .accesses = accesses, .access_count = 2};
    refused(node, duet_submit(duet, &desc), "nobody owns");
    accesses[1] = (struct duet_access){b, DUET_RW};
    desc.extra = &extra;
    refused(node, duet_submit(duet, &desc), "reference");
    g_assert_null(ref);
    /* a task that every process has may have one */
    const struct duet_access mine = {own, DUET_RW};
    const struct duet_task_desc task = {.codelet = make.add,
                                        .accesses = &mine,
                                        .access_count = 1,
                                        .args = &one,
                                        .args_bytes = sizeof one,
                                        .extra = &extra};
    ok(node, duet_submit(duet, &task));
    after[0] = ref;
    extra = (struct duet_task_extra){.after = after, .after_count = 1};
    refused(node, duet_submit(duet, &desc), "comes after");
    ok(node, duet_submit(duet, &task));
    ok(node, duet_ref_wait(duet, ref));
    duet_ref_free(ref);
    desc.extra = NULL;
    accesses[0] = (struct duet_access){a, (enum duet_mode)5};
    refused(node, duet_submit(duet, &desc), "mode");
    accesses[0] = (struct duet_access){a, DUET_REDUCE};
    refused(node, duet_submit(duet, &desc), "duet_set_reduction");
    refused(node, duet_insert(duet, make.init, DUET_W, a, DUET_NODE, 2, 0), "node 2");
    ok(node, duet_cut_blocks(duet, a, 2, 1, parts));
    accesses[0] = (struct duet_access){parts[0], DUET_R};
    refused(node, duet_submit(duet, &desc), "part");
    refused(node, duet_acquire(duet, parts[0], DUET_R), "part");
    refused(node, duet_own(duet, own, 0), "used already");
    refused(node, duet_set_reduction(duet, parts[0], make.init, make.combine), "part");
    refused(node, duet_set_reduction(duet, a, NULL, make.combine), "duet_set_reduction needs");
    /* a hint that one machine cannot follow */
    g_assert_cmpint(duet_prefetch(duet, a, 99), ==, node->number == 0 ? DUET_EINVAL : DUET_OK);
    refused(node, duet_own(duet, a, 1), "owner");
    refused(node, duet_fetch(duet, own, 0), "duet_own");
    refused(node, duet_acquire_on(duet, b, DUET_COMMUTE, 0, NULL), "mode");
    submit(node, make.add, DUET_RW, a, 1, DUET_NOBODY);
    submit(node, make.look, DUET_R, a, 1, 1);
    ok(node, duet_unregister(duet, own));
    g_assert_cmpuint(own_words[0], ==, 7);
    ok(node, duet_wait(duet));
}

static void test_refuse(void)
{
    OWNED(fabric_free) struct fabric *fabric = fabric_new(2, 1);
    run_nodes(fabric, (struct duet_grid){1, 2}, 0, refuse, NULL);
    g_assert_cmpuint(fabric->messages, ==, 1);
}

/* A reduction that one machine alone cannot do: others would wait for its sums. */
static void reduce_there(struct node *node)
{
    const struct codelets make = make_codelets(node->duet);
    const struct duet_implementation gpu = {.arch = "cuda", .run = clear};
    const struct duet_codelet_desc desc = {.name = "gpu",
                                           .implementations = &gpu,
                                           .implementation_count = 1};
    struct duet_codelet *init = make.init;
    uint64_t words[WORDS] = {0};
    struct duet_handle *a = vector(node, 1, words);
    if (node->number == 2)
        g_assert_cmpint(duet_register_codelet(node->duet, &desc, &init), ==, DUET_OK);
    int error = duet_set_reduction(node->duet, a, init, make.combine);
    g_assert_cmpint(error, ==, node->number == 2 ? DUET_ENOWORKER : DUET_OK);
    REFUSED(node->duet, duet_wait(node->duet), DUET_ENOWORKER, "kernel gpu");
}

static void test_reduce_there(void)
{
    OWNED(fabric_free) struct fabric *fabric = fabric_new(3, 1);
    run_nodes(fabric, (struct duet_grid){1, 3}, 0, reduce_there, NULL);
    g_assert_cmpuint(fabric->failed_node, ==, 2);
}

/* A task that the node where it runs refuses: others cannot know that, so the run ends. */
static void refuse_there(struct node *node)
{
    const struct codelets make = make_codelets(node->duet);
    uint64_t words[WORDS] = {0};
    struct duet_handle *a = vector(node, 1, words);
    const struct duet_access access = {a, DUET_RW};
    const struct duet_task_desc desc = {.codelet = make.add,
                                        .accesses = &access,
                                        .access_count = 1,
                                        .args_bytes = 8}; /* at no address */
    g_assert_cmpint(duet_submit(node->duet, &desc), ==, node->number == 1 ? DUET_EINVAL : DUET_OK);
    REFUSED(node->duet, duet_wait(node->duet), DUET_EINVAL, "at no address");
}

static void test_refuse_there(void)
{
    OWNED(fabric_free) struct fabric *fabric = fabric_new(3, 1);
    run_nodes(fabric, (struct duet_grid){1, 3}, 0, refuse_there, NULL);
    g_assert_cmpuint(fabric->failed_node, ==, 1);
}

static bool waits(struct fabric *fabric)
{
    pthread_mutex_lock(&fabric->lock);
    bool one = fabric->meeting == 1;
    pthread_mutex_unlock(&fabric->lock);
    return one;
}

/* While the first node's thread waits for the second one, another thread makes a call there. */
static void *second_thread(void *arg)
{
    const struct node *node = arg;
    while (!waits(node->fabric))
        (void)sched_yield();
    refused(node, duet_wait(node->duet), "two threads");
    (void)sem_post(&refused_second);
    return NULL;
}

static void two_threads(struct node *node)
{
    pthread_t second;
    if (node->number)
        (void)sem_wait(&refused_second);
    else
        g_assert_cmpint(pthread_create(&second, NULL, second_thread, node), ==, 0);
    ok(node, duet_wait(node->duet));
    if (!node->number)
        (void)pthread_join(second, NULL);
}

static void test_two_threads(void)
{
    OWNED(fabric_free) struct fabric *fabric = fabric_new(2, 1);
    (void)sem_init(&refused_second, 0, 0);
    run_nodes(fabric, (struct duet_grid){1, 2}, 0, two_threads, NULL);
    (void)sem_destroy(&refused_second);
}

TEST_MAIN(test_fail, test_refuse, test_refuse_there, test_reduce_there, test_two_threads)
