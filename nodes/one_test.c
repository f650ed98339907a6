/* SPDX-License-Identifier: Apache-2.0 */
/* duet/nodes.h on a runtime of one node: it does nothing, and refuses what it would elsewhere. */
#include "runtime/testing.h"

static int increment(const struct duet_call *call)
{
    *(int *)call->buffers[0].data += 1;
    return DUET_OK;
}

struct fixture {
    struct duet_runtime *duet;
    struct duet_codelet *increment;
    struct duet_handle *handle, *part[2];
    int words[2];
};

static void setup(struct fixture *at, const void *data)
{
    struct duet_config config = testing_config(NULL, 1, 0);
    const struct duet_codelet_desc plain = {.expand = NULL};
    config.no_bind = true;
    at->duet = testing_open(&config);
    at->increment = testing_codelet(at->duet, "increment", increment, plain);
    must(at->duet, duet_register_vector(at->duet, at->words, 2, sizeof(int), &at->handle));
    must(at->duet, duet_cut_blocks(at->duet, at->handle, 2, 1, at->part));
}

static void teardown(struct fixture *at, const void *data)
{
    g_assert_cmpint(duet_close(at->duet), ==, DUET_OK);
}

static void test_layout(struct fixture *at, const void *data)
{
    const struct duet_grid grid = duet_node_grid(at->duet);
    g_assert_cmpuint(duet_node(at->duet), ==, 0);
    g_assert_cmpuint(duet_node_count(at->duet), ==, 1);
    g_assert_true(duet_node_here(at->duet, 0) && !duet_node_here(at->duet, 1));
    g_assert_true(grid.rows == 1 && grid.cols == 1);
    g_assert_cmpuint(duet_node_at(at->duet, 7, 9), ==, 0);
}

static void test_owner(struct fixture *at, const void *data)
{
    bool here = false;
    g_assert_cmpuint(duet_owner(at->handle), ==, DUET_NOBODY);
    g_assert_cmpint(duet_fetch(at->duet, at->handle, 0), ==, DUET_EINVAL);
    REFUSED(at->duet, duet_own(at->duet, at->handle, 1), DUET_EINVAL, "node 1");
    g_assert_cmpint(duet_own(at->duet, at->part[0], 0), ==, DUET_EINVAL);
    g_assert_cmpint(duet_own(at->duet, at->handle, duet_node_at(at->duet, 3, 4)), ==, DUET_OK);
    g_assert_cmpuint(duet_owner(at->handle), ==, 0);
    g_assert_cmpint(duet_own(at->duet, at->handle, 0), ==, DUET_EINVAL);
    g_assert_cmpint(duet_fetch(at->duet, at->handle, 0), ==, DUET_OK);
    g_assert_cmpint(duet_migrate(at->duet, at->handle, 0), ==, DUET_OK);
    g_assert_cmpint(duet_acquire_on(at->duet, at->handle, DUET_RW, 1, &here), ==, DUET_EINVAL);
    g_assert_false(here);
    g_assert_cmpint(duet_acquire_on(at->duet, at->handle, DUET_RW, 0, &here), ==, DUET_OK);
    g_assert_true(here);
    at->words[0] = 41;
    g_assert_cmpint(duet_release(at->duet, at->handle), ==, DUET_OK);
}

static void test_where(struct fixture *at, const void *data)
{
    const struct duet_access access = {at->part[0], DUET_RW};
    const unsigned nodes[] = {0, 1};
    at->words[0] = 40;
    for (unsigned i = 0; i < 2; i++) {
        const struct duet_task_extra extra = {.node = &nodes[i]};
        const struct duet_task_desc desc = {.codelet = at->increment,
                                            .accesses = &access,
                                            .access_count = 1,
                                            .extra = &extra};
        g_assert_cmpint(duet_submit(at->duet, &desc), ==, i ? DUET_EINVAL : DUET_OK);
        g_assert_cmpint(duet_insert(at->duet, at->increment, DUET_RW, at->part[0], DUET_NODE,
                                    nodes[i], 0),
                        ==, i ? DUET_EINVAL : DUET_OK);
    }
    TOLD(at->duet, "node 1");
    g_assert_cmpint(duet_unregister(at->duet, at->handle), ==, DUET_OK);
    g_assert_cmpint(at->words[0], ==, 42);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add("/one/layout", struct fixture, NULL, setup, test_layout, teardown);
    g_test_add("/one/owner", struct fixture, NULL, setup, test_owner, teardown);
    g_test_add("/one/where", struct fixture, NULL, setup, test_where, teardown);
    return g_test_run();
}
