/* SPDX-License-Identifier: Apache-2.0 */
/* Networks in their notation: read, refused, written back, and their shapes. */
#include <string.h>

#include "platforms/internal.h"
#include "platforms/testing.h"

static struct duet__network read_network(const char *text, const struct duet__network *usual)
{
    struct duet__network network = {0};
    if (duet__network_parse("--network", text, usual, &network, hear()) != DUET_OK)
        g_error("%s: %s", text, heard());
    return network;
}

/* Figures in any unit, and defaults; a shape is written in SimGrid's notation. */
static void test_good(void)
{
    static const struct {
        const char *text, *shape;
        enum duet__network_kind kind;
        unsigned eager_bytes;
        double bandwidth_Bps, latency_s, overhead_s, rendezvous_s;
    } cases[] = {
        {"switch:100Gbps,1us", NULL, DUET__NETWORK_SWITCH, 65536, 1.25e10, 1e-6, 0.5e-6, 2e-6},
        {"fat-tree:12.5GB/s,1500ns,16x4,eager=4KiB,overhead=0,rendezvous=3us", "2;16,4;1,16;1,1",
         DUET__NETWORK_FAT_TREE, 4096, 1.25e10, 1.5e-6, 0, 3e-6},
        {"fat-tree:1234567891Bps,1us,2;16,4;1,8;1,2,rendezvous=9us", "2;16,4;1,8;1,2",
         DUET__NETWORK_FAT_TREE, 65536, 1234567891, 1e-6, 0.5e-6, 9e-6},
        {"dragonfly:10GBps,2us,8,4;1,1;8,1;4", "8,4;1,1;8,1;4", DUET__NETWORK_DRAGONFLY, 65536,
         1e10, 2e-6, 0.5e-6, 4e-6},
        {"torus:10Gbps,1us,3,2,2", "3x2x2", DUET__NETWORK_TORUS, 65536, 1.25e9, 1e-6, 0.5e-6, 2e-6},
        {"file:a/b.xml,eager=12", NULL, DUET__NETWORK_FILE, 12, 0, 0, 0.5e-6, 2e-6},
    };
    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        const struct duet__network got = read_network(cases[i].text, NULL);
        g_autofree char *shape = duet__network_shape_text(&got);
        g_test_message("%s", cases[i].text);
        g_assert_cmpuint(got.kind, ==, cases[i].kind);
        g_assert_cmpfloat_with_epsilon(got.bandwidth_Bps, cases[i].bandwidth_Bps, 1e-3);
        g_assert_cmpfloat_with_epsilon(got.latency_s, cases[i].latency_s, 1e-15);
        g_assert_cmpfloat_with_epsilon(got.overhead_s, cases[i].overhead_s, 1e-15);
        g_assert_cmpfloat_with_epsilon(got.rendezvous_s, cases[i].rendezvous_s, 1e-15);
        g_assert_cmpuint(got.eager_bytes, ==, cases[i].eager_bytes);
        g_assert_cmpstr(got.file, ==, got.kind == DUET__NETWORK_FILE ? "a/b.xml" : "");
        g_assert_cmpstr(shape, ==, cases[i].shape);
    }
}

/* Figures that are left out are the platform's. */
static void test_usual(void)
{
    const struct duet__network usual =
        read_network("fat-tree:10Gbps,5us,16x4,eager=1KiB,overhead=2us,rendezvous=9us", NULL);
    struct duet__network network = read_network("fat-tree", &usual);
    g_assert_cmpmem(&network, sizeof network, &usual, sizeof usual);
    network = read_network("torus,overhead=3us", &usual);
    g_assert_true(network.kind == DUET__NETWORK_TORUS && network.levels == 0);
    g_assert_true(network.bandwidth_Bps == 1.25e9 && network.latency_s == 5 * 1e-6);
    g_assert_true(network.eager_bytes == 1024 && network.overhead_s == 3 * 1e-6);
    network = read_network("fat-tree:1Gbps,1us", &usual);
    g_assert_true(network.levels == 0 && network.rendezvous_s == 9 * 1e-6);
    network = read_network("file:x.xml", &usual);
    g_assert_true(network.bandwidth_Bps == 0 && network.latency_s == 0);
}

static void test_bad(void)
{
    static const char *const cases[][2] = {
        {"", "'' is no kind of network: known are switch, fat-tree, dragonfly, torus, file"},
        {"bus:1Gbps,1us", "'bus' is no kind of network"},
        {"switch", "'' is no bandwidth, such as 100Gbps"},
        {"switch:fast,1us", "'fast' is no bandwidth"},
        {"switch:-1Gbps,1us", "'-1Gbps' is no bandwidth"},
        {"switch:1e99Gbps,1us", "'1e99Gbps' is no bandwidth"},
        {"switch:100Gbps", "'' is no latency"},
        {"switch:100Gbps,1MB", "'1MB' is no latency"},
        {"switch:100Gbps,1us,4x4", "a switch has no shape"},
        {"fat-tree:100Gbps,1us,4y4", "'4y4' is no shape of a fat tree, such as 16x4"},
        {"fat-tree:100Gbps,1us,0x4", "'0x4' is no shape"},
        {"fat-tree:100Gbps,1us,3;16,4;1,8;1,1", "is no shape of a fat tree"},
        {"fat-tree:100Gbps,1us,9;1;1;1", "is no shape of a fat tree"},
        {"fat-tree:100Gbps,1us,1x1x1x1x1x1x1x1x1", "is no shape of a fat tree"},
        {"torus:100Gbps,1us,60000x60000x60000x60000x60000", "has room for more than 65536 nodes"},
        {"fat-tree:100Gbps,1us,2;2,2;4096,4096;1,1", "has more than 1048576 cables"},
        {"dragonfly:100Gbps,1us,4x4", "is no shape of a dragonfly"},
        {"dragonfly:100Gbps,1us,8,4;1;8,1;4", "is no shape of a dragonfly"},
        {"dragonfly:100Gbps,1us,9x1x8x4", "more groups than routers in a group"},
        {"torus:100Gbps,1us,4;4", "'4;4' is no shape of a torus"},
        {"switch:100Gbps,1us,eager=many", "'many' is no size, such as 64KiB"},
        {"switch:100Gbps,1us,eager=1e3", "'1e3' is no size"},
        {"switch:100Gbps,1us,overhead=2Gbps", "'2Gbps' is no time"},
        {"switch:100Gbps,1us,eager=1,,", "'' is no setting of a network"},
        {"switch:100Gbps,1us,late=1us", "'late=1us' is no setting of a network"},
        {"file:", "'' is no name of a file"},
    };
    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        struct duet__network network = {.levels = 7};
        int error = duet__network_parse("--network", cases[i][0], NULL, &network, hear());
        g_assert_cmpint(error, ==, DUET_EINVAL);
        g_assert_cmpuint(network.levels, ==, 7);
        if (!g_str_has_prefix(heard(), "--network: ") || !strstr(heard(), cases[i][1]))
            g_error("%s: %s", cases[i][0], heard());
    }
}

static void assert_fit(const char *text, unsigned nodes, const char *shape)
{
    struct duet__network network = read_network(text, NULL);
    g_autofree char *got = NULL;
    if (duet__network_shape(&network, nodes, hear()) != DUET_OK)
        g_error("%s: %s", text, heard());
    got = duet__network_shape_text(&network);
    g_assert_cmpstr(got, ==, shape);
}

static void test_fit(void)
{
    struct duet__network network = read_network("fat-tree:100Gbps,1us,16x4", NULL);
    assert_fit("switch:1Gbps,1us", 4096, NULL);
    assert_fit("fat-tree:1Gbps,1us", 16, "3;2,2,4;1,2,2;1,1,1"); /* Al-Fares et al., figure 3 */
    assert_fit("fat-tree:1Gbps,1us", 17, "3;3,3,6;1,3,3;1,1,1");
    assert_fit("fat-tree:1Gbps,1us", 1024, "3;8,8,16;1,8,8;1,1,1");
    assert_fit("fat-tree:1Gbps,1us,8x2", 9, "2;8,2;1,8;1,1");
    assert_fit("dragonfly:1Gbps,1us", 32, "4,2;1,1;4,1;2");
    assert_fit("dragonfly:1Gbps,1us", 33, "2,3;1,1;6,1;3");
    assert_fit("torus:1Gbps,1us", 64, "4x4x4");
    assert_fit("torus:1Gbps,1us", 12, "3x2x2");
    assert_fit("torus:1Gbps,1us", 10, "5x2");
    assert_fit("torus:1Gbps,1us", 7, "7");
    g_assert_cmpint(duet__network_shape(&network, 65, hear()), ==, DUET_EINVAL);
    g_assert_cmpstr(heard(), ==, "a fat tree of 2;16,4;1,16;1,1 has room for 64 nodes, not for 65");
    for (unsigned nodes = 1; nodes <= 4096; nodes++)
        for (unsigned kind = DUET__NETWORK_FAT_TREE; kind < DUET__NETWORK_FILE; kind++) {
            struct duet__network any = {.kind = kind};
            WORKS(duet__network_shape(&any, nodes, hear()));
            if (kind == DUET__NETWORK_DRAGONFLY)
                g_assert_cmpuint(any.down[0], <=, any.down[1] * any.down[2]);
        }
}

TEST_MAIN(test_good, test_usual, test_bad, test_fit)
