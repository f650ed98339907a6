/* SPDX-License-Identifier: Apache-2.0 */
/* Links and routes of machines as they were recorded, and of random ones. */
#include "real/testing_machine.h"
#include "real/testing_pci.h"

static const double GEN2 = 6.4e9, GEN3 = 8e9 / 8 * 16 * (128.0 / 130) * 0.8;
static const double GEN4 = 16e9 / 8 * 16 * (128.0 / 130) * 0.8;

static void read_end(struct testing_parts *t, const char *root, unsigned device, const char *format,
                     unsigned bus)
{
    g_autofree char *address = g_strdup_printf(format, bus);
    duet__pci_read(root, address, &t->parts.ends[device].path);
    g_assert_cmpuint(t->parts.ends[device].path.count, >, 0);
}

/* Four switches of the second generation with two GPUs each, on two sockets. */
static void test_idgraf(void)
{
    OWNED(drop_folder) char *root = testing_tree();
    OWNED(testing_end) struct testing_parts t;
    OWNED(duet_machine_fini) struct duet_machine machine;
    testing_parts(&t, "pack:2 core:6 pu:1", 4, 8);
    for (unsigned s = 0; s < 4; s++) {
        testing_switch(root, 0x10 * (1 + s), 2, "5 GT/s", s < 2 ? "0-5" : "6-11");
        for (unsigned i = 0; i < 2; i++)
            read_end(&t, root, 2 * s + i, "0000:%02x:00.0", 0x10 * (1 + s) + 3 + i);
    }
    testing_make(&t, &machine);
    g_assert_cmpuint(machine.link_count, ==, 2 * 8 + 2 * 4);
    testing_route(&machine, "host", "gpu5", "switch2-to-device pcie5-to-device", GEN2);
    testing_route(&machine, "gpu5", "host", "pcie5-to-host switch2-to-host", GEN2);
    testing_route(&machine, "gpu4", "gpu5", "pcie4-to-host pcie5-to-device", GEN2);
    testing_route(&machine, "gpu1", "gpu2",
                  "pcie1-to-host switch0-to-host switch1-to-device pcie2-to-device", GEN2);
    testing_route(&machine, "gpu0", "gpu0", "", 0);
    for (unsigned d = 0; d < 8; d++)
        g_assert_cmpuint(machine.workers[4 + d].socket, ==, d / 4);
}

/* A DGX-1: four switches with two GPUs each, NVLink between some. */
static void test_nvlink(void)
{
    OWNED(drop_folder) char *root = testing_tree();
    OWNED(testing_end) struct testing_parts t;
    OWNED(duet_machine_fini) struct duet_machine machine;
    testing_parts(&t, "pack:2 core:20 pu:2", 8, 8);
    for (unsigned s = 0; s < 4; s++) {
        testing_switch(root, 0x10 * (1 + s), 2, "8.0 GT/s PCIe", s < 2 ? "0-39" : "40-79");
        for (unsigned i = 0; i < 2; i++)
            read_end(&t, root, 2 * s + i, "0000:%02x:00.0", 0x10 * (1 + s) + 3 + i);
    }
    testing_join(&t, 0, 3, "nvlink", 50e9);
    testing_join(&t, 3, 0, "nvlink", 50e9);
    testing_join(&t, 0, 1, "nvlink", 25e9);
    testing_join(&t, 1, 0, "nvlink", 0); /* the backend knows no more of it than of PCIe */
    testing_join(&t, 0, 7, "", 0);
    testing_make(&t, &machine);
    g_assert_cmpuint(machine.link_count, ==, 16 + 8 + 3);
    testing_route(&machine, "gpu0", "gpu3", "nvlink-gpu0-to-gpu3", 50e9);
    testing_route(&machine, "gpu3", "gpu0", "nvlink-gpu3-to-gpu0", 50e9);
    testing_route(&machine, "gpu0", "gpu1", "nvlink-gpu0-to-gpu1", 25e9);
    testing_route(&machine, "gpu1", "gpu0", "pcie1-to-host pcie0-to-device", GEN3);
    testing_route(&machine, "gpu0", "gpu7", "", 0);
    testing_route(&machine, "gpu0", "gpu6",
                  "pcie0-to-host switch0-to-host switch3-to-device pcie6-to-device", GEN3);
    testing_route(&machine, "host", "gpu0", "switch0-to-device pcie0-to-device", GEN3);
}

/* NVLink through switches: what a GPU has is shared by all that it sends. One has half of it. */
static void test_nvswitch(void)
{
    OWNED(testing_end) struct testing_parts t;
    struct duet_machine machine;
    testing_parts(&t, "pack:1 core:8 pu:1", 1, 4);
    for (unsigned s = 0; s < 4; s++)
        for (unsigned d = 0; d < 4; d++)
            if (s != d)
                testing_join(&t, s, d, "nvswitch", s == 3 || d == 3 ? 225e9 : 450e9);
    testing_make(&t, &machine);
    g_assert_cmpuint(machine.link_count, ==, 2 * 4 + 2 * 4);
    testing_route(&machine, "gpu0", "gpu1", "nvlink-gpu0-out nvlink-gpu1-in", 450e9);
    testing_route(&machine, "gpu3", "gpu1", "nvlink-gpu3-out nvlink-gpu1-in", 225e9);
    testing_route(&machine, "gpu2", "gpu3", "nvlink-gpu2-out nvlink-gpu3-in", 225e9);
    testing_route(&machine, "host", "gpu3", "pcie3-to-device", 1e10);
    duet_machine_fini(&machine);
    /* one way only */
    for (unsigned d = 0; d < 3; d++)
        testing_join(&t, 3, d, "pcie", 0);
    testing_make(&t, &machine);
    testing_route(&machine, "gpu2", "gpu3", "nvlink-gpu2-out nvlink-gpu3-in", 225e9);
    testing_route(&machine, "gpu3", "gpu2", "pcie3-to-host pcie2-to-device", 1e10);
    duet_machine_fini(&machine);
}

/* One GPU at a root port; the backend's bandwidth comes after that of sysfs. */
static void test_one(void)
{
    OWNED(drop_folder) char *root = testing_tree();
    OWNED(testing_end) struct testing_parts t;
    struct duet_machine machine;
    testing_parts(&t, "pack:1 core:4 pu:1", 3, 1);
    testing_plain(root, "pci0000:00/0000:00:01.0", "16.0 GT/s PCIe", "16");
    testing_plain(root, "pci0000:00/0000:00:01.0/0000:01:00.0", "16.0 GT/s PCIe", "16");
    read_end(&t, root, 0, "0000:%02x:00.0", 1);
    testing_make(&t, &machine);
    g_assert_cmpuint(machine.link_count, ==, 2);
    testing_route(&machine, "host", "gpu0", "pcie0-to-device", GEN4);
    testing_route(&machine, "gpu0", "host", "pcie0-to-host", GEN4);
    g_assert_cmpfloat(duet_machine_route(&machine, 0, 1)->latency_s, ==, 1e-5);
    duet_machine_fini(&machine);
    t.parts.ends[0].bandwidth_Bps = 20e9;
    t.parts.ends[0].latency_s = 3e-6;
    testing_make(&t, &machine);
    testing_route(&machine, "host", "gpu0", "pcie0-to-device", GEN4);
    g_assert_cmpfloat(duet_machine_route(&machine, 0, 1)->latency_s, ==, 3e-6);
    duet_machine_fini(&machine);
    t.parts.ends[0].path.ports[1].lanes = 0;
    testing_make(&t, &machine);
    testing_route(&machine, "host", "gpu0", "pcie0-to-device", 20e9);
    duet_machine_fini(&machine);
}

/* One GPU of a switch is used: an unshared link is its own, as narrow as it is. */
static void test_alone(void)
{
    OWNED(drop_folder) char *root = testing_tree();
    OWNED(testing_end) struct testing_parts t;
    OWNED(duet_machine_fini) struct duet_machine machine;
    testing_parts(&t, "pack:1 core:4 pu:1", 2, 2);
    testing_switch(root, 0x20, 2, "8.0 GT/s PCIe", "0-3");
    testing_switch(root, 0x30, 2, "8.0 GT/s PCIe", "0-3");
    g_autofree char *uplink =
        g_build_filename(root, "bus/pci/devices/0000:31:00.0/max_link_speed", NULL);
    g_assert_true(g_file_set_contents(uplink, "5.0 GT/s PCIe\n", -1, NULL));
    read_end(&t, root, 0, "0000:%02x:00.0", 0x23);
    read_end(&t, root, 1, "0000:%02x:00.0", 0x34);
    testing_make(&t, &machine);
    g_assert_cmpuint(machine.link_count, ==, 4);
    testing_route(&machine, "gpu0", "gpu1", "pcie0-to-host pcie1-to-device", GEN2);
    testing_route(&machine, "host", "gpu0", "pcie0-to-device", GEN3);
}

/* Switches below a switch, down to `depth`, each with a device of its own and the next switch. */
static void make_deep(struct pci_path *path, unsigned depth)
{
    *path = (struct pci_path){.count = 0};
    for (unsigned level = 0; level <= 2 * depth + 1; level++) {
        struct pci_port *port = &path->ports[path->count++];
        *port = (struct pci_port){.speed_GTps = 8, .lanes = 16};
        bool last = level == 2 * depth + 1, branch = level == 2 * depth && depth > 0;
        (void)g_snprintf(port->address, sizeof port->address, "0000:%02x:%02x.0", level,
                         last || branch ? depth : 0);
    }
}

static void test_levels(void)
{
    OWNED(testing_end) struct testing_parts t;
    OWNED(duet_machine_fini) struct duet_machine machine;
    testing_parts(&t, "pack:1 core:4 pu:1", 1, 7);
    for (unsigned d = 0; d < 7; d++)
        make_deep(&t.parts.ends[d].path, 1 + d);
    testing_make(&t, &machine);
    testing_route(&machine, "host", "gpu0", "switch0-to-device pcie0-to-device", GEN3);
    testing_route(&machine, "host", "gpu1", "switch0-to-device switch1-to-device pcie1-to-device",
                  GEN3);
    testing_route(&machine, "gpu0", "gpu2",
                  "pcie0-to-host switch1-to-device switch2-to-device pcie2-to-device", GEN3);
    testing_route(&machine, "gpu1", "gpu2", "pcie1-to-host switch2-to-device pcie2-to-device",
                  GEN3);
    g_assert_cmpuint(duet_machine_route(&machine, 0, 7)->count, ==, 4); /* the nearest three */
}

/* Two switches in a row, all of whose devices are below both, are one; as narrow as the narrower.
 */
static void test_row(void)
{
    OWNED(testing_end) struct testing_parts t;
    OWNED(duet_machine_fini) struct duet_machine machine;
    testing_parts(&t, "pack:1 core:4 pu:1", 1, 2);
    for (unsigned d = 0; d < 2; d++) {
        struct pci_path *path = &t.parts.ends[d].path;
        make_deep(path, 2);
        for (unsigned port = 4; port < 6; port++)
            (void)g_snprintf(path->ports[port].address, PCI_ADDRESS, "0000:%02x:%02x.0", port, d);
        path->ports[1].speed_GTps = 5;
    }
    testing_make(&t, &machine);
    g_assert_cmpuint(machine.link_count, ==, 6);
    testing_route(&machine, "host", "gpu1", "switch0-to-device pcie1-to-device", GEN2);
    testing_route(&machine, "gpu0", "gpu1", "pcie0-to-host pcie1-to-device", GEN3);
}

/* Two devices at one address, as the parts of a GPU that is partitioned: its link is shared. */
static void test_same_address(void)
{
    OWNED(testing_end) struct testing_parts t;
    OWNED(duet_machine_fini) struct duet_machine machine;
    testing_parts(&t, "pack:1 core:4 pu:1", 1, 2);
    make_deep(&t.parts.ends[0].path, 0);
    make_deep(&t.parts.ends[1].path, 0);
    testing_make(&t, &machine);
    testing_route(&machine, "host", "gpu0", "switch0-to-device pcie0-to-device", GEN3);
    testing_route(&machine, "gpu0", "gpu1", "pcie0-to-host pcie1-to-device", GEN3);
}

/* Paths of a random tree, or of nothing that is a tree. */
static void random_path(GRand *random, struct pci_path *path, bool tree)
{
    char above[PCI_ADDRESS] = "";
    *path = (struct pci_path){.count = 0};
    unsigned depth = (unsigned)g_rand_int_range(random, 0, PCI_PORTS + 1);
    for (unsigned i = 0; i < depth; i++) {
        struct pci_port *port = &path->ports[path->count++];
        unsigned branch = (unsigned)g_rand_int_range(random, 0, i == 0 ? 2 : 3);
        g_autofree char *key = g_strdup_printf("%s/%u", above, branch);
        unsigned number = tree ? g_str_hash(key) : (unsigned)g_rand_int_range(random, 0, 8);
        (void)g_snprintf(port->address, sizeof port->address, "%08x:00:00.0", number);
        (void)g_snprintf(above, sizeof above, "%s", port->address);
        port->speed_GTps = (double)g_rand_int_range(random, 0, 4) * 2.5;
        port->lanes = (unsigned)g_rand_int_range(random, 0, 17);
        port->lanes_now = (unsigned)g_rand_int_range(random, 0, 17);
    }
}

/* Whatever is found, the machine keeps its promises, and both ways are alike. */
static void test_random(void)
{
    static const char *const kinds[] = {"", "pcie", "nvlink", "nvswitch", "carrier pigeon"};
    GRand *random = g_rand_new_with_seed(20261121);
    for (unsigned round = 0; round < 500; round++) {
        OWNED(testing_end) struct testing_parts t;
        OWNED(duet_machine_fini) struct duet_machine machine;
        unsigned devices = (unsigned)g_rand_int_range(random, 0, 10);
        testing_parts(&t, "pack:2 core:2 pu:1", 1, devices);
        for (unsigned d = 0; d < devices; d++) {
            random_path(random, &t.parts.ends[d].path, round % 2);
            for (unsigned other = 0; other < devices; other++)
                if (other != d)
                    testing_join(&t, d, other, kinds[g_rand_int_range(random, 0, 5)],
                                 g_rand_int_range(random, 0, 3) * 1e10);
        }
        testing_make(&t, &machine); /* which checks it */
        for (unsigned d = 1; d <= devices; d++) {
            const struct duet_route *in = duet_machine_route(&machine, DUET_HOST, d);
            const struct duet_route *out = duet_machine_route(&machine, d, DUET_HOST);
            g_assert_cmpfloat(in->bandwidth_Bps, ==, out->bandwidth_Bps);
            g_assert_cmpuint(in->count, ==, out->count);
        }
    }
    g_rand_free(random);
}

TEST_MAIN(test_idgraf, test_nvlink, test_nvswitch, test_one, test_alone, test_levels, test_row,
          test_same_address, test_random)
