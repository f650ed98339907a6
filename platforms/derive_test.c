/* SPDX-License-Identifier: Apache-2.0 */
/* Derivation of machines: golden figures of idgraf, options, hypothetical GPUs. */
#include "platforms/testing.h"

static void assert_route(const struct duet_machine *m, const char *from, const char *to,
                         double bandwidth, double latency, unsigned links)
{
    const struct duet_route *r = route_of(m, from, to);
    g_assert_true(r->direct);
    g_assert_cmpfloat(r->bandwidth_Bps, ==, bandwidth);
    g_assert_cmpfloat(r->latency_s, ==, latency);
    g_assert_cmpuint(r->count, ==, links);
}

static bool crosses(const struct duet_machine *m, const char *from, const char *to,
                    const char *link)
{
    const struct duet_route *r = route_of(m, from, to);
    for (unsigned i = 0; i < r->count; i++)
        if (strcmp(m->links[r->links[i]].name, link) == 0)
            return true;
    return false;
}

static void test_idgraf_alone(void)
{
    OWNED(free_platform) struct duet__platform *p = load("idgraf");
    OWNED(duet_machine_fini) struct duet_machine m = build(p, 4, 8);
    assert_route(&m, "host", "gpu0", 5985.2e6, 11.019e-6, 1);
    assert_route(&m, "host", "gpu1", 5985.2e6, 10.962e-6, 1); /* 5982.9 as measured alone: within
                                                                 0.5 % */
    assert_route(&m, "host", "gpu7", 6025.8e6, 11.064e-6, 1);
    assert_route(&m, "gpu2", "host", 6468.9e6, 11.869e-6, 1);
    assert_route(&m, "gpu3", "host", 6380.0e6, 11.895e-6, 2); /* a limit of its own */
    assert_route(&m, "gpu5", "host", 6521.0e6, 12.098e-6, 1);
    assert_route(&m, "gpu0", "gpu1", 6634.875e6, 1.787675e-05, 1);
    assert_route(&m, "gpu1", "gpu0", 6634.8e6, 1.92865e-05, 1);
    assert_route(&m, "gpu0", "gpu2", 5292.138e6, 1.850387e-05, 3);
    assert_route(&m, "gpu0", "gpu4", 3075.225e6, 2.756937e-05, 3); /* to the other socket, which is
                                                                      slower */
    assert_route(&m, "gpu4", "gpu0", 3801.975e6, 2.668131e-05, 3); /* back from there */
}

static void test_idgraf_sharing(void)
{
    OWNED(free_platform) struct duet__platform *p = load("idgraf");
    OWNED(duet_machine_fini) struct duet_machine m = build(p, 4, 8);
    g_assert_true(crosses(&m, "host", "gpu0", "pcie0-to-device"));
    g_assert_true(crosses(&m, "host", "gpu1", "pcie0-to-device"));
    g_assert_true(crosses(&m, "host", "gpu2", "pcie1-to-device"));
    g_assert_true(crosses(&m, "gpu7", "host", "pcie3-to-host"));
    g_assert_false(crosses(&m, "gpu0", "gpu1", "pcie0-to-host")); /* stays inside its switch */
    g_assert_true(crosses(&m, "gpu0", "gpu4", "pcie0-to-host"));
    g_assert_true(crosses(&m, "gpu0", "gpu4", "pcie2-to-device"));
    g_assert_true(crosses(&m, "gpu0", "gpu4", "peer_remote-up"));
    g_assert_true(crosses(&m, "gpu4", "gpu0", "peer_remote-down"));
    for (unsigned i = 0; i < m.link_count; i++)
        g_assert_cmpint(m.links[i].per_copy, ==,
                        g_str_has_prefix(m.links[i].name, "peer_") ||
                            strcmp(m.links[i].name, "pcie-gpu3-to-host") == 0);
    g_assert_cmpuint(m.link_count, ==, 8 + 1 + 6);
}

/* Limits that all GPUs of a socket share, and all of the machine. */
static void test_limits(void)
{
    static const struct duet__link_override half[] = {{"hub", 0, 0.5}}, same[] = {{"all", 4e9, 0}};
    struct duet__platform_options options = {.cpus = 4, .gpus = 8, .links = half, .link_count = 1};
    OWNED(free_platform) struct duet__platform *p = load("idgraf");
    struct duet_machine m;
    g_autofree char *kept = NULL;
    p->sockets[1].hub = (struct duet__platform_limits){.to_device_Bps = 10e9};
    p->host = (struct duet__platform_limits){20e9, 30e9};
    m = build(p, 4, 8);
    assert_route(&m, "host", "gpu0", 5985.2e6, 11.019e-6, 2);
    assert_route(&m, "host", "gpu4", 6017.3e6, 11.006e-6, 3);
    assert_route(&m, "gpu4", "host", 6521.0e6, 12.104e-6, 1); /* four switches give 26 GB/s */
    g_assert_true(crosses(&m, "host", "gpu0", "host-to-device"));
    g_assert_true(crosses(&m, "host", "gpu7", "hub1-to-device"));
    g_assert_true(crosses(&m, "gpu0", "gpu4", "hub1-to-device")); /* through both hubs */
    g_assert_false(crosses(&m, "gpu4", "gpu0", "hub1-to-device"));
    g_assert_false(crosses(&m, "gpu4", "gpu6", "hub1-to-device")); /* between its own switches */
    duet_machine_fini(&m);
    m = build(p, 4,
              3); /* one GPU of the socket in use cannot reach its limit, nor three the host's */
    assert_route(&m, "host", "gpu4", 6017.3e6, 11.006e-6, 1);
    duet_machine_fini(&m);
    m = build(p, 4, 16); /* added sockets have the limit, too */
    g_assert_true(crosses(&m, "host", "gpu15", "hub3-to-device"));
    duet_machine_fini(&m);
    m = build_with(p, &options);
    assert_route(&m, "host", "gpu4", 5e9, 11.006e-6, 3);
    kept = duet__platform_kept_links(p, &options);
    g_assert_cmpstr(kept, ==, "pcie, host, peer_switch, peer_socket, peer_remote");
    duet_machine_fini(&m);
    options.links = same; /* options of limits that exist */
    m = build_with(p, &options);
    assert_route(&m, "host", "gpu4", 4e9, 11.006e-6, 3);
    assert_route(&m, "gpu4", "host", 4e9, 12.104e-6, 2);
    duet_machine_fini(&m);
}

static void test_idgraf_workers(void)
{
    static const char *const order[] = {"gpu0", "gpu2", "gpu4", "gpu6",
                                        "gpu1", "gpu3", "gpu5", "gpu7"};
    static const unsigned sockets[] = {0, 0, 1, 1, 0, 0, 1, 1, 0, 0, 1, 1};
    OWNED(free_platform) struct duet__platform *p = load("idgraf");
    struct duet_machine m = build(p, -1, -1);
    g_assert_cmpuint(m.worker_count, ==, 12);
    g_assert_cmpuint(m.node_count, ==, 9);
    g_assert_cmpstr(m.nodes[0].name, ==, "host");
    g_assert_cmpuint(m.nodes[0].capacity_bytes, ==, 0);
    for (unsigned i = 0; i < 12; i++) {
        const struct duet_worker *w = &m.workers[i];
        g_assert_cmpuint(w->socket, ==, sockets[i]);
        g_assert_cmpuint(w->window, ==, i < 4 ? 1 : 2);
        g_assert_cmpuint(w->window_short, ==, i < 4 ? 0 : 8);
        g_assert_cmpuint(w->node, ==, i < 4 ? 0 : i - 3);
        g_assert_cmpstr(m.archs[w->arch].name, ==, i < 4 ? "x5650" : "c2050");
        if (i >= 4) {
            g_assert_cmpstr(w->name, ==, order[i - 4]);
            g_assert_cmpstr(m.nodes[i - 3].name, ==, order[i - 4]);
            g_assert_cmpuint(m.nodes[i - 3].capacity_bytes, ==, 2817982464);
        }
    }
    g_assert_cmpstr(m.workers[3].name, ==, "cpu3");
    g_assert_cmpfloat(m.costs.submit_s, ==, 1e-6);
    g_assert_cmpfloat(m.costs.kernel_launch_s, ==, 0);
    duet_machine_fini(&m);
    m = build(p, 12, 0);
    g_assert_cmpuint(m.worker_count, ==, 12);
    g_assert_cmpuint(m.node_count, ==, 1);
    g_assert_cmpuint(m.link_count, ==, 0);
    duet_machine_fini(&m);
    m = build(p, 0, 4); /* four GPUs on four switches share nothing, and no pair is behind one */
    g_assert_cmpuint(m.worker_count, ==, 4);
    g_assert_cmpuint(m.link_count, ==, 8 + 4);
    duet_machine_fini(&m);
}

/* Memory as a part of the description's, and a separate window for short tasks. */
static void test_parts(void)
{
    struct duet__platform_options options = {.cpus = 1, .gpus = 1};
    OWNED(free_platform) struct duet__platform *p = load("idgraf");
    struct duet_machine m = build_with(p, &options);
    uint64_t all = m.nodes[1].capacity_bytes;
    duet_machine_fini(&m);
    options.gpu_memory_share = 0.25;
    options.gpu_window_short = 20;
    m = build_with(p, &options);
    g_assert_cmpuint(m.nodes[1].capacity_bytes, ==, all / 4);
    g_assert_cmpuint(m.workers[1].window, ==, 2);
    g_assert_cmpuint(m.workers[1].window_short, ==, 20);
    duet_machine_fini(&m);
    options.gpu_memory_share = 1;
    options.gpu_window = 3;
    m = build_with(p, &options);
    g_assert_cmpuint(m.nodes[1].capacity_bytes, ==, all);
    g_assert_cmpuint(m.workers[1].window_short, ==, 20);
    duet_machine_fini(&m);
    options.gpu_window = 21;
    FAILS(duet__platform_build(p, &options, &m, hear()), DUET_EINVAL,
          "worker gpu0: the window of short tasks");
    options.gpu_window = 0;
    options.gpu_memory_share = 1.01;
    FAILS(duet__platform_build(p, &options, &m, hear()), DUET_EINVAL, "a part of 1.01");
    options.gpu_memory_share = 0.5;
    options.gpu_memory_bytes = 1;
    FAILS(duet__platform_build(p, &options, &m, hear()), DUET_EINVAL, "given twice");
}

static void test_options(void)
{
    static const struct duet__link_override links[] = {{"pcie", 12e9, 0},
                                                       {"peer_switch", 10e9, 0},
                                                       {"pcie", 13e9, 0}};
    const struct duet__platform_options options = {.cpus = 1,
                                                   .gpus = 8,
                                                   .gpu_memory_bytes = 1 << 30,
                                                   .gpu_window = 5,
                                                   .links = links,
                                                   .link_count = G_N_ELEMENTS(links)};
    struct duet__platform_options apart = options;
    OWNED(free_platform) struct duet__platform *p = load("idgraf");
    struct duet_machine m = build_with(p, &options);
    assert_route(&m, "host", "gpu0", 13e9, 11.019e-6, 1);
    assert_route(&m, "gpu3", "host", 13e9, 11.895e-6, 1); /* no limit is left */
    assert_route(&m, "gpu0", "gpu1", 10e9, 1.787675e-05, 1);
    assert_route(&m, "gpu0", "gpu2", 5292.138e6, 1.850387e-05, 3);
    g_assert_cmpuint(m.nodes[8].capacity_bytes, ==, 1 << 30);
    g_assert_cmpuint(m.workers[8].window, ==, 5);
    g_assert_cmpuint(m.workers[8].window_short, ==, 5);
    g_assert_cmpuint(m.workers[0].window, ==, 1);
    g_assert_cmpuint(m.workers[0].window_short, ==, 0);
    duet_machine_fini(&m);
    apart.no_peer = true;
    m = build_with(p, &apart);
    for (unsigned i = 1; i < m.node_count; i++)
        for (unsigned j = 1; j < m.node_count; j++)
            g_assert_false(duet_machine_route(&m, i, j)->direct);
    g_assert_cmpuint(m.link_count, ==, 8);
    duet_machine_fini(&m);
}

static void test_sixteen(void)
{
    static const unsigned order[] = {0, 2, 4, 6, 1, 3, 5, 7, 8, 10, 12, 14, 9, 11, 13, 15};
    OWNED(free_platform) struct duet__platform *p = load("idgraf");
    struct duet_machine m = build(p, -1, 16);
    g_assert_cmpuint(m.worker_count, ==, 24); /* two more sockets of six cores */
    for (unsigned i = 0; i < 16; i++) {
        g_autofree char *name = g_strdup_printf("gpu%u", order[i]);
        g_assert_cmpstr(m.nodes[i + 1].name, ==, name);
        g_assert_cmpuint(m.workers[8 + i].socket, ==, order[i] / 4);
    }
    for (unsigned i = 0; i < 8; i++)
        g_assert_cmpuint(m.workers[i].socket, ==, i / 2);
    assert_route(&m, "host", "gpu8", 6009.55e6, 11.0135e-6, 1); /* the kind's own figure */
    assert_route(&m, "gpu8", "gpu9", 6634.875e6, 1.787675e-05, 1);
    assert_route(&m, "gpu12", "gpu8", 3801.975e6, 2.668131e-05, 3);
    g_assert_true(crosses(&m, "host", "gpu9", "pcie4-to-device"));
    duet_machine_fini(&m);
    m = build(p, 4, 9); /* one more switch, one more socket */
    g_assert_cmpstr(m.nodes[9].name, ==, "gpu8");
    g_assert_cmpuint(m.worker_count, ==, 13);
    duet_machine_fini(&m);
}

static void test_many(void)
{
    struct duet__platform *p = load("idgraf");
    struct duet_machine m = build(p, 4, 64);
    g_assert_cmpuint(m.node_count, ==, 65);
    duet_machine_fini(&m);
    duet__platform_free(p);
    for (unsigned i = 0; i < G_N_ELEMENTS(built_ins); i++) {
        p = load(built_ins[i]);
        for (int gpus = 0; gpus <= 40; gpus++) {
            m = build(p, gpus > 0 ? 0 : 1, gpus);
            g_assert_cmpuint(m.node_count, ==, (unsigned)gpus + 1);
            duet_machine_fini(&m);
        }
        duet__platform_free(p);
    }
}

static void refused(const struct duet__platform *p, const struct duet__platform_options *options,
                    const char *fragment)
{
    struct duet_machine m;
    FAILS(duet__platform_build(p, options, &m, hear()), DUET_EINVAL, fragment);
    g_assert_null(m.routes);
    g_assert_cmpint(duet__platform_build(p, options, &m, NULL), ==, DUET_EINVAL);
}

static void test_refusals(void)
{
    static const struct duet__link_override unknown = {"qpi", 1e9, 0}, zero = {"pcie", 0, 0};
    static const struct {
        struct duet__platform_options options;
        const char *fragment;
    } cases[] = {
        {{.cpus = 5, .gpus = 8},
         "5 CPUs and 8 GPUs need 13 cores (each GPU takes one), idgraf has 12"},
        {{.cpus = 0, .gpus = 0}, "at least one worker"},
        {{.cpus = -2, .gpus = 0}, "CPUs cannot be negative"},
        {{.cpus = 1, .gpus = -7}, "GPUs cannot be negative"},
        {{.cpus = 1, .gpus = 5000}, "the most is 4096"},
        {{.cpus = 13, .gpus = 0}, "idgraf has 12"},
        {{.cpus = 17, .gpus = 16}, "idgraf has 24"},
        {{.cpus = -1, .gpus = -1, .links = &unknown, .link_count = 1},
         "no link is named qpi (known: pcie, peer_switch, peer_socket, peer_remote, all)"},
        {{.cpus = -1, .gpus = -1, .links = &zero, .link_count = 1}, "link pcie: the bandwidth"},
    };
    OWNED(free_platform) struct duet__platform *p = load("idgraf");
    for (unsigned i = 0; i < G_N_ELEMENTS(cases); i++)
        refused(p, &cases[i].options, cases[i].fragment);
}

/* Factors change every figure of the links that they name, and no others. */
static void test_link_factors(void)
{
    static const struct duet__link_override all[] = {{"all", 0, 2}}, half[] = {{"pcie", 0, 0.5}},
                                            both[] = {{"peer_switch", 1e9, 0}, {"all", 0, 3}},
                                            same[] = {{"all", 5e9, 0}};
    static const struct {
        const struct duet__link_override *links;
        size_t count;
        double pcie, peer_switch, other; /* expected factors */
        const char *kept;
    } cases[] = {
        {all, 1, 2, 2, 2, NULL},
        {half, 1, 0.5, 1, 1, "peer_switch, peer_socket, peer_remote"},
        {both, 2, 3, 0, 3, NULL},
        {same, 1, 0, 0, 0, NULL},
    };
    OWNED(free_platform) struct duet__platform *p = load("idgraf");
    OWNED(duet_machine_fini) struct duet_machine usual = build(p, 4, 8);
    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        const struct duet__platform_options options = {.cpus = 4,
                                                       .gpus = 8,
                                                       .links = cases[i].links,
                                                       .link_count = cases[i].count};
        OWNED(duet_machine_fini) struct duet_machine m = build_with(p, &options);
        g_autofree char *kept = duet__platform_kept_links(p, &options);
        g_assert_cmpstr(kept, ==, cases[i].kept);
        for (unsigned k = 0; k < m.link_count; k++) {
            const char *name = m.links[k].name;
            double factor = g_str_has_prefix(name, "pcie")          ? cases[i].pcie
                            : g_str_has_prefix(name, "peer_switch") ? cases[i].peer_switch
                                                                    : cases[i].other;
            bool there = false;
            for (unsigned n = 0; n < usual.link_count; n++) {
                if (strcmp(usual.links[n].name, name) != 0)
                    continue;
                there = true;
                if (factor > 0)
                    g_assert_cmpfloat(m.links[k].bandwidth_Bps, ==,
                                      factor * usual.links[n].bandwidth_Bps);
            }
            g_assert_true(there);
            if (factor == 0)
                g_assert_cmpfloat(m.links[k].bandwidth_Bps, ==, i == 2 ? 3e9 : 5e9);
        }
    }
}

TEST_MAIN(test_idgraf_alone, test_idgraf_sharing, test_limits, test_idgraf_workers, test_options,
          test_parts, test_sixteen, test_many, test_refusals, test_link_factors)
