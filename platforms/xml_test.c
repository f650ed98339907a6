/* SPDX-License-Identifier: Apache-2.0 */
/* SimGrid platforms: written and read back equal; foreign files with the minimum. */
#include <glib/gstdio.h>

#include "platforms/testing_draft.h"

/* A directory of its own for each test. */
struct place {
    char *directory, *xml, *times;
};

static struct place make_place(void)
{
    struct place place = {.directory = g_dir_make_tmp("duet-XXXXXX", NULL)};
    place.xml = g_build_filename(place.directory, "machine.xml", NULL);
    place.times = g_build_filename(place.directory, "machine.xml.kernels.json", NULL);
    return place;
}

static void remove_place(struct place *place)
{
    (void)g_remove(place->xml);
    (void)g_remove(place->times);
    g_assert_cmpint(g_rmdir(place->directory), ==, 0);
    g_free(place->directory);
    g_free(place->xml);
    g_free(place->times);
}

static void write_xml(const struct duet_machine *m, const struct duet__platform *from,
                      const char *path)
{
    WORKS(duet__platform_write_xml(m, from, path, hear()));
}

static void round_trip(const struct duet__platform *p, const struct duet__platform_options *options)
{
    OWNED(remove_place) struct place place = make_place();
    struct duet_machine m = build_with(p, options);
    struct duet_machine again, third;
    struct duet__platform *q;
    write_xml(&m, p, place.xml);
    q = load(place.xml);
    again = build(q, -1, -1);
    assert_equal_machines(&m, &again);
    assert_equal_calibrations(&p->calibration, &q->calibration);
    if (p->origin)
        g_assert_cmpstr(q->origin, ==, p->origin);
    g_assert_cmpuint(duet__platform_cores(q), ==, m.worker_count);
    g_assert_cmpuint(duet__platform_gpus(q), ==, m.node_count - 1);
    duet__platform_free(q);
    write_xml(&again, NULL, place.xml); /* over the old file, without times */
    q = load(place.xml);
    third = build(q, -1, -1);
    assert_equal_machines(&m, &third);
    g_assert_cmpuint(q->calibration.count, ==, 0);
    duet__platform_free(q);
    duet_machine_fini(&m);
    duet_machine_fini(&again);
    duet_machine_fini(&third);
}

static void test_round_trips(void)
{
    static const struct duet__link_override link = {"pcie", 12.3456789e9, 0};
    static const struct duet__platform_options options[] = {
        {.cpus = -1, .gpus = -1},
        {.cpus = 1, .gpus = 2, .gpu_window = 3, .gpu_memory_bytes = 123456789},
        {.cpus = 1, .gpus = 2, .gpu_window_short = 5, .gpu_memory_share = 0.3},
        {.cpus = 2, .gpus = 0},
        {.cpus = 0, .gpus = 3, .no_peer = true},
        {.cpus = 4, .gpus = 20, .links = &link, .link_count = 1},
    };
    for (unsigned i = 0; i < G_N_ELEMENTS(built_ins); i++) {
        OWNED(free_platform) struct duet__platform *p = load(built_ins[i]);
        for (unsigned j = 0; j < G_N_ELEMENTS(options); j++)
            round_trip(p, &options[j]);
    }
}

/* Options on a machine read from XML have the effect that they have on its description. */
static void test_options(void)
{
    static const struct duet__link_override link = {"peer_remote", 1e9, 0};
    static const struct duet__platform_options options = {.cpus = 2,
                                                          .gpus = 8,
                                                          .gpu_window = 4,
                                                          .gpu_memory_bytes = 1 << 28,
                                                          .links = &link,
                                                          .link_count = 1};
    struct duet__platform_options apart = options;
    OWNED(remove_place) struct place place = make_place();
    struct duet__platform *p = load("idgraf"), *q;
    struct duet_machine all = build(p, 2, 8), m = build_with(p, &options), n;
    write_xml(&all, NULL, place.xml);
    q = load(place.xml);
    n = build_with(q, &options);
    assert_equal_machines(&m, &n);
    duet_machine_fini(&n);
    apart.gpus = 3;
    apart.no_peer = true;
    n = build_with(q, &apart);
    g_assert_cmpuint(n.node_count, ==, 4);
    g_assert_cmpuint(n.worker_count, ==, 5);
    g_assert_false(route_of(&n, "gpu0", "gpu2")->direct);
    duet_machine_fini(&n);
    apart.gpu_window = 0;
    apart.gpu_window_short = 6;
    apart.gpu_memory_bytes = 0;
    apart.gpu_memory_share = 0.5;
    n = build_with(q, &apart);
    g_assert_true(n.workers[2].window == 2 && n.workers[2].window_short == 6);
    g_assert_cmpuint(n.nodes[1].capacity_bytes, ==, all.nodes[1].capacity_bytes / 2);
    duet_machine_fini(&n);
    apart.gpus = 9;
    FAILS(duet__platform_build(q, &apart, &n, hear()), DUET_EINVAL,
          "idgraf has 8 and nothing can be added");
    apart.gpus = 8;
    apart.cpus = 3;
    FAILS(duet__platform_build(q, &apart, &n, hear()), DUET_EINVAL, "idgraf has 2 computing cores");
    duet__platform_free(p);
    duet__platform_free(q);
    duet_machine_fini(&all);
    duet_machine_fini(&m);
}

static const char foreign[] =
    "<?xml version='1.0'?>\n"
    "<!DOCTYPE platform SYSTEM \"https://simgrid.org/simgrid.dtd\">\n"
    "<platform version=\"4.1\">\n"
    "  <config><prop id=\"network/model\" value=\"CM02\"/></config>\n"
    "  <zone id=\"box\" routing=\"Full\">\n"
    "    <prop id=\"owner\" value=\"me\"/>\n"
    "    <host id=\"card\" speed=\"1Tf\">\n"
    "      <prop id=\"duet.capacity_bytes\" value=\"1000000\"/>\n"
    "    </host>\n"
    "    <host id=\"ram\" speed=\"10Gf\" core=\"3\"><prop id=\"duet.kind\" "
    "value=\"host\"/></host>\n"
    "    <link id=\"bus\" bandwidth=\"8GBps\" latency=\"10us\" sharing_policy=\"SPLITDUPLEX\"/>\n"
    "    <link id=\"root\" bandwidth=\"40Gbps\" latency=\"1us\"/>\n"
    "    <route src=\"ram\" dst=\"card\"><link_ctn id=\"root\"/>\n"
    "      <link_ctn id=\"bus\" direction=\"DOWN\"/></route>\n"
    "  </zone>\n"
    "</platform>\n";

static void test_foreign(void)
{
    OWNED(remove_place) struct place place = make_place();
    struct duet__platform *p;
    struct duet_machine m;
    const struct duet_route *r;
    g_assert_true(g_file_set_contents(place.xml, foreign, -1, NULL));
    p = load(place.xml);
    m = build(p, -1, -1);
    g_assert_cmpstr(m.name, ==, "box");
    g_assert_cmpstr(m.nodes[0].name, ==, "ram");
    g_assert_cmpstr(m.nodes[1].name, ==, "card");
    g_assert_cmpuint(m.nodes[1].capacity_bytes, ==, 1000000);
    g_assert_cmpuint(m.worker_count, ==, 4);
    g_assert_true(m.workers[3].window == 2 && m.workers[3].window_short == 8);
    g_assert_cmpstr(m.workers[2].name, ==, "cpu2");
    g_assert_cmpstr(m.archs[m.workers[3].arch].backend, ==, "cuda");
    g_assert_cmpuint(m.link_count, ==, 3);
    r = route_of(&m, "ram", "card");
    g_assert_cmpfloat(r->bandwidth_Bps, ==, 5e9);
    g_assert_cmpfloat_with_epsilon(r->latency_s, 11e-6, 1e-18);
    g_assert_cmpstr(m.links[r->links[1]].name, ==, "bus_DOWN");
    r = route_of(&m, "card", "ram");
    g_assert_cmpstr(m.links[r->links[1]].name, ==, "bus_UP");
    duet_machine_fini(&m);
    duet__platform_free(p);
}

static void test_write_errors(void)
{
    OWNED(free_platform) struct duet__platform *p = load("attila");
    struct duet_machine m = build(p, -1, -1);
    OWNED(remove_place) struct place place = make_place();
    g_autofree char *old = NULL;
    FAILS(duet__platform_write_xml(&m, NULL, "/nonexistent/a.xml", hear()), DUET_EIO,
          "cannot write /nonexistent/a.xml");
    FAILS(duet__platform_write_xml(&m, NULL, "a.txt", hear()), DUET_EINVAL, "must end in .xml");
    g_assert_true(g_file_set_contents(place.xml, "old", -1, NULL));
    g_strlcpy(m.nodes[1].name, "<&\"", DUET_NAME_MAX);
    FAILS(duet__platform_write_xml(&m, NULL, place.xml, hear()), DUET_EINVAL, "cannot be written");
    g_strlcpy(m.nodes[1].name, m.nodes[2].name, DUET_NAME_MAX);
    g_assert_cmpint(duet__platform_write_xml(&m, NULL, place.xml, hear()), ==, DUET_EINVAL);
    g_assert_true(g_file_get_contents(place.xml, &old, NULL, NULL));
    g_assert_cmpstr(old, ==, "old");
    duet_machine_fini(&m);
}

TEST_MAIN(test_round_trips, test_options, test_foreign, test_write_errors)
