/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of core/machine.c and core/error.c: each sentence of machine.h has a machine that breaks
 * it. */
#include <duet/machine.h>

#include <math.h>
#include <string.h>

#include <glib.h>

/* A host with one core, two GPUs behind one link, direct copies between them. */
static void make(struct duet_machine *m)
{
    static const char *const nodes[] = {"host", "gpu0", "gpu1"};
    g_assert_cmpint(duet_machine_init(m, 2, 3, 3, 2), ==, DUET_OK);
    g_strlcpy(m->name, "toy", DUET_NAME_MAX);
    g_strlcpy(m->archs[0].name, "core", DUET_NAME_MAX);
    g_strlcpy(m->archs[0].backend, "cpu", DUET_NAME_MAX);
    g_strlcpy(m->archs[1].name, "card", DUET_NAME_MAX);
    g_strlcpy(m->archs[1].backend, "cuda", DUET_NAME_MAX);
    for (unsigned i = 0; i < 3; i++) {
        g_strlcpy(m->nodes[i].name, nodes[i], DUET_NAME_MAX);
        g_strlcpy(m->workers[i].name, i == 0 ? "cpu0" : nodes[i], DUET_NAME_MAX);
        m->nodes[i].capacity_bytes = i == 0 ? 0 : 1 << 20;
        m->workers[i].arch = i > 0;
        m->workers[i].node = i;
        m->workers[i].window = 1;
    }
    g_strlcpy(m->links[0].name, "in", DUET_NAME_MAX);
    g_strlcpy(m->links[1].name, "out", DUET_NAME_MAX);
    m->links[0].bandwidth_Bps = 6e9;
    m->links[1].bandwidth_Bps = 5e9;
    for (unsigned i = 0; i < 9; i++) {
        if (i / 3 == i % 3)
            continue;
        m->routes[i] = (struct duet_route){.direct = true, .count = 1, .latency_s = 1e-5};
        m->routes[i].links[0] = i / 3 > 0;
        m->routes[i].bandwidth_Bps = m->links[i / 3 > 0].bandwidth_Bps;
    }
}

static void check(struct duet_machine *m, const char *fragment)
{
    if (fragment == NULL) {
        WORKS(duet_machine_check(m, hear()));
    } else {
        FAILS(duet_machine_check(m, hear()), DUET_EINVAL, fragment);
        g_assert_cmpint(duet_machine_check(m, NULL), ==, DUET_EINVAL);
    }
    duet_machine_fini(m);
}

static void test_init(void)
{
    struct duet_machine m;
    g_assert_cmpint(duet_machine_init(&m, 0, 1, 1, 0), ==, DUET_EINVAL);
    duet_machine_fini(&m);
    g_assert_cmpint(duet_machine_init(&m, 1, 1, 1, 70000), ==, DUET_EINVAL);
    g_assert_cmpint(duet_machine_init(&m, 1, 2, 3, 0), ==, DUET_OK);
    g_assert_cmpuint(m.worker_count, ==, 3);
    g_assert_false(duet_machine_route(&m, 1, 0)->direct);
    duet_machine_fini(&m);
    duet_machine_fini(&m);
    g_assert_null(m.routes);
}

static void test_good(void)
{
    struct duet_machine m;
    make(&m);
    g_assert_cmpfloat(duet_machine_route(&m, 1, 2)->bandwidth_Bps, ==, 5e9);
    m.routes[1 * 3 + 2] = (struct duet_route){.direct = false}; /* gpu0 to gpu1 through the host */
    check(&m, NULL);
}

static void test_copy(void)
{
    struct duet_machine m, copy;
    make(&m);
    m.costs = (struct duet_costs){1, 2, 3, 4, 5, 6, 7, 8, 9, 10};
    m.sharing = (struct duet_sharing){1 << 25, 2e10};
    m.cores = 3;
    m.first_waits = true;
    g_assert_cmpint(duet_machine_copy(&copy, &m), ==, DUET_OK);
    g_assert_cmpstr(copy.name, ==, "toy");
    g_assert_cmpstr(copy.workers[2].name, ==, "gpu1");
    g_assert_cmpfloat(duet_machine_route(&copy, 1, 0)->bandwidth_Bps, ==, 5e9);
    g_assert_cmpfloat(copy.costs.submit_s, ==, 1);
    g_assert_cmpfloat(copy.costs.event_s, ==, 7);
    g_assert_cmpfloat(copy.costs.spin_s, ==, 9);
    g_assert_cmpuint(copy.sharing.shared_bytes, ==, 1 << 25);
    g_assert_cmpfloat(copy.sharing.bandwidth_Bps, ==, 2e10);
    g_assert_cmpuint(copy.cores, ==, 3);
    g_assert_true(copy.first_waits);
    duet_machine_fini(&m);
    check(&copy, NULL);
}

/* Checks that a good machine, in the variable m, is refused like that after this statement. */
#define BAD(statement, says)                                                                       \
    do {                                                                                           \
        make(&m);                                                                                  \
        statement;                                                                                 \
        check(&m, says);                                                                           \
    } while (0)

static void test_names(void)
{
    struct duet_machine m;
    BAD(memset(m.nodes[1].name, 'x', DUET_NAME_MAX), "node 1");
    BAD(g_strlcpy(m.nodes[2].name, "gpu0", DUET_NAME_MAX), "two nodes are named gpu0");
    BAD(g_strlcpy(m.links[1].name, "in", DUET_NAME_MAX), "two links are named in");
    BAD(m.workers[0].name[0] = '\0', "worker 0");
    BAD(m.archs[1].backend[0] = '\0', "architecture card");
    BAD(memset(m.name, 'x', DUET_NAME_MAX), "machine");
}

static void test_indices(void)
{
    struct duet_machine m;
    BAD(m.workers[1].arch = 2, "worker gpu0: no architecture 2");
    BAD(m.workers[1].node = 3, "worker gpu0: no node 3");
    BAD(m.routes[1].links[0] = 2, "route host to gpu0: no link 2");
    BAD(m.routes[1].count = 0, "crosses 0 links");
    BAD(m.routes[1].count = DUET_ROUTE_LINKS + 1, "crosses 9 links");
    make(&m);
    m.workers[0].node = 1;
    m.workers[1].node = 0;
    check(&m, "CPU workers come before");
    BAD(m.workers[2].window = 0, "worker gpu1: the window");
    make(&m);
    m.workers[2].window = m.workers[2].window_short = 2;
    check(&m, NULL);
    make(&m);
    m.workers[2].window = 3;
    m.workers[2].window_short = 2;
    check(&m, "worker gpu1: the window of short tasks must be 0 (as the window) or at least");
    BAD(m.workers[2].window_short = DUET_WINDOW_MAX + 1,
        "worker gpu1: a window of 1025, at most 1024 is possible");
}

static void test_figures(void)
{
    struct duet_machine m;
    BAD(m.nodes[0].capacity_bytes = 1, "node host");
    BAD(m.nodes[1].capacity_bytes = 0, "node gpu0: a device needs a capacity");
    BAD(m.links[0].bandwidth_Bps = 0, "link in");
    BAD(m.links[0].bandwidth_Bps = INFINITY, "link in");
    BAD(m.routes[3].latency_s = NAN, "route gpu0 to host: the latency");
    BAD(m.routes[3].bandwidth_Bps = 6e9, "narrowest link");
    BAD(m.routes[3].bandwidth_Bps = NAN, "narrowest link");
    BAD(m.routes[2].direct = false, "route host to gpu1: every node needs");
    BAD(m.costs.steal_s = -1, "cost steal_s");
    BAD(m.costs.event_s = NAN, "cost event_s");
    BAD(m.costs.wake_s = -1, "cost wake_s");
    BAD(m.costs.foreign_s = INFINITY, "cost foreign_s");
    BAD(m.sharing.bandwidth_Bps = -1, "sharing: the bandwidth");
    memset(&m, 0, sizeof(m));
    check(&m, "at least one");
}

static void test_errors(void)
{
    g_assert_cmpstr(duet_strerror(0), ==, "success");
    g_assert_cmpstr(duet_strerror(DUET_EPARSE), ==, "malformed input");
    g_assert_cmpstr(duet_strerror(12345), ==, "unknown error");
    g_assert_cmpint(duet_fail(hear(), DUET_EIO, "%0600d", 7), ==, DUET_EIO);
    g_assert_cmpuint(strlen(heard()), ==, DUET_MESSAGE_MAX - 1);
    g_assert_cmpint(duet_fail(NULL, DUET_EIO, "lost"), ==, DUET_EIO);
}

TEST_MAIN(test_init, test_good, test_copy, test_names, test_indices, test_figures, test_errors)
