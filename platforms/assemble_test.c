/* SPDX-License-Identifier: Apache-2.0 */
/* Machines made of devices of the catalogue: placement, links, and kernel times beside measured
 * ones. */
#include "platforms/catalogue.h"

#include <math.h>

#include "platforms/internal.h"
#include "platforms/testing.h"

static struct duet__catalogue catalogue;

static struct duet__platform assemble(const struct duet__assembly *assembly)
{
    struct duet__platform p;
    WORKS(duet__platform_assemble(&catalogue, assembly, &p, hear()));
    return p;
}

/* Machines of every CPU with every GPU, in each way of linking that these have, raise no
 * suspicion. */
static void test_all(void)
{
    for (unsigned i = 0; i < catalogue.device_count * catalogue.device_count; i++) {
        const struct duet__device *gpu = &catalogue.devices[i % catalogue.device_count];
        const struct duet__device *cpu = &catalogue.devices[i / catalogue.device_count];
        const struct duet__gpu_group group = {4, gpu->name};
        unsigned fabrics = gpu->links == 0 ? 1 : gpu->one_each ? 2 : 3;
        for (unsigned k = 0; k < fabrics && cpu->cores > 0 && gpu->cores == 0; k++) {
            const struct duet__assembly assembly = {.name = "any",
                                                    .cpu = cpu->name,
                                                    .sockets = 2,
                                                    .gpus = &group,
                                                    .group_count = 1,
                                                    .fabric = k};
            OWNED(duet__platform_fini) struct duet__platform p = assemble(&assembly);
            OWNED(duet_machine_fini) struct duet_machine m = build(&p, -1, -1);
            g_auto(GStrv) suspicions = duet__platform_suspicions(&p);
            g_assert_null(suspicions[0]);
            g_assert_cmpint(route_of(&m, "gpu0", "gpu3")->direct, ==, k > 0 || !gpu->no_peer);
            g_assert_nonnull(strstr(p.origin, gpu->origin));
            g_assert_true(g_str_has_prefix(p.origin, "estimated: "));
        }
    }
}

static void assert_link(const struct duet_machine *m, const char *from, const char *to,
                        unsigned index, const char *name)
{
    const struct duet_route *route = route_of(m, from, to);
    g_assert_cmpuint(index, <, route->count);
    g_assert_cmpstr(m->links[route->links[index]].name, ==, name);
}

static void test_placement(void)
{
    const struct duet__gpu_group groups[] = {{6, "h100"}, {2, "a100"}};
    const struct duet__link_override links[] = {{"pcie", 0, 0.5}};
    struct duet__assembly assembly = {.name = "eight",
                                      .sockets = 2,
                                      .cores = 32,
                                      .gpus = groups,
                                      .group_count = 2,
                                      .switches = 4,
                                      .links = links};
    struct duet__platform p = assemble(&assembly);
    struct duet_machine m = build(&p, -1, -1);
    double pcie5 = 32e9 * 128 / 130 * 2 * 0.8;
    g_assert_cmpuint(m.worker_count, ==, 64);
    for (unsigned i = 0; i < 8; i++) {
        g_assert_cmpuint(p.gpus[i].position, ==, i / 2);
        g_assert_cmpuint(p.switches[i / 2].socket, ==, i / 4);
        g_assert_cmpstr(m.archs[m.workers[56 + i].arch].name, ==, i < 6 ? "h100" : "a100");
    }
    /* two GPUs share a switch, and one is slower than its switch */
    assert_link(&m, "host", "gpu5", 0, "pcie2-to-device");
    g_assert_cmpfloat_with_epsilon(route_of(&m, "host", "gpu4")->bandwidth_Bps, pcie5, 1);
    g_assert_cmpfloat_with_epsilon(route_of(&m, "host", "gpu7")->bandwidth_Bps, pcie5 / 2, 1);
    /* GPUs of two kinds copy over both links at the pace of the slower kind, those of one at their
     * own */
    assert_link(&m, "gpu0", "gpu7", 0, "pcie0-to-host");
    assert_link(&m, "gpu0", "gpu7", 1, "pcie3-to-device");
    g_assert_cmpfloat_with_epsilon(route_of(&m, "gpu0", "gpu7")->bandwidth_Bps, pcie5 / 2 * 0.45,
                                   1);
    g_assert_cmpfloat_with_epsilon(route_of(&m, "gpu0", "gpu5")->bandwidth_Bps, pcie5 * 0.45, 1);
    duet_machine_fini(&m);
    duet__platform_fini(&p);

    assembly.link_count = 1;
    assembly.group_count = 1;
    p = assemble(&assembly);
    m = build(&p, -1, 7); /* one more than there are */
    g_assert_nonnull(strstr(p.origin, "; bandwidth of pcie: as asked for"));
    g_assert_cmpfloat_with_epsilon(route_of(&m, "host", "gpu6")->bandwidth_Bps, pcie5 / 2, 1);
    g_assert_cmpfloat_with_epsilon(route_of(&m, "gpu0", "gpu5")->bandwidth_Bps, pcie5 * 0.45, 1);
    duet_machine_fini(&m);
    duet__platform_fini(&p);
}

/* Links between GPUs: a port that all copies of a GPU share, and what two GPUs have for each other.
 */
static void test_fabric(void)
{
    struct duet__gpu_group group = {4, "a100"};
    const struct duet__link_override faster[] = {{"port", 0, 2}};
    const struct duet__platform_options changed = {.cpus = -1,
                                                   .gpus = -1,
                                                   .links = faster,
                                                   .link_count = 1};
    struct duet__assembly assembly = {.name = "four",
                                      .sockets = 1,
                                      .gpus = &group,
                                      .group_count = 1,
                                      .fabric = DUET_FABRIC_DIRECT};
    struct duet__platform p = assemble(&assembly);
    struct duet_machine m = build(&p, -1, -1);
    g_assert_cmpfloat_with_epsilon(route_of(&m, "gpu1", "gpu3")->bandwidth_Bps, 95e9, 1);
    assert_link(&m, "gpu1", "gpu3", 0, "port1-out");
    assert_link(&m, "gpu1", "gpu3", 1, "port3-in");
    g_assert_cmpfloat_with_epsilon(m.links[route_of(&m, "gpu1", "gpu3")->links[0]].bandwidth_Bps,
                                   285e9, 1);
    duet_machine_fini(&m);
    duet__platform_fini(&p);

    group.device = "mi300x"; /* one link to each, whatever is left */
    p = assemble(&assembly);
    g_assert_cmpfloat_with_epsilon(p.peers[0].up.bandwidth_Bps, 0.95 * 64e9, 1);
    duet__platform_fini(&p);

    group.device = "a100";
    assembly.fabric = DUET_FABRIC_SWITCHED;
    p = assemble(&assembly);
    m = build_with(&p, &changed);
    g_assert_cmpfloat_with_epsilon(route_of(&m, "gpu1", "gpu3")->bandwidth_Bps, 285e9, 1);
    g_assert_cmpfloat_with_epsilon(m.links[route_of(&m, "gpu1", "gpu3")->links[1]].bandwidth_Bps,
                                   570e9, 1);
    duet_machine_fini(&m);
    duet__platform_fini(&p);
}

/* Two kinds of GPUs, 2 of each, those of a kind side by side: who copies directly, and how fast. */
static void test_mixed(void)
{
    const double nvlink3 = 0.95 * 12 * 25e9, pcie4 = 16e9 * 128 / 130 * 2 * 0.8;
    const struct {
        const char *other;
        enum duet__fabric fabric;
        double a100s, others, mixed; /* 0: through the host */
    } cases[] = {
        {"h100", DUET_FABRIC_DIRECT, nvlink3, 0.95 * 18 * 25e9, 0.8 * pcie4},
        {"k40m", DUET_FABRIC_SWITCHED, nvlink3, 0.4 * pcie4, 0.4 * pcie4},
        {"rtx4090", DUET_FABRIC_DIRECT, nvlink3, 0, 0},
        {"rtx4090", DUET_FABRIC_NONE, 0.8 * pcie4, 0, 0},
        {"mi300x", DUET_FABRIC_NONE, 0.8 * pcie4, 1.6 * pcie4, 0}, /* no driver has both */
    };
    for (unsigned i = 0; i < G_N_ELEMENTS(cases); i++) {
        const struct duet__gpu_group groups[] = {{2, "a100"}, {2, cases[i].other}};
        const struct duet__assembly assembly = {.name = "mixed",
                                                .sockets = 1,
                                                .gpus = groups,
                                                .group_count = 2,
                                                .fabric = cases[i].fabric};
        OWNED(duet__platform_fini) struct duet__platform p = assemble(&assembly);
        g_autofree char *text = duet__platform_text(&p);
        OWNED(free_platform) struct duet__platform *again = NULL;
        OWNED(duet_machine_fini) struct duet_machine m;
        /* a file says the same */
        WORKS(duet__platform_parse(text, strlen(text), "mixed", false, &again, hear()));
        m = build(again, -1, -1);
        const double found[] = {route_of(&m, "gpu0", "gpu1")->bandwidth_Bps,
                                route_of(&m, "gpu2", "gpu3")->bandwidth_Bps,
                                route_of(&m, "gpu1", "gpu2")->bandwidth_Bps};
        const double wanted[] = {cases[i].a100s, cases[i].others, cases[i].mixed};
        for (unsigned k = 0; k < 3; k++)
            g_assert_cmpfloat_with_epsilon(found[k], wanted[k], 1);
    }
}

/* Two dies of a package have more links between them than to others, and each its own to the
 * CPU. */
static void test_dies(void)
{
    const struct duet__gpu_group group = {5, "mi250x"};
    const struct duet__assembly assembly = {.name = "frontier",
                                            .cpu = "epyc-7a53",
                                            .sockets = 1,
                                            .gpus = &group,
                                            .group_count = 1,
                                            .fabric = DUET_FABRIC_DIRECT};
    OWNED(duet__platform_fini) struct duet__platform p = assemble(&assembly);
    OWNED(duet_machine_fini) struct duet_machine m = build(&p, -1, -1);
    g_assert_cmpuint(p.switch_count, ==, 3);
    g_assert_cmpfloat_with_epsilon(p.switches[0].to_host_Bps, 2 * 0.95 * 36e9, 1);
    g_assert_cmpfloat_with_epsilon(p.switches[2].to_host_Bps, 0.95 * 36e9, 1);
    g_assert_cmpfloat_with_epsilon(route_of(&m, "host", "gpu1")->bandwidth_Bps, 0.95 * 36e9, 1);
    g_assert_cmpfloat_with_epsilon(route_of(&m, "gpu2", "gpu3")->bandwidth_Bps, 0.95 * 200e9, 1);
    g_assert_cmpfloat_with_epsilon(route_of(&m, "gpu1", "gpu2")->bandwidth_Bps, 0.95 * 50e9, 1);
}

/* Estimated times of measured devices: a product of matrices is within a factor of 1.4. The shapes
 * were fitted to these devices, too; platforms.fit_catalogue leaves them out. */
static void test_times(void)
{
    static const struct {
        const char *platform, *cpu, *gpu;
    } machines[] = {{"idgraf", "x5650", "c2050"}, {"sirocco", "e5-2680v3", "k40m"}};
    for (unsigned i = 0; i < G_N_ELEMENTS(machines); i++) {
        const struct duet__gpu_group group = {1, machines[i].gpu};
        const struct duet__assembly assembly = {.name = "again",
                                                .cpu = machines[i].cpu,
                                                .sockets = 1,
                                                .gpus = &group,
                                                .group_count = 1};
        struct duet__platform p = assemble(&assembly), *measured = load(machines[i].platform);
        const char *const archs[] = {machines[i].cpu, machines[i].gpu};
        for (unsigned k = 0; k < 4; k++) {
            const char *kernel = k % 2 ? "sgemm" : "dgemm";
            const struct duet__curve *known =
                duet__calibration_find(&measured->calibration, kernel, archs[k / 2]);
            const struct duet__curve *estimated =
                duet__calibration_find(&p.calibration, kernel, archs[k / 2]);
            for (size_t n = 0; n < known->count; n++) {
                struct duet__point point;
                g_assert_cmpint(duet__curve_point(estimated, known->points[n].work, false, &point),
                                ==, DUET_OK);
                g_assert_cmpfloat(fabs(log(point.mean_s / known->points[n].mean_s)), <, log(1.4));
            }
        }
        duet__platform_fini(&p);
        duet__platform_free(measured);
    }
}

/* Files that lack something or contradict themselves are refused with the place. */
static void test_bad_input(void)
{
    static const char *const texts[][2] = {
        {"{\"schema\": 1}", "rules"},
        {"{\"schema\": 1, \"rules\": {\"pcie_share\": 2}}", "rules.pcie_share"},
        {"[", "file:1"},
    };
    for (size_t i = 0; i < G_N_ELEMENTS(texts); i++) {
        OWNED(duet__catalogue_fini) struct duet__catalogue bad;
        FAILS(duet__catalogue_read(&bad, texts[i][0], strlen(texts[i][0]), "file", hear()),
              DUET_EPARSE, texts[i][1]);
    }
}

int main(int argc, char **argv)
{
    int status;
    g_test_init(&argc, &argv, NULL);
    WORKS(duet__catalogue_load(&catalogue, hear()));
    g_test_add_func("/assemble/all", test_all);
    g_test_add_func("/assemble/placement", test_placement);
    g_test_add_func("/assemble/fabric", test_fabric);
    g_test_add_func("/assemble/mixed", test_mixed);
    g_test_add_func("/assemble/dies", test_dies);
    g_test_add_func("/assemble/times", test_times);
    g_test_add_func("/assemble/bad_input", test_bad_input);
    status = g_test_run();
    duet__catalogue_fini(&catalogue);
    return status;
}
