/* SPDX-License-Identifier: Apache-2.0 */
/* Malformed documents: each is refused with a message that names the file and the place. */
#include <glib/gstdio.h>

#include "platforms/internal.h"
#include "platforms/testing.h"

/* A small good description; each case replaces one piece of it. */
static const char good[] =
    "{\"schema\": 1, \"name\": \"toy\", \"description\": \"a toy\",\n"
    " \"calibration\": \"toy.kernels.json\",\n"
    " \"architectures\": [{\"name\": \"x5650\", \"backend\": \"cpu\"},\n"
    "                   {\"name\": \"c2050\", \"backend\": \"cuda\"}],\n"
    " \"host\": {\"memory_bytes\": 1024, \"origin\": \"o\"},\n"
    " \"sockets\": [{\"architecture\": \"x5650\", \"cores\": 4, \"origin\": \"o\"}],\n"
    " \"links\": [{\"name\": \"pcie\", \"to_device\": {\"bandwidth_Bps\": 6e9, \"latency_s\": "
    "1e-5},\n"
    "  \"to_host\": {\"bandwidth_Bps\": 5e9, \"latency_s\": 2e-5}, \"origin\": \"o\"}],\n"
    " \"peers\": [{\"name\": \"p2p\", \"reach\": \"switch\", \"up\": {\"bandwidth_Bps\": 4e9,\n"
    "  \"latency_s\": 0}, \"down\": {\"bandwidth_Bps\": 4e9, \"latency_s\": 0},"
    " \"own_link\": false, \"origin\": \"o\"}],\n"
    " \"switches\": [{\"socket\": 0, \"link\": \"pcie\", \"gpus\": [0, 1], \"origin\": \"o\"}],\n"
    " \"gpus\": [{\"architecture\": \"c2050\", \"memory_bytes\": 4096, \"origin\": \"o\"},\n"
    "  {\"architecture\": \"c2050\", \"memory_bytes\": 4096, \"origin\": \"o\"}],\n"
    " \"order\": [1, 0],\n"
    " \"costs\": {\"submit_s\": 0, \"push_s\": 0, \"pop_s\": 0, \"steal_s\": 0,\n"
    "  \"kernel_launch_s\": 0, \"copy_launch_s\": 0, \"event_s\": 1e-6, \"wake_s\": 2e-6,\n"
    "  \"spin_s\": 3e-6, \"foreign_s\": 1e-8, \"origin\": \"o\"},\n"
    " \"network\": {\"kind\": \"torus\", \"bandwidth_Bps\": 1e10, \"latency_s\": 1e-6,\n"
    "  \"overhead_s\": 1e-6, \"rendezvous_s\": 2e-6, \"eager_bytes\": 1, \"shape\": \"4x4\",\n"
    "  \"origin\": \"o\"},\n"
    " \"sharing\": {\"shared_bytes\": 1048576, \"bandwidth_Bps\": 2e10,\n"
    "  \"origin\": \"o\"},\n"
    " \"cores\": 3, \"first_waits\": true, \"probe\": {\"seconds\": 0.03, \"origin\": \"p\"}}\n";

static const char good_xml[] =
    "<?xml version='1.0'?>\n<!DOCTYPE platform SYSTEM \"simgrid.dtd\">\n"
    "<platform version=\"4.1\">\n<zone id=\"z\" routing=\"Full\">\n"
    "<prop id=\"duet.schema\" value=\"1\"/>\n"
    "<prop id=\"duet.arch.0\" value=\"a cpu\"/>\n"
    "<prop id=\"duet.worker.0\" value=\"cpu0 a host 0 1\"/>\n"
    "<prop id=\"duet.cost.pop_s\" value=\"1e-7\"/><prop id=\"duet.cores\" value=\"3\"/>"
    "<prop id=\"duet.sharing.shared_bytes\" value=\"4\"/>"
    "<prop id=\"duet.first_waits\" value=\"true\"/>"
    "<prop id=\"duet.sharing.bandwidth_Bps\" value=\"20GBps\"/>\n"
    "<host id=\"host\" speed=\"1f\"><prop id=\"duet.kind\" value=\"host\"/></host>\n"
    "<host id=\"gpu0\" speed=\"1f\"><prop id=\"duet.capacity_bytes\" value=\"10\"/></host>\n"
    "<link id=\"l\" bandwidth=\"1GBps\" latency=\"1us\"/>\n"
    "<link id=\"d\" bandwidth=\"1GBps\" sharing_policy=\"SPLITDUPLEX\"/>\n"
    "<route src=\"host\" dst=\"gpu0\"><link_ctn id=\"l\"/></route>\n"
    "</zone>\n</platform>\n";

/* Returns `text` with the first `old` replaced. */
static char *with(const char *text, const char *old, const char *new)
{
    const char *at = strstr(text, old);
    if (at == NULL)
        g_error("the good text has no \"%s\"", old);
    return g_strdup_printf("%.*s%s%s", (int)(at - text), text, new, at + strlen(old));
}

/* A folder with the kernel times that the good description names; made and removed by main. */
static char *folder;

static int parse(const char *text, size_t length, bool xml, struct duet_message *message)
{
    g_autofree char *path = g_build_filename(folder, xml ? "bad.xml" : "bad.json", NULL);
    OWNED(free_platform) struct duet__platform *p = NULL;
    int error = duet__platform_parse(text, length, path, xml, &p, message);
    g_assert_cmpint(!error, ==, p != NULL);
    return error;
}

struct bad {
    const char *old, *new, *fragment;
};

static const struct bad json_cases[] = {
    {"{\"schema\"", "[\"schema\"", "bad.json:1:"},
    {" \"order\"", " \"order\" \"order\"", "bad.json:14:"},
    {"\"order\"", "\"name\": \"x\", \"order\"", "bad.json:14: duplicate object key"},
    {"\"order\"", "/* no */ \"order\"", "bad.json:14: string or '}' expected near '/'"},
    {"\"a toy\"", "\"\\ud800\\u0041\"", "bad.json:1: invalid Unicode"},
    {"\"schema\": 1", "\"schema\": 3", "schema: 3 is out of range"},
    {"\"schema\": 1", "\"schema\": \"1\"", "schema: expected a number"},
    {"\"schema\": 1, ", "", "schema: missing"},
    {"\"name\": \"toy\"", "\"name\": \"t y\"", "name: \"t y\" is no name"},
    {"\"name\": \"toy\"", "\"name\": \"\"", "name: \"\" is no name"},
    {"\"name\": \"toy\"", "\"name\": \"abcdefghijklmnopqrstuvwxyz0123456789\"", "1 to 31"},
    {"\"description\": \"a toy\"", "\"description\": null", "description: expected a string"},
    {"\"order\"", "\"ordre\"", "unknown key \"ordre\" (known: schema, name"},
    {"\"x5650\", \"backend\": \"cpu\"", "\"c2050\", \"backend\": \"cpu\"",
     "architectures[1].name: architecture c2050 is there twice"},
    {"\"cores\": 4", "\"cores\": 0", "sockets[0].cores: 0 is out of range"},
    {"\"cores\": 4", "\"cores\": 1.5", "sockets[0].cores: 1.5 is not a whole number"},
    {"\"cores\": 4", "\"cores\": 99999999", "sockets[0].cores"},
    {"\"cores\": 4", "\"cores\": true", "sockets[0].cores: expected a number"},
    {"\"cores\": 4", "\"core\": 4", "sockets[0]: unknown key \"core\""},
    {"\"cores\": 4", "\"cores\": 4, \"hub\": {\"to_host_Bps\": 8, \"origin\": \"o\"}",
     "sockets[0].hub.to_host_Bps: 8 is out of range"},
    {"\"x5650\", \"cores\"", "\"k40m\", \"cores\"", "no architecture is named k40m"},
    {"\"x5650\", \"cores\"", "\"c2050\", \"cores\"", "c2050 has backend cuda, expected cpu"},
    {"\"c2050\", \"memory", "\"x5650\", \"memory", "gpus[0].architecture: x5650 has backend cpu"},
    {"\"memory_bytes\": 4096", "\"memory_bytes\": -1", "gpus[0].memory_bytes: -1 is out of range"},
    {"\"memory_bytes\": 4096", "\"memory_bytes\": 1e300", "gpus[0].memory_bytes: 1e+300"},
    {"\"memory_bytes\": 4096", "\"memory_bytes\": 1180591620717411303424",
     "bad.json:12: too big integer"},
    {"\"memory_bytes\": 4096", "\"memory_bytes\": 9223372036854775808",
     "bad.json:12: too big integer"},
    {"\"memory_bytes\": 4096", "\"memory_bytes\": 9223372036854775807",
     "gpus[0].memory_bytes: 9.223372037e+18 is out of range"},
    {"\"memory_bytes\": 4096", "\"memory_bytes\": [1]", "memory_bytes: expected a number"},
    {"\"bandwidth_Bps\": 6e9", "\"bandwidth_Bps\": 0",
     "links[0].to_device.bandwidth_Bps: 0 is out of range"},
    {"\"bandwidth_Bps\": 6e9", "\"bandwidth_Bps\": 1e999", "bad.json:7: real number overflow"},
    {"\"bandwidth_Bps\": 6e9", "\"bandwidth_Bps\": NaN", "bad.json:7:"},
    {"\"latency_s\": 1e-5", "\"latency_s\": -1e-5", "links[0].to_device.latency_s"},
    {"\"latency_s\": 1e-5", "\"latency\": 1e-5", "links[0].to_device: unknown key"},
    {"\"to_device\": {", "\"to_device\": [], \"x\": {", "links[0]: unknown key \"x\""},
    {"\"pcie\", \"to", "\"averylongnameforalink\", \"to", "links[0].name"},
    {"\"p2p\"", "\"pcie\"", "peers[0].name: link kind pcie is there twice"},
    {"\"p2p\"", "\"all\"", "peers[0].name: all means all kinds of links: choose another"},
    {"\"p2p\"", "\"peer_to_peers\"",
     "peers[0].name: \"peer_to_peers\" is no name: 1 to 12 letters"},
    {"\"reach\": \"switch\"", "\"reach\": \"near\"", "peers[0].reach: \"near\""},
    {"\"reach\": \"switch\"", "\"reach\": \"switch\", \"architecture\": \"c2051\"",
     "peers[0].architecture: no architecture is named c2051"},
    {"\"reach\": \"switch\"", "\"reach\": \"switch\", \"architecture\": \"x5650\"",
     "peers[0].architecture: x5650 has backend cpu, expected another than cpu"},
    {"\"socket\": 0", "\"socket\": 1", "switches[0].socket: no socket 1 (there are 1, from 0)"},
    {"\"link\": \"pcie\"", "\"link\": \"qpi\"", "switches[0].link: no link kind is named qpi"},
    {"[0, 1]", "[0, 9]", "switches[0].gpus[1]: no GPU 9 (there are 2, from 0)"},
    {"[0, 1]", "[0, 0]", "switches[0].gpus[1]: GPU 0 is behind switch 0 already"},
    {"[0, 1]", "[0]", "gpus[1]: GPU 1 is behind no switch"},
    {"[0, 1]", "[]", "switches[0].gpus: has 0 elements"},
    {"[0, 1]", "{}", "switches[0].gpus: expected an array"},
    {"[1, 0]", "[1]", "order: has 1 elements, expected 2 to 2"},
    {"[1, 0]", "[1, 1]", "order[1]: GPU 1 is there twice"},
    {"[1, 0]", "[1, 2]", "order[1]: 2 is out of range"},
    {", \"origin\": \"o\"}],\n \"links\"", "}],\n \"links\"", "sockets[0].origin: missing"},
    {"\"steal_s\": 0", "\"steal_s\": -0.1", "costs.steal_s: -0.1 is out of range"},
    {"\"steal_s\": 0,", "", "costs.steal_s: missing"},
    {"\"event_s\": 1e-6", "\"event_s\": -1", "costs.event_s: -1 is out of range"},
    {"\"wake_s\": 2e-6", "\"wake_s\": \"2\"", "costs.wake_s: expected a number"},
    {"\"spin_s\": 3e-6", "\"spin_s\": 1e4", "costs.spin_s: 10000 is out of range"},
    {"\"torus\"", "\"file\"", "network.kind: "},
    {"\"shape\": \"4x4\"", "\"shape\": \"4;4\"", "network.shape: '4;4' is no shape of a torus"},
    {"\"shape\": \"4x4\"", "\"shape\": 4", "network.shape: expected a string"},
    {"\"eager_bytes\": 1,", "", "network.eager_bytes: missing"},
    {"\"spin_s\"", "\"spin\"", "costs: unknown key \"spin\" (known: submit_s"},
    {"\"own_link\": false", "\"own_link\": 0", "peers[0].own_link: expected true or false"},
    {"\"sharing\": {", "\"sharing\": [], \"x\": {", "unknown key \"x\""},
    {"{\"shared_bytes\": 1048576", "[{\"shared_bytes\": 1048576", "bad.json:23:"},
    {"\"shared_bytes\": 1048576", "\"shared_bytes\": 1.5",
     "sharing.shared_bytes: 1.5 is not a whole number"},
    {"\"shared_bytes\": 1048576, ", "", "sharing.shared_bytes: missing"},
    {"\"shared_bytes\"", "\"private_bytes\"", "sharing: unknown key \"private_bytes\""},
    {"\"shared_bytes\": 1048576", "\"shared_bytes\": -1", "sharing.shared_bytes: -1 is out of"},
    {"\"bandwidth_Bps\": 2e10", "\"bandwidth_Bps\": 20",
     "sharing.bandwidth_Bps: 20 is out of range, expected 0 or 1000"},
    {"\"bandwidth_Bps\": 2e10", "\"bandwidth_Bps\": -1", "sharing.bandwidth_Bps: -1 is out of"},
    {"2e10,\n  \"origin\": \"o\"", "2e10", "sharing.origin: missing"},
    {"\"cores\": 3", "\"cores\": -3", "cores: -3 is out of range"},
    {"\"cores\": 3", "\"cores\": 65537", "cores: 65537 is out of range"},
    {"\"cores\": 3", "\"cores\": {}", "cores: expected a number"},
    {"\"first_waits\": true", "\"first_waits\": 1", "first_waits: expected true or false"},
    {"\"first_waits\": true", "\"first_waits\": \"true\"", "first_waits: expected true or false"},
    {"\"seconds\": 0.03", "\"seconds\": 0", "probe.seconds: 0 is out of range"},
    {"\"seconds\": 0.03, ", "", "probe.seconds: missing"},
    {"\"seconds\": 0.03", "\"second\": 0.03", "probe: unknown key \"second\""},
    {", \"origin\": \"p\"", "", "probe.origin: missing"},
    {"toy.kernels.json", "../etc/passwd", "calibration: \"../etc/passwd\" is no name"},
    {"toy.kernels.json", "nothing.json", "nothing.json: cannot open"},
    {"toy.kernels.json", "other.kernels.json",
     "other.kernels.json: curves[0].arch: toy has no architecture named k40m"},
    {" \"calibration\": \"toy.kernels.json\",\n", "",
     "curves: missing, expected kernel times here"},
    {"\"calibration\"", "\"curves\": [], \"calibration\"",
     "calibration: the kernel times are in this file, too"},
    {"\"calibration\": \"toy.kernels.json\"", "\"curves\": [{\"kernel\": 1}]",
     "curves[0].kernel: expected a string"},
    {"\"name\": \"toy\"", "\"name\": \"\"", "name: \"\" is no name"},
    {"toy.kernels.json", "machine.json", "machine.json: unknown key"},
};

static const struct bad xml_cases[] = {
    {"<platform", "<plat", "bad.xml:15:"},
    {"</platform>", "", "bad.xml:1"},
    {"version=\"4.1\"", "version=\"3\"", "bad.xml:3: version: \"3\" is not read, only 4.x"},
    {"\"simgrid.dtd\"", "\"s\" [<!ENTITY e \"e\">]", "declarations inside <!DOCTYPE>"},
    {"\"Full\"", "\"Floyd\"", "bad.xml:4: zone[0].routing: \"Floyd\", expected one of Full"},
    {"<link id=\"d\"", "<cluster id=\"d\"", "bad.xml:12: zone[0].cluster[0]: not read"},
    {"<route", "<zoneRoute/><route", "bad.xml:13: zone[0].zoneRoute[0]: not read by duet"},
    {"<route", "text<route", "<zone>: text or entities inside an element are not read"},
    {"<route", "&bla;<route", "bad.xml:4: <zone>: text or entities inside an element"},
    {"</zone>", "</zone><zone id=\"y\" routing=\"Full\"/>", "bad.xml:3: zone: has 2 elements"},
    {"speed=\"1f\"", "speed=\"1f\" pstate=\"1\"",
     "bad.xml:9: zone[0].host[0]: unknown key \"pstate\""},
    {"id=\"gpu0\"", "id=\"host\"", "bad.xml:10: zone[0].host[1]: host host is there twice"},
    {"id=\"gpu0\"", "id=\"gpu 0\"", "is no name"},
    {"id=\"gpu0\"", "name=\"gpu0\"", "zone[0].host[1]: unknown key \"name\""},
    {"value=\"10\"", "value=\"-10\"", "duet.capacity_bytes: \"-10\" is no whole number"},
    {"<prop id=\"duet.capacity_bytes\" value=\"10\"/>", "",
     "bad.xml:10: zone[0].host[1]: host gpu0 is a device: say its memory"},
    {"duet.capacity_bytes", "duet.capacity", "zone[0].host[1].duet: unknown key \"capacity\""},
    {"value=\"host\"", "value=\"hots\"", "duet.kind: \"hots\", expected one of device, host"},
    {"bandwidth=\"1GBps\"", "bandwidth=\"1GBs\"",
     "zone[0].link[0].bandwidth: \"1GBs\" is no bandwidth"},
    {"bandwidth=\"1GBps\"", "bandwidth=\"-1\"",
     "zone[0].link[0].bandwidth: \"-1\" is no bandwidth"},
    {"bandwidth=\"1GBps\"", "bandwidth=\"nan\"",
     "zone[0].link[0].bandwidth: \"nan\" is no bandwidth"},
    {"latency=\"1us\"", "latency=\"1e999s\"", "zone[0].link[0].latency: \"1e999s\" is no duration"},
    {"bandwidth=\"1GBps\"", "bandwidth=\"10us\"", "link[0].bandwidth: \"10us\" is no bandwidth"},
    {"bandwidth=\"1GBps\"", "bandwidth=\"0\"", "link[0].bandwidth: 0 is out of range"},
    {"duet.cores", "duet.first_waits", "bad.xml:8: <prop>: duet.first_waits is there twice"},
    {"duet.cores", "duet.cost", "bad.xml:8: <prop>: duet.cost is there twice"},
    {"duet.schema", "duet.cost", "bad.xml:8: <prop>: duet.cost.pop_s is no name of a property"},
    {"SPLITDUPLEX", "WIFI", "link[1].sharing_policy: \"WIFI\", expected one of SHARED, FATPIPE"},
    {"link id=\"d\"", "link id=\"l\"", "bad.xml:12: zone[0].link[1]: link l is there twice"},
    {"link_ctn id=\"l\"", "link_ctn id=\"x\"",
     "bad.xml:13: zone[0].route[0].link_ctn[0]: no link is named \"x\""},
    {"link_ctn id=\"l\"", "link_ctn id=\"d\"", "d is SPLITDUPLEX: direction is UP or DOWN"},
    {"link_ctn id=\"l\"", "link_ctn id=\"l\" direction=\"UP\"", "l is not SPLITDUPLEX"},
    {"dst=\"gpu0\"", "dst=\"gpu1\"", "bad.xml:13: zone[0].route[0].dst: no host is named gpu1"},
    {"dst=\"gpu0\"", "dst=\"host\"", "a route from a host to itself"},
    {"dst=\"gpu0\"", "dst=\"gpu0\" symmetrical=\"NO\"", "1 routes cannot join"},
    {"<link_ctn id=\"l\"/>", "", "zone[0].route[0].link_ctn: missing"},
    {"</zone>", "<route src=\"gpu0\" dst=\"host\"><link_ctn id=\"l\"/></route></zone>",
     "two routes from gpu0 to host"},
    {"duet.schema\" value=\"1", "duet.schema\" value=\"2",
     "bad.xml:5: zone[0].duet.schema: 2 is out of range"},
    {"a cpu", "a", "bad.xml:6: zone[0].duet.arch[0].backend: missing"},
    {"cpu0 a host 0 1", "cpu0 b host 0 1", "worker[0].architecture: no architecture is named b"},
    {"cpu0 a host 0 1", "cpu0 a nowhere 0 1", "worker[0].host: no host is named nowhere"},
    {"cpu0 a host 0 1", "cpu0 a host 0 0", "worker cpu0: the window"},
    {"cpu0 a host 0 1", "cpu0 a host 0 1 x", "window_short: \"x\" is no whole number"},
    {"cpu0 a host 0 1", "cpu0 a host 0 1 2 3",
     "bad.xml:7: zone[0].duet.worker[0]: \"cpu0 a host 0 1 2 3\" has more"},
    {"cpu0 a host 0 1", "cpu0 a host 0 1025",
     "worker[0].window: 1025 is out of range, expected 0 to 1024"},
    {"cpu0 a host 0 1", "cpu0 a host 0 1 4294967295", "worker[0].window_short: 4294967295 is out"},
    {"cpu0 a host 0 1", "cpu0 a host 0 3 2", "worker cpu0: the window of short tasks"},
    {"duet.worker.0", "duet.worker.1", "duet.worker.1: numbers start at 0 without a gap"},
    {"duet.cost.pop_s", "duet.cost.pop", "bad.xml:8: zone[0].duet.cost: unknown key \"pop\""},
    {"duet.schema", "duet.unknown", "zone[0].duet: unknown key \"unknown\""},
    {"\"duet.cores\" value=\"3\"", "\"duet.cores\" value=\"-3\"",
     "bad.xml:8: zone[0].duet.cores: \"-3\" is no whole number"},
    {"duet.cores", "duet.core", "zone[0].duet: unknown key \"core\""},
    {"\"4\"", "\"4k\"", "duet.sharing.shared_bytes: \"4k\" is no whole number"},
    {"\"true\"", "\"yes\"", "duet.first_waits: \"yes\" is no truth value"},
    {"\"20GBps\"", "\"fast\"", "duet.sharing.bandwidth_Bps: \"fast\" is no bandwidth"},
    {"\"1e-7\"", "\"soon\"", "duet.cost.pop_s: \"soon\" is no duration"},
};

static void check_table(const char *text, const struct bad *cases, size_t count, bool xml)
{
    for (size_t i = 0; i < count; i++) {
        g_autofree char *changed = with(text, cases[i].old, cases[i].new);
        int error = parse(changed, strlen(changed), xml, hear());
        if (!error)
            g_error("accepted: \"%s\" for \"%s\"", cases[i].new, cases[i].old);
        g_assert_cmpstr(heard(), !=, "");
        SAYS(cases[i].fragment);
        g_assert_cmpint(parse(changed, strlen(changed), xml, NULL), ==, error);
    }
}

static void test_json(void)
{
    WORKS(parse(good, strlen(good), false, hear()));
    check_table(good, json_cases, G_N_ELEMENTS(json_cases), false);
}

static void test_xml(void)
{
    WORKS(parse(good_xml, strlen(good_xml), true, hear()));
    check_table(good_xml, xml_cases, G_N_ELEMENTS(xml_cases), true);
}

static void read_calibration(const char *text, int expected, const char *fragment)
{
    static const struct duet_arch archs[] = {{"a", "cpu"}, {"b", "cuda"}};
    OWNED(duet__platform_fini)
    struct duet__platform p = {.name = "toy",
                               .archs = g_memdup2(archs, sizeof(archs)),
                               .arch_count = G_N_ELEMENTS(archs)};
    g_assert_cmpint(duet__read_calibration(&p, text, strlen(text), "t.json", hear()), ==, expected);
    if (fragment != NULL) {
        SAYS("t.json: ");
        SAYS(fragment);
    }
    g_assert_cmpuint(p.calibration.count, ==, expected == DUET_OK);
}

static void test_calibrations(void)
{
#define CONDITION                                                                                  \
    "{\"cold\": true, \"busy\": false, \"samples\": 5, \"mean_s\": 6, \"median_s\": 7, "           \
    "\"deviation_s\": 8}"
#define POINT                                                                                      \
    "{\"size\": 1, \"flops\": 8, \"mean_s\": 1, \"deviation_s\": 0, \"samples\": 3, "              \
    "\"median_s\": 1, \"rejected\": 2, \"base_s\": 1, \"memory_s\": 1, \"busy_ratio\": 2, "        \
    "\"noise\": 0.5, \"conditions\": [" CONDITION "]}"
#define CURVES(points)                                                                             \
    "{\"schema\": 1, \"curves\": [{\"kernel\": \"k\", \"arch\": \"a\", \"context\": \"w\", "       \
    "\"origin\": \"o\", "                                                                          \
    "\"points\": [" points "]}]}"
    static const struct bad cases[] = {
        {POINT, POINT ", " POINT, "curves[0]: kernel k on a: two points of work 8"},
        {POINT, "", "curves[0].points: has 0 elements"},
        {"\"mean_s\": 1", "\"mean_s\": 0", "curves[0].points[0].mean_s: 0 is out of range"},
        {"\"samples\": 3", "\"samples\": 0", "curves[0].points[0].samples"},
        {"\"flops\": 8, ", "", "expected one of flops, bytes and work"},
        {"\"flops\": 8", "\"flops\": 8, \"bytes\": 8", "has both flops and bytes"},
        {POINT,
         POINT ", {\"bytes\": 9, \"size\": 1, \"mean_s\": 1, \"deviation_s\": 0, \"samples\": 1}",
         "points[1]: has bytes where the points before have flops"},
        {"\"flops\": 8", "\"flops\": -8", "points[0].flops: -8 is out of range"},
        {"\"kernel\": \"k\"", "\"kernel\": 3", "curves[0].kernel: expected a string"},
        {"\"arch\": \"a\"", "\"arch\": \"c\"",
         "curves[0].arch: toy has no architecture named c (it has: a, b)"},
        {"\"origin\": \"o\", ", "", "curves[0].origin: missing"},
        {"\"context\": \"w\"", "\"context\": \"\"", "curves[0].context: \"\" is no name"},
        {"\"context\": \"w\"", "\"context\": 1", "curves[0].context: expected a string"},
        {"\"median_s\": 1", "\"median_s\": -1", "points[0].median_s: -1 is out of range"},
        {"\"rejected\": 2", "\"rejected\": 0.5", "points[0].rejected: 0.5 is not a whole number"},
        {"\"base_s\": 1", "\"base_s\": -1", "points[0].base_s: -1 is out of range"},
        {"\"memory_s\": 1", "\"memory_s\": -1", "points[0].memory_s: -1 is out of range"},
        {"\"memory_s\": 1", "\"memory_s\": [1]", "points[0].memory_s: expected a number"},
        {"\"busy_ratio\": 2", "\"busy_ratio\": -2", "points[0].busy_ratio: -2 is out of range"},
        {"\"busy_ratio\": 2", "\"busy_ratio\": 2000",
         "curves[0]: kernel k on a, point 0: times must be finite"},
        {"\"noise\": 0.5", "\"noise\": -1", "points[0].noise: -1 is out of range"},
        {"\"noise\": 0.5", "\"noise\": 11", "points[0].noise: 11 is out of range"},
        {"\"noise\": 0.5", "\"quantiles\": [1]", "points[0]: unknown key \"quantiles\""},
        {"\"curves\"", "\"curve\"", "unknown key \"curve\""},
        {"\"schema\": 1", "\"schema\": 0", "schema: 0 is out of range"},
    };
    static const char text[] = CURVES(POINT);
    read_calibration(text, DUET_OK, NULL);
    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *changed = with(text, cases[i].old, cases[i].new);
        read_calibration(changed, DUET_EPARSE, cases[i].fragment);
    }
}

/* Documents that are not even close. */
static void test_garbage(void)
{
    GString *deep = g_string_new(NULL);
    static const char zero[] = "{\"schema\": 1, \0}";
    static const char *const texts[] = {"",      " ",           "null",
                                        "[]",    "{}",          "3",
                                        "\"x\"", "{",           "\xff\xfe",
                                        "<a/>",  "<platform/>", "<platform version=\"4\"/>",
                                        "]]"};
    for (unsigned i = 0; i < 100000; i++)
        g_string_append_c(deep, '[');
    for (unsigned xml = 0; xml < 2; xml++) {
        for (unsigned i = 0; i < G_N_ELEMENTS(texts); i++) {
            FAILS(parse(texts[i], strlen(texts[i]), xml, hear()), DUET_EPARSE,
                  xml ? "bad.xml" : "bad.json");
        }
        g_assert_cmpint(parse(zero, sizeof(zero) - 1, xml, hear()), ==, DUET_EPARSE);
        g_assert_cmpint(parse(deep->str, deep->len, xml, hear()), ==, DUET_EPARSE);
    }
    g_string_free(deep, TRUE);
}

/* Writes the kernel times of one curve on this architecture. */
static void put_times(const char *name, const char *arch)
{
    g_autofree char *file = g_build_filename(folder, name, NULL);
    g_autofree char *text =
        g_strdup_printf("{\"schema\": 1, \"curves\": [{\"kernel\": \"k\", \"arch\": \"%s\", "
                        "\"origin\": \"o\", \"points\": [{\"size\": 1, \"flops\": 8, "
                        "\"mean_s\": 1, \"deviation_s\": 0, \"samples\": 3}]}]}",
                        arch);
    g_assert_true(g_file_set_contents(file, text, -1, NULL));
}

int main(int argc, char **argv)
{
    static const char *const names[] = {"toy.kernels.json", "other.kernels.json", "machine.json"};
    char *file;
    int status;
    g_test_init(&argc, &argv, NULL);
    folder = new_folder();
    put_times(names[0], "c2050");
    put_times(names[1], "k40m");
    file = g_build_filename(folder, names[2], NULL);
    g_assert_true(g_file_set_contents(file, good, -1, NULL));
    g_free(file);
    g_test_add_func("/bad-input/json", test_json);
    g_test_add_func("/bad-input/xml", test_xml);
    g_test_add_func("/bad-input/calibrations", test_calibrations);
    g_test_add_func("/bad-input/garbage", test_garbage);
    status = g_test_run();
    drop_folder(&folder);
    return status;
}
