/* SPDX-License-Identifier: Apache-2.0 */
/* Measured machines are read back as they were written. */
#include "platforms/internal.h"
#include "platforms/testing_draft.h"
#include "platforms/testing_fields.h"

static const struct duet__calibration nothing = {0};

/* Writes the machine of a draft and reads it back. */
static struct duet_machine through_files(const struct duet__platform *draft)
{
    OWNED(remove_folder) struct folder folder = make_folder();
    struct duet__platform *p;
    struct duet_machine m;
    write_draft(draft, &nothing, folder.json, DUET_WRITE_NEW);
    p = load(folder.json);
    m = build(p, -1, -1);
    duet__platform_free(p);
    return m;
}

static void assert_equal_costs(const struct duet_costs *a, const struct duet_costs *b)
{
    g_assert_cmpmem(a, sizeof(*a), b, sizeof(*b)); /* nine numbers without padding */
}

static void assert_equal_sharing(const struct duet_sharing *a, const struct duet_sharing *b)
{
    g_assert_cmpuint(a->shared_bytes, ==, b->shared_bytes);
    g_assert_cmpfloat(a->bandwidth_Bps, ==, b->bandwidth_Bps);
}

static void assert_route(const struct duet_machine *m, const char *from, const char *to,
                         const struct duet__platform_figure *expected)
{
    const struct duet_route *r = route_of(m, from, to);
    g_assert_true(r->direct);
    g_assert_cmpfloat(r->bandwidth_Bps, ==, expected->bandwidth_Bps);
    g_assert_cmpfloat(r->latency_s, ==, expected->latency_s);
}

static const char *link_of(const struct duet_machine *m, const char *from, const char *to,
                           unsigned index)
{
    const struct duet_route *r = route_of(m, from, to);
    return index < r->count ? m->links[r->links[index]].name : "";
}

static void test_workers(void)
{
    struct duet__platform draft = make_draft();
    OWNED(duet_machine_fini) struct duet_machine m = through_files(&draft);
    g_assert_cmpstr(m.name, ==, "mine");
    g_assert_cmpuint(m.arch_count, ==, 2);
    g_assert_cmpstr(m.archs[1].name, ==, "m2070");
    g_assert_cmpstr(m.archs[1].backend, ==, "cuda");
    g_assert_cmpuint(m.worker_count, ==, 8); /* 8 cores, of which 4 feed GPUs */
    for (unsigned i = 0; i < m.worker_count; i++) {
        static const unsigned sockets[] = {0, 1, 1, 1, 0, 0, 0, 1};
        g_assert_cmpuint(m.workers[i].socket, ==, sockets[i]);
        g_assert_cmpuint(m.workers[i].arch, ==, i >= 4);
        g_assert_cmpuint(m.workers[i].node, ==, i < 4 ? 0 : i - 3);
        if (i >= 4)
            g_assert_cmpuint(m.nodes[i - 3].capacity_bytes, ==, draft_gpus[i - 4].memory_bytes);
    }
    assert_equal_costs(&m.costs, &draft.costs);
    assert_equal_sharing(&m.sharing, &draft.sharing);
    g_assert_cmpuint(m.cores, ==, 6);
    g_assert_true(m.first_waits);
}

/* Every single member of a platform, with random values. */
static void test_random(void)
{
    g_autoptr(GRand) random = g_rand_new_with_seed(32);
    for (unsigned round = 0; round < 50; round++) {
        struct folder folder = make_folder();
        g_autofree char *description = testing_text(random, 0, 300),
                        *origin = testing_text(random, 1, 300);
        struct duet__platform draft = make_draft(), *p;
        draft.description = description;
        draft.origin = origin;
        testing_fill(duet__cost_fields, &draft.costs, random);
        testing_fill(duet__sharing_fields, &draft.sharing, random);
        write_draft(&draft, &nothing, folder.json, DUET_WRITE_NEW);
        p = load(folder.json);
        g_assert_cmpstr(p->description, ==, description);
        g_assert_cmpstr(p->origin, ==, origin);
        testing_same(duet__cost_fields, &draft.costs, &p->costs);
        testing_same(duet__sharing_fields, &draft.sharing, &p->sharing);
        duet__platform_free(p);
        remove_folder(&folder);
    }
}

static void test_copies(void)
{
    struct duet__platform draft = make_draft();
    OWNED(duet_machine_fini) struct duet_machine m = through_files(&draft);
    for (unsigned i = 0; i < draft.gpu_count; i++) {
        g_autofree char *name = g_strdup_printf("gpu%u", i);
        assert_route(&m, "host", name, &draft_gpus[i].to_device);
        assert_route(&m, name, "host", &draft_gpus[i].to_host);
    }
    assert_route(&m, "gpu0", "gpu1", &draft.peers[0].up);
    assert_route(&m, "gpu1", "gpu0", &draft.peers[0].down);
    g_assert_false(route_of(&m, "gpu0", "gpu2")->direct); /* on one socket: none */
    assert_route(&m, "gpu2", "gpu3", &draft.peers[2].up);
    assert_route(&m, "gpu3", "gpu0", &draft.peers[2].down);
    /* links that are shared */
    g_assert_cmpstr(link_of(&m, "host", "gpu0", 0), ==, "pcie0-to-device");
    g_assert_cmpstr(link_of(&m, "host", "gpu1", 0), ==, "pcie0-to-device");
    g_assert_cmpstr(link_of(&m, "host", "gpu0", 1), ==, "");
    g_assert_cmpstr(link_of(&m, "host", "gpu1", 1), ==, "pcie-gpu1-to-device");
    g_assert_cmpstr(link_of(&m, "gpu2", "host", 0), ==, "pcie1-to-host");
    g_assert_cmpstr(link_of(&m, "gpu3", "host", 1), ==, "pcie-gpu3-to-host");
    g_assert_cmpstr(link_of(&m, "gpu2", "gpu3", 0), ==, "pcie1-to-host");
    g_assert_cmpstr(link_of(&m, "gpu2", "gpu3", 1), ==, "pcie2-to-device");
}

/* Direct copies with links of their own do not cross those of the host. */
static void test_own_links(void)
{
    struct duet__platform draft = make_draft();
    struct duet_machine m;
    draft.peers[2].up.bandwidth_Bps = 300e9;
    draft.peers[2].down.bandwidth_Bps = 310e9;
    draft.peers[2].own_link = true;
    m = through_files(&draft);
    assert_route(&m, "gpu0", "gpu3", &draft.peers[2].up);
    assert_route(&m, "gpu3", "gpu2", &draft.peers[2].down);
    g_assert_cmpuint(route_of(&m, "gpu0", "gpu3")->count, ==, 2);
    g_assert_cmpstr(link_of(&m, "gpu0", "gpu3", 0), ==, "port3-in");
    g_assert_cmpstr(link_of(&m, "gpu3", "gpu2", 0), ==, "port3-out");
    g_assert_cmpfloat(m.links[route_of(&m, "gpu3", "gpu2")->links[0]].bandwidth_Bps, ==, 340.5e9);
    duet_machine_fini(&m);
    /* without own_link they do, and those limit them */
    draft.peers[2].up.bandwidth_Bps = draft.peers[2].down.bandwidth_Bps = 25e9;
    draft.peers[2].own_link = false;
    m = through_files(&draft);
    g_assert_cmpuint(route_of(&m, "gpu2", "gpu3")->count, ==, 3);
    g_assert_cmpfloat(route_of(&m, "gpu2", "gpu3")->bandwidth_Bps, ==, 24.7e9);
    duet_machine_fini(&m);
}

static void test_cpus_alone(void)
{
    static struct duet__platform_socket sockets[] = {{0, 2, {0, 0}}};
    static char empty[] = "";
    const struct duet__platform draft = {.name = "small",
                                         .description = empty,
                                         .origin = empty,
                                         .archs = BORROW(duet_arch, draft_archs),
                                         .arch_count = 1,
                                         .sockets = sockets,
                                         .socket_count = 1};
    OWNED(duet_machine_fini) struct duet_machine m = through_files(&draft);
    g_assert_cmpuint(m.worker_count, ==, 2);
    g_assert_cmpuint(m.node_count, ==, 1);
    g_assert_cmpuint(m.cores, ==, 0);
    g_assert_false(m.first_waits);
    assert_equal_costs(&m.costs, &draft.costs);
    assert_equal_sharing(&m.sharing, &draft.sharing);
}

/* Measured figures are the whole machine's: fewer workers leave them, more sockets bring cores. */
static void test_options(void)
{
    OWNED(remove_folder) struct folder folder = make_folder();
    struct duet__platform draft = make_draft();
    struct duet__platform *p;
    struct duet_machine m;
    write_draft(&draft, &nothing, folder.json, DUET_WRITE_NEW);
    p = load(folder.json);
    m = build(p, 1, 0);
    g_assert_cmpuint(m.cores, ==, 6);
    assert_equal_sharing(&m.sharing, &draft.sharing);
    g_assert_true(m.first_waits);
    duet_machine_fini(&m);
    m = build(p, 1, 8); /* the same switches once more, on two more sockets */
    g_assert_cmpuint(m.workers[7].socket, ==, 3);
    g_assert_cmpuint(m.cores, ==, 12);
    assert_equal_sharing(&m.sharing, &draft.sharing);
    duet_machine_fini(&m);
    g_assert_cmpfloat(p->probe_s, ==, draft.probe_s);
    g_assert_cmpmem(&p->network, sizeof p->network, &draft.network, sizeof draft.network);
    g_assert_cmpstr(p->description, ==, draft.description);
    g_assert_cmpuint(p->host_memory_bytes, ==, draft.host_memory_bytes);
    g_assert_cmpfloat(p->host.to_device_Bps, ==, 0);
    g_assert_cmpfloat(p->host.to_host_Bps, ==, draft.host.to_host_Bps);
    g_assert_cmpfloat(p->sockets[0].hub.to_device_Bps, ==, draft_sockets[0].hub.to_device_Bps);
    g_assert_cmpfloat(p->sockets[1].hub.to_device_Bps, ==, 0);
    duet__platform_free(p);
    p = load("idgraf");
    g_assert_cmpfloat(p->probe_s, ==, 0);
    duet__platform_free(p);
}

/* Every field of every point, whatever its digits. */
static void test_times(void)
{
    for (guint32 seed = 1; seed <= 8; seed++) {
        OWNED(remove_folder) struct folder folder = make_folder();
        struct duet__platform draft = make_draft();
        OWNED(duet__calibration_fini) struct duet__calibration times = any_calibration(seed);
        struct duet__platform *p;
        write_draft(&draft, &times, folder.json, DUET_WRITE_NEW);
        p = load(folder.json);
        assert_equal_calibrations(&times, &p->calibration);
        assert_origin(p, "dsyrk", "x5650", draft.origin);
        duet__platform_free(p);
    }
}

/* The machine is equal as XML, too, with its times. */
static void test_xml(void)
{
    OWNED(remove_folder) struct folder folder = make_folder();
    g_autofree char *xml = g_build_filename(folder.path, "m.xml", NULL);
    g_autofree char *xml_times = g_strconcat(xml, ".kernels.json", NULL);
    struct duet__platform draft = make_draft();
    struct duet__platform times = {.calibration = any_calibration(3)};
    struct duet_machine m = through_files(&draft), again, part;
    struct duet__platform *p;
    WORKS(duet__platform_write_xml(&m, &times, xml, hear()));
    p = load(xml);
    again = build(p, -1, -1);
    assert_equal_machines(&m, &again);
    assert_equal_calibrations(&times.calibration, &p->calibration);
    part = build(p, 1, 1);
    assert_equal_costs(&part.costs, &draft.costs);
    assert_equal_sharing(&part.sharing, &draft.sharing);
    g_assert_cmpuint(part.cores, ==, 6);
    g_assert_true(part.first_waits);
    duet__platform_free(p);
    duet_machine_fini(&m);
    duet_machine_fini(&again);
    duet_machine_fini(&part);
    duet__calibration_fini(&times.calibration);
    (void)g_remove(xml);
    (void)g_remove(xml_times);
}

/* One workload's times, with their origins. */
static void test_select(void)
{
    char first[] = "the first day", second[] = "the second day";
    OWNED(remove_folder) struct folder folder = make_folder();
    struct duet__platform draft = make_draft();
    struct duet__calibration old = any_calibration(4), new = {0};
    const struct duet__calibration *kept;
    struct duet__platform *p;
    draft.origin = first;
    write_draft(&draft, &old, folder.json, DUET_WRITE_NEW);
    draft.origin = second;
    add_curve(&new, "dgemm", "x5650", "gemm", old.curves[0].points, 5);
    write_draft(&draft, &new, folder.json, DUET_WRITE_MERGE);
    p = load(folder.json);
    duet__calibration_select(&p->calibration, "gemm");
    kept = &p->calibration;
    g_assert_cmpuint(kept->count, ==, 3);
    g_assert_cmpstr(duet__calibration_find(kept, "dgemm", "x5650")->context, ==, "gemm");
    assert_origin(p, "dgemm", "x5650", "the second day");
    assert_origin(p, "dgemm", "m2070", "the first day");
    assert_origin(p, "dsyrk", "x5650", "the first day");
    duet__calibration_select(&p->calibration, NULL); /* nothing is left to choose from */
    g_assert_cmpuint(kept->count, ==, 3);
    assert_origin(p, "dgemm", "x5650", "the second day");
    duet__platform_free(p);
    duet__calibration_fini(&old);
    duet__calibration_fini(&new);
}

TEST_MAIN(test_workers, test_copies, test_own_links, test_cpus_alone, test_options, test_times,
          test_xml, test_select, test_random)
