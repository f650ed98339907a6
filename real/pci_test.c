/* SPDX-License-Identifier: Apache-2.0 */
/* Paths and speeds of PCI Express, out of files like Linux's. */
#include <glib.h>

#include "real/machine.h"
#include "real/testing_pci.h"

/* Bytes per second of so many lanes, as copies reach them. */
static double reached(double speed_GTps, unsigned lanes, double code)
{
    return speed_GTps * 1e9 / 8 * lanes * code * 0.8;
}

static void close_to(double value, double expected)
{
    g_assert_cmpfloat_with_epsilon(value, expected, 1e-6 * expected);
}

static void test_switch(void)
{
    OWNED(drop_folder) char *root = testing_tree();
    struct pci_path path;
    testing_switch(root, 0x3a, 2, "8.0 GT/s PCIe", "0-5,12-17");
    duet__pci_read(root, "0000:3e:00.0", &path);
    const char *const addresses[] = {"0000:3a:00.0", "0000:3b:00.0", "0000:3c:04.0",
                                     "0000:3e:00.0"};
    g_assert_cmpuint(path.count, ==, G_N_ELEMENTS(addresses));
    for (unsigned i = 0; i < path.count; i++)
        g_assert_cmpstr(path.ports[i].address, ==, addresses[i]);
    g_assert_cmpstr(path.processors, ==, "0-5,12-17");
    unsigned port = path.count - 1;
    close_to(duet__pci_Bps(&path, port), reached(8, 16, 128.0 / 130)); /* asleep at 2.5 */
    g_assert_true(duet__pci_up(&path, &port));
    g_assert_cmpuint(port, ==, 1);
    close_to(duet__pci_Bps(&path, port), reached(8, 16, 128.0 / 130));
    g_assert_false(duet__pci_up(&path, &port));
}

static void test_speeds(void)
{
    const struct {
        const char *port[2], *device[4]; /* speed and lanes, and the device's of now */
        double expected;
    } cases[] = {
        /* the same at both ends, of each generation */
        {{"5 GT/s", "16"}, {"5 GT/s", "16"}, 6.4e9},
        {{"2.5 GT/s", "16"}, {"2.5 GT/s", "16"}, 3.2e9},
        {{"16.0 GT/s PCIe", "16"}, {"16.0 GT/s PCIe", "16"}, reached(16, 16, 128.0 / 130)},
        {{"32.0 GT/s PCIe", "16"}, {"32.0 GT/s PCIe", "16"}, reached(32, 16, 128.0 / 130)},
        {{"64.0 GT/s PCIe", "16"}, {"64.0 GT/s PCIe", "16"}, reached(64, 16, 242.0 / 256)},
        /* the slower and the narrower end */
        {{"8.0 GT/s PCIe", "16"},
         {"16.0 GT/s PCIe", "16", "8.0 GT/s PCIe", "16"},
         reached(8, 16, 128.0 / 130)},
        {{"16.0 GT/s PCIe", "8"}, {"8.0 GT/s PCIe", "16", NULL, "8"}, reached(8, 8, 128.0 / 130)},
        /* sixteen lanes in a slot that has eight of them */
        {{"8.0 GT/s PCIe", "16"}, {"8.0 GT/s PCIe", "16", NULL, "8"}, reached(8, 8, 128.0 / 130)},
        /* a virtual machine's port: what it claims is less than what runs through it */
        {{"2.5 GT/s PCIe", "1"},
         {"32.0 GT/s PCIe", "16", "2.5 GT/s PCIe", "16"},
         reached(32, 16, 128.0 / 130)},
        {{"16.0 GT/s PCIe", "4"},
         {"32.0 GT/s PCIe", "16", "2.5 GT/s PCIe", "16"},
         reached(32, 16, 128.0 / 130)},
        /* nothing is said */
        {{"8.0 GT/s PCIe", "16"}, {"Unknown", "255"}, 0},
        {{"8.0 GT/s PCIe", "16"}, {NULL}, 0},
        {{NULL}, {"8.0 GT/s PCIe", "16", NULL, "63"}, reached(8, 16, 128.0 / 130)},
    };
    for (unsigned i = 0; i < G_N_ELEMENTS(cases); i++) {
        OWNED(drop_folder) char *root = testing_tree();
        const char *const *device = cases[i].device;
        testing_plain(root, "pci0000:00/0000:00:01.0", cases[i].port[0], cases[i].port[1]);
        testing_port(root, &(struct testing_port){"pci0000:00/0000:00:01.0/0000:01:00.0", device[0],
                                                  device[1], device[2], device[3], NULL});
        struct pci_path path;
        duet__pci_read(root, "0000:01:00.0", &path);
        g_assert_cmpuint(path.count, ==, 2);
        double bandwidth = duet__pci_Bps(&path, 1);
        if (cases[i].expected > 0)
            close_to(bandwidth, cases[i].expected);
        else
            g_assert_cmpfloat(bandwidth, ==, 0);
    }
}

/* A tunnel's bridges claim the first generation: that is no news of the device behind them. */
static void test_tunnel(void)
{
    OWNED(drop_folder) char *root = testing_tree();
    struct pci_path path;
    testing_plain(root, "pci0000:00/0000:00:1c.0", "2.5 GT/s PCIe", "4");
    testing_plain(root, "pci0000:00/0000:00:1c.0/0000:05:00.0", "2.5 GT/s PCIe", "4");
    testing_plain(root, "pci0000:00/0000:00:1c.0/0000:05:00.0/0000:06:01.0", "2.5 GT/s PCIe", "4");
    testing_port(root, &(struct testing_port){"pci0000:00/0000:00:1c.0/0000:05:00.0/0000:06:01.0/"
                                              "0000:08:00.0",
                                              "8.0 GT/s PCIe", "16", "8.0 GT/s PCIe", "4", NULL});
    duet__pci_read(root, "0000:08:00.0", &path);
    g_assert_cmpuint(path.count, ==, 4);
    close_to(duet__pci_Bps(&path, 3), reached(8, 4, 128.0 / 130));
    g_assert_cmpfloat(duet__pci_Bps(&path, 1), ==, 0);
}

/* Odd paths: their beginning, and unknown parts. */
static void test_odd_paths(void)
{
    OWNED(drop_folder) char *root = testing_tree();
    struct pci_path path;
    unsigned port = 0;
    testing_plain(root, "pci0000:00/0000:00:05.0", "32.0 GT/s PCIe", "16");
    duet__pci_read(root, "0000:00:05.0", &path);
    g_assert_cmpuint(path.count, ==, 1);
    close_to(duet__pci_Bps(&path, 0), reached(32, 16, 128.0 / 130));
    g_assert_false(duet__pci_up(&path, &port));
    /* a domain of its own below a device (Intel's volume management), and one of a hypervisor's */
    testing_plain(root, "pci0000:00/0000:00:0e.0/pci10000:00/10000:00:02.0", NULL, NULL);
    testing_plain(root, "pci0000:00/0000:00:0e.0/pci10000:00/10000:00:02.0/10000:01:00.0", NULL,
                  NULL);
    duet__pci_read(root, "10000:01:00.0", &path);
    g_assert_cmpuint(path.count, ==, 2);
    g_assert_cmpstr(path.ports[0].address, ==, "10000:00:02.0");
    testing_plain(root, "LNXSYSTM:00/VMBUS:00/pci0001:00/0001:00:00.0", NULL, NULL);
    duet__pci_read(root, "0001:00:00.0", &path);
    g_assert_cmpuint(path.count, ==, 1);
    const char *const unknown[] = {"0000:77:00.0",    "",           "../../devices",
                                   "0000:00:05.0/..", "0000:00:05", "0000:00:05.00",
                                   "00:05.0",         "gpu"};
    for (unsigned i = 0; i < G_N_ELEMENTS(unknown); i++) {
        duet__pci_read(root, unknown[i], &path);
        g_assert_cmpuint(path.count, ==, 0);
    }
    duet__pci_read("/no/such/folder", "0000:00:05.0", &path);
    g_assert_cmpuint(path.count, ==, 0);
}

/* Deeper than there is room for. */
static void test_deep(void)
{
    OWNED(drop_folder) char *root = testing_tree();
    g_autoptr(GString) folder = g_string_new("pci0000:00");
    struct pci_path path;
    for (unsigned bus = 0; bus <= PCI_PORTS; bus++) {
        g_autofree char *address = g_strdup_printf("0000:%02x:00.0", bus);
        g_string_append_printf(folder, "/%s", address);
        testing_plain(root, folder->str, "8.0 GT/s PCIe", "16");
        duet__pci_read(root, address, &path);
        g_assert_cmpuint(path.count, ==, bus < PCI_PORTS ? bus + 1 : 0);
    }
}

/* A list that does not fit is not known: its end would be another processor. */
static void test_long_list(void)
{
    OWNED(drop_folder) char *root = testing_tree();
    g_autoptr(GString) list = g_string_new("0");
    struct pci_path path;
    while (list->len < PCI_LIST)
        g_string_append_printf(list, ",%u", (unsigned)list->len);
    testing_port(root, &(struct testing_port){.path = "pci0000:00/0000:00:05.0",
                                              .processors = list->str});
    duet__pci_read(root, "0000:00:05.0", &path);
    g_assert_cmpuint(path.count, ==, 1);
    g_assert_cmpstr(path.processors, ==, "");
}

static char *random_text(GRand *random)
{
    static const char *const words[] = {"8.0 GT/s PCIe", "2.5 GT/s", "16",  "255", "Unknown speed",
                                        "GT/s",          "-1",       "1e9", "",    "0-5,12-17"};
    char *text = g_strdup(words[g_rand_int_range(random, 0, G_N_ELEMENTS(words))]);
    for (unsigned i = 0; text[i]; i++)
        if (g_rand_int_range(random, 0, 8) == 0)
            text[i] = (char)g_rand_int_range(random, 1, 256);
    return text;
}

/* Whatever the files say: figures are sane. */
static void test_random(void)
{
    g_autoptr(GRand) random = g_rand_new_with_seed(20261121);
    for (unsigned round = 0; round < 60; round++) {
        OWNED(drop_folder) char *root = testing_tree();
        const char *const places[] = {
            "pci0000:00/0000:00:01.0",
            "pci0000:00/0000:00:01.0/0000:01:00.0",
            "pci0000:00/0000:00:01.0/0000:01:00.0/0000:02:08.0",
            "pci0000:00/0000:00:01.0/0000:01:00.0/0000:02:08.0/0000:03:00.0",
        };
        struct pci_path path;
        for (unsigned i = 0; i < G_N_ELEMENTS(places); i++) {
            char *texts[5];
            for (unsigned t = 0; t < G_N_ELEMENTS(texts); t++)
                texts[t] = random_text(random);
            testing_port(root, &(struct testing_port){places[i], texts[0], texts[1], texts[2],
                                                      texts[3], texts[4]});
            for (unsigned t = 0; t < G_N_ELEMENTS(texts); t++)
                g_free(texts[t]);
        }
        duet__pci_read(root, "0000:03:00.0", &path);
        g_assert_cmpuint(path.count, ==, G_N_ELEMENTS(places));
        for (unsigned i = 0; i < path.count; i++) {
            double bandwidth = duet__pci_Bps(&path, i);
            g_assert_true(bandwidth >= 0 && bandwidth < 1e13);
            g_assert_cmpuint(path.ports[i].lanes, <=, 32);
        }
    }
}

TEST_MAIN(test_switch, test_speeds, test_tunnel, test_odd_paths, test_deep, test_long_list,
          test_random)
