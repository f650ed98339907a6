/* SPDX-License-Identifier: Apache-2.0 */
/* Building a graph: names, the order of tasks, cycles. */
#include "workloads/files/testing.h"

static void test_kernels(void)
{
    struct duet__graph graph;
    char name[16];
    duet__graph_init(&graph);
    g_assert_cmpuint(duet__graph_kernel(&graph, "gemm"), ==, 0);
    g_assert_cmpuint(duet__graph_kernel(&graph, ""), ==, 1);
    g_assert_cmpstr(duet__graph_kernel_name(&graph, 1), ==, "task");
    g_assert_cmpuint(duet__graph_kernel(&graph, "gemm"), ==, 0);
    /* a long name is replaced by its end, from a whole character on */
    g_assert_cmpuint(duet__graph_kernel(&graph, "\xc3\xa4"
                                                "123456789012345678901234567890"),
                     ==, 2);
    g_assert_cmpstr(duet__graph_kernel_name(&graph, 2), ==, "123456789012345678901234567890");
    g_assert_cmpuint(duet__graph_kernel(&graph, "FIRST_PART.SECOND_PART.THIRD.PART"), ==, 3);
    g_assert_cmpstr(duet__graph_kernel_name(&graph, 3), ==, "SECOND_PART.THIRD.PART");
    for (int i = 0; i < 2 * DUET__GRAPH_KERNELS_MAX; i++) {
        g_snprintf(name, sizeof name, "k%d", i);
        (void)duet__graph_kernel(&graph, name);
    }
    g_assert_cmpuint(graph.kernels->len, ==, DUET__GRAPH_KERNELS_MAX);
    g_assert_cmpuint(duet__graph_kernel(&graph, "another"), ==, DUET__GRAPH_KERNELS_MAX - 1);
    duet__graph_fini(&graph);
    duet__graph_fini(&graph);
}

/* Orders tasks with a name, a time and an access of their own, by these edges. */
static int ordered(struct duet__graph *graph, unsigned count, const struct duet__graph_edge *edges,
                   guint edge_count, struct duet_message *message)
{
    g_autoptr(GArray) all = g_array_new(FALSE, FALSE, sizeof *edges);
    duet__graph_init(graph);
    (void)duet__graph_arch(graph, "cpu");
    for (unsigned i = 0; i < count; i++) {
        const char name[] = {(char)('a' + i), 0};
        duet__graph_add(graph, duet__graph_kernel(graph, "k"))->name =
            duet__graph_text(graph, name);
        duet__graph_seconds(graph, i)[0] = i;
        duet__graph_add_access(graph, duet__graph_add_data(graph, i, name, true), DUET_RW);
    }
    g_array_append_vals(all, edges, edge_count);
    return duet__graph_order(graph, all, "f.dot", message);
}

static void test_order(void)
{
    /* a and c come after d; c is before d in the file, and b is independent */
    static const struct duet__graph_edge edges[] = {{3, 0, 0}, {3, 2, 0}, {3, 0, 0}, {0, 2, 0}};
    static const char *const names[] = {"d", "a", "b", "c"};
    OWNED(duet__graph_fini) struct duet__graph graph;
    size_t count;
    g_assert_cmpint(ordered(&graph, 4, edges, G_N_ELEMENTS(edges), NULL), ==, 0);
    for (unsigned i = 0; i < 4; i++) {
        const char *name = duet__graph_task(&graph, i)->name;
        const struct duet__graph_access *access = duet__graph_accesses(&graph, i, &count);
        g_assert_cmpstr(name, ==, names[i]);
        g_assert_cmpfloat(duet__graph_seconds(&graph, i)[0], ==, *name - 'a');
        g_assert_cmpuint(count, ==, 1);
        g_assert_cmpstr(duet__graph_datum(&graph, access->data)->name, ==, name);
    }
    g_assert_cmpuint(duet__graph_after(&graph, 1, &count)[0], ==, 0);
    g_assert_cmpuint(count, ==, 1);
    (void)duet__graph_after(&graph, 2, &count);
    g_assert_cmpuint(count, ==, 0);
    g_assert_cmpuint(duet__graph_after(&graph, 3, &count)[0], ==, 0);
    g_assert_cmpuint(duet__graph_after(&graph, 3, &count)[1], ==, 1);
    g_assert_cmpuint(count, ==, 2);
}

static void test_cycles(void)
{
    static const struct duet__graph_edge self[] = {{0, 1, 0}, {1, 1, 0}},
                                         three[] = {{0, 1, 0}, {1, 2, 0}, {2, 3, 0}, {3, 1, 0}},
                                         six[] = {{0, 1, 0}, {1, 2, 0}, {2, 3, 0},
                                                  {3, 4, 0}, {4, 5, 0}, {5, 0, 0}};
    struct duet__graph graph;
    g_assert_cmpint(ordered(&graph, 2, self, 2, hear()), ==, DUET_EPARSE);
    g_assert_cmpstr(heard(), ==, "f.dot: a cycle, no order of these is possible: task 'b'");
    duet__graph_fini(&graph);
    g_assert_cmpint(ordered(&graph, 4, three, 4, hear()), ==, DUET_EPARSE);
    g_assert_true(g_str_has_suffix(heard(), "task 'c', then task 'd', then task 'b'"));
    duet__graph_fini(&graph);
    g_assert_cmpint(ordered(&graph, 6, six, 6, hear()), ==, DUET_EPARSE);
    g_assert_true(g_str_has_suffix(heard(), " and 2 more"));
    duet__graph_fini(&graph);
}

/* Random graphs whose tasks are in a wrong order get one that every edge agrees with. */
static void test_random_orders(void)
{
    for (guint32 seed = 0; seed < 50; seed++) {
        enum { COUNT = 20 };
        g_autoptr(GRand) random = g_rand_new_with_seed(seed);
        struct duet__graph_edge edges[60];
        uint32_t rank[COUNT], place[COUNT];
        OWNED(duet__graph_fini) struct duet__graph graph;
        for (uint32_t i = 0; i < COUNT; i++)
            rank[i] = i;
        for (uint32_t i = COUNT; i-- > 1;) {
            const uint32_t k = g_rand_int(random) % (i + 1), swapped = rank[i];
            rank[i] = rank[k];
            rank[k] = swapped;
        }
        for (size_t i = 0; i < G_N_ELEMENTS(edges); i++) {
            const uint32_t to = 1 + g_rand_int(random) % (COUNT - 1);
            edges[i] = (struct duet__graph_edge){rank[g_rand_int(random) % to], rank[to], 0};
        }
        g_assert_cmpint(ordered(&graph, COUNT, edges, G_N_ELEMENTS(edges), NULL), ==, 0);
        for (uint32_t i = 0; i < COUNT; i++)
            place[duet__graph_task(&graph, i)->name[0] - 'a'] = i;
        for (size_t i = 0; i < G_N_ELEMENTS(edges); i++) {
            size_t count, k = 0;
            const uint32_t *after = duet__graph_after(&graph, place[edges[i].to], &count);
            while (k < count && after[k] != place[edges[i].from])
                k++;
            g_assert_cmpuint(k, <, count);
            g_assert_cmpuint(place[edges[i].from], <, place[edges[i].to]);
        }
    }
}

TEST_MAIN(test_kernels, test_order, test_cycles, test_random_orders)
