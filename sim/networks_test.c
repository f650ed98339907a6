/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Networks between nodes: times of flows of 1 GB from card to card, by hand. Every card and cable
 * has 1 GB/s in each direction.
 */
#include <math.h>
#include <string.h>
#include <unistd.h>

#include <glib.h>

#include "sim/network.h"
#include "sim/testing.h"

enum { FLOWS = 4, SEEDS = 40, MANY = 400 };

struct scene {
    const char *name;
    struct duet__network network;
    unsigned nodes, flows[FLOWS][2]; /* all from the beginning; from and to the same: none */
    double end_s[FLOWS];
};

#define LEVELS(count, ...) .levels = (count), __VA_ARGS__

static const struct scene scenes[] = {
    {"two into one card share it, out of it is free",
     {.kind = DUET__NETWORK_SWITCH},
     3,
     {{0, 1}, {2, 1}, {1, 0}},
     {2, 2, 1}},
    {"two out of one card share it, others do not care",
     {.kind = DUET__NETWORK_SWITCH},
     5,
     {{0, 1}, {0, 2}, {3, 4}},
     {2, 2, 1}},
    {"half of a tree sends to the other half by one cable",
     {.kind = DUET__NETWORK_FAT_TREE, LEVELS(2, .down = {2, 2}, .up = {1, 1}, .cables = {1, 1})},
     4,
     {{0, 2}, {1, 3}, {2, 0}},
     {2, 2, 1}},
    {"within a switch of the tree",
     {.kind = DUET__NETWORK_FAT_TREE, LEVELS(2, .down = {2, 2}, .up = {1, 1}, .cables = {1, 1})},
     4,
     {{0, 1}, {1, 0}, {2, 3}},
     {1, 1, 1}},
    {"half of a tree to the other half by as many cables as nodes",
     {.kind = DUET__NETWORK_FAT_TREE, LEVELS(2, .down = {2, 2}, .up = {1, 2}, .cables = {1, 1})},
     4,
     {{0, 2}, {1, 3}, {2, 0}, {3, 1}},
     {1, 1, 1, 1}},
    {"neighbours on a ring, both ways",
     {.kind = DUET__NETWORK_TORUS, LEVELS(1, .down = {5})},
     5,
     {{0, 1}, {1, 0}, {2, 3}, {3, 4}},
     {1, 1, 1, 1}},
    {"two ways over one cable of a ring",
     {.kind = DUET__NETWORK_TORUS, LEVELS(1, .down = {5})},
     5,
     {{0, 2}, {1, 3}, {3, 4}},
     {2, 2, 1}},
    {"two neighbours of a node: two cables, one card",
     {.kind = DUET__NETWORK_TORUS, LEVELS(2, .down = {3, 3})},
     9,
     {{0, 1}, {0, 3}, {4, 5}},
     {2, 2, 1}},
    {"two groups and the cable between them",
     {.kind = DUET__NETWORK_DRAGONFLY, LEVELS(4, .down = {2, 1, 2, 2}, .cables = {1, 1, 1, 1})},
     8,
     {{0, 4}, {2, 6}, {3, 2}, {4, 5}},
     {2, 2, 1, 1}},
    {"a cable between chassis, and one between routers of a chassis",
     {.kind = DUET__NETWORK_DRAGONFLY, LEVELS(4, .down = {1, 2, 2, 2}, .cables = {1, 1, 1, 1})},
     8,
     {{0, 6}, {1, 7}, {2, 3}},
     {2, 2, 1}},
    {"two groups and two cables between them",
     {.kind = DUET__NETWORK_DRAGONFLY, LEVELS(4, .down = {2, 1, 2, 2}, .cables = {2, 1, 1, 1})},
     8,
     {{0, 4}, {2, 7}, {4, 0}},
     {1, 1, 1}},
    {"more groups than routers in a chassis, and the cable between two of them",
     {.kind = DUET__NETWORK_DRAGONFLY, LEVELS(4, .down = {4, 2, 2, 1}, .cables = {1, 1, 1, 1})},
     16,
     {{0, 12}, {3, 13}, {12, 0}, {15, 8}},
     {2, 2, 1, 1}},
};

struct run {
    const struct network_engine *engine;
    struct network *network;
    double end_s[FLOWS];
    unsigned arrived;
};

static double never(void *owner)
{
    return INFINITY;
}

static void arrived(void *owner, void *tag)
{
    struct run *run = owner;
    *(double *)tag = run->engine->clock(run->network);
    run->arrived++;
}

static int open_network(struct run *run, const struct duet__network *network, unsigned nodes,
                        struct duet_message *message)
{
    static const struct network_calls calls = {.next = never, .arrived = arrived};
    struct duet_machine machine = lab_machine(&(struct lab_options){.cpus = 1, .gpus = 1});
    int error = run->engine->open(&run->network, &machine, nodes, network, &calls, run, message);
    duet_machine_fini(&machine);
    return error;
}

/* Opens a network of a file with that text; NULL: there is none. */
static int open_file(struct run *run, const char *text, struct duet__network *network,
                     unsigned nodes, struct duet_message *message)
{
    *network = (struct duet__network){.kind = DUET__NETWORK_FILE};
    g_snprintf(network->file, sizeof network->file, "%s/duet-networks-%d.xml", g_get_tmp_dir(),
               (int)getpid());
    if (text)
        g_assert_true(g_file_set_contents(network->file, text, -1, NULL));
    int error = open_network(run, network, nodes, message);
    (void)unlink(network->file);
    return error;
}

/* A copy from the first GPU of each node to its memory goes on beside it, 1 GB at 1 GB/s. */
static void check_scene(const struct scene *scene, const struct network_engine *engine)
{
    struct duet_message message = {""};
    struct duet__network network = scene->network;
    struct run run = {.engine = engine};
    double copied_s[2];
    unsigned flows = 0;
    network.bandwidth_Bps = 1e9;
    const int error = open_network(&run, &network, scene->nodes, &message);
    if (error == DUET_EIO && engine != &duet__network_fluid) { /* as SimGrid has no such one */
        g_assert_cmpuint(network.down[0], >, network.down[2]);
        g_assert_nonnull(strstr(message.text, "more groups than routers in a chassis"));
        return;
    }
    if (error)
        g_error("%s", message.text);
    for (; flows < FLOWS && scene->flows[flows][0] != scene->flows[flows][1]; flows++) {
        g_assert_true(engine->send(run.network, scene->flows[flows][0], scene->flows[flows][1],
                                   1000000000, &run.end_s[flows]));
        g_assert_cmpfloat(engine->latency(run.network, 0, 1), ==, 0);
    }
    g_assert_true(engine->copy(run.network, 0, 1, 0, 1000000000, &copied_s[0]));
    g_assert_true(engine->copy(run.network, 1, 1, 0, 1000000000, &copied_s[1]));
    engine->run(run.network);
    g_assert_cmpuint(run.arrived, ==, flows + 2);
    for (unsigned i = 0; i < flows; i++)
        assert_seconds(run.end_s[i], scene->end_s[i]);
    assert_seconds(copied_s[0], 1);
    assert_seconds(copied_s[1], 1);
    engine->close(run.network);
}

static void test_scene(const void *data)
{
    check_scene(data, &duet__network_fluid);
}

static void test_scene_simgrid(const void *data)
{
    check_scene(data, duet__network_simgrid(NULL));
}

/* Messages that an engine sends at random dates, and the dates of their ends. */
struct sending {
    const struct network_engine *engine;
    struct network *network;
    const struct message {
        unsigned from, to;
        uint64_t bytes;
        double date;
    } * next;
    double end_s[MANY];
    unsigned sent;
};

static double next_s(void *owner)
{
    const struct sending *sending = owner;
    return sending->sent < MANY ? sending->next[sending->sent].date : INFINITY;
}

static bool send_next(void *owner, double date)
{
    struct sending *sending = owner;
    const struct message *message = &sending->next[sending->sent];
    g_assert_true(sending->engine->send(sending->network, message->from, message->to,
                                        message->bytes, &sending->end_s[sending->sent++]));
    return false;
}

static void sent(void *owner, void *tag)
{
    struct sending *sending = owner;
    *(double *)tag = sending->engine->clock(sending->network);
}

/* Chooses a network of any kind, of at least two nodes. Returns their number. */
static unsigned random_network(struct duet__network *network, uint64_t *random)
{
    unsigned nodes = 1;
    *network = (struct duet__network){.kind = duet_random_below(random, DUET__NETWORK_FILE),
                                      .bandwidth_Bps = 1e9,
                                      .levels = 1 + duet_random_below(random, 3)};
    if (network->kind == DUET__NETWORK_DRAGONFLY)
        network->levels = 4;
    for (unsigned i = 0; i < network->levels; i++) {
        network->down[i] = 2 + duet_random_below(random, 4);
        network->up[i] = 1 + duet_random_below(random, 3);
        network->cables[i] = 1 + duet_random_below(random, 2);
    }
    if (network->kind == DUET__NETWORK_DRAGONFLY) {
        network->down[0] = 2 + duet_random_below(random, network->down[2] - 1);
        network->down[1] = 1; /* sim/routes.c says why */
    }
    for (unsigned i = 0; i < network->levels; i++)
        nodes *= network->down[i];
    return nodes;
}

/* duet's own engine gives the dates of SimGrid's, whose routes it finds itself. */
static void test_random(const void *argument)
{
    static const struct network_calls calls = {next_s, send_next, sent};
    const struct network_engine *engines[] = {&duet__network_fluid, duet__network_simgrid(NULL)};
    struct sending sendings[2] = {{.sent = 0}};
    struct message messages[MANY];
    struct duet__network network;
    struct duet_message why = {""};
    uint64_t random = GPOINTER_TO_UINT(argument);
    const unsigned together = random % 2 ? 2 : 40; /* about so many messages begin at one date */
    const unsigned nodes = random_network(&network, &random);
    struct duet_machine machine = lab_machine(&(struct lab_options){.cpus = 1, .gpus = 1});
    double date = 0;
    for (unsigned i = 0; i < MANY; i++) {
        const unsigned from = duet_random_below(&random, nodes);
        date += !duet_random_below(&random, together) * duet_random_unit(&random);
        messages[i] = (struct message){
            .from = from,
            .to = (from + 1 + duet_random_below(&random, nodes - 1)) % nodes,
            .bytes = (uint64_t)pow(10, 4 + 6 * duet_random_unit(&random)),
            .date = date,
        };
    }
    for (unsigned e = 0; e < 2; e++) {
        struct sending *sending = &sendings[e];
        *sending = (struct sending){.engine = engines[e], .next = messages};
        if (engines[e]->open(&sending->network, &machine, nodes, &network, &calls, sending, &why))
            g_error("%s", why.text);
        engines[e]->run(sending->network);
        engines[e]->close(sending->network);
    }
    for (unsigned i = 0; i < MANY; i++)
        if (fabs(sendings[0].end_s[i] - sendings[1].end_s[i]) > 1e-9)
            g_error("kind %u: %u to %u at %g: %.12g, by SimGrid %.12g", network.kind,
                    messages[i].from, messages[i].to, messages[i].date, sendings[0].end_s[i],
                    sendings[1].end_s[i]);
    duet_machine_fini(&machine);
}

/* Nodes are the hosts in natural order; latencies are told, and change no shares. */
static void test_file(void)
{
    static const char text[] =
        "<?xml version='1.0'?>\n"
        "<!DOCTYPE platform SYSTEM \"https://simgrid.org/simgrid.dtd\">\n"
        "<platform version=\"4.1\"><zone id=\"z\" routing=\"Full\">\n"
        "<host id=\"h10\" speed=\"1Gf\"/><host id=\"h9\" speed=\"1Gf\"/>"
        "<host id=\"h1\" speed=\"1Gf\"/>\n"
        "<link id=\"a\" bandwidth=\"1GBps\" latency=\"1ms\"/>"
        "<link id=\"b\" bandwidth=\"1GBps\" latency=\"7ms\"/>\n"
        "<route src=\"h1\" dst=\"h9\"><link_ctn id=\"a\"/></route>\n"
        "<route src=\"h1\" dst=\"h10\"><link_ctn id=\"a\"/><link_ctn id=\"b\"/></route>\n"
        "<route src=\"h9\" dst=\"h10\"><link_ctn id=\"b\"/></route>\n"
        "</zone></platform>\n";
    struct duet__network network;
    struct duet_message message = {""};
    struct run run = {.engine = duet__network_simgrid(NULL)};
    if (open_file(&run, text, &network, 3, &message))
        g_error("%s", message.text);
    assert_seconds(run.engine->latency(run.network, 0, 1), 0.001);
    assert_seconds(run.engine->latency(run.network, 2, 0), 0.008);
    g_assert_true(run.engine->send(run.network, 0, 1, 1000000000, &run.end_s[0]));
    g_assert_true(run.engine->send(run.network, 0, 2, 1000000000, &run.end_s[1]));
    run.engine->run(run.network);
    assert_seconds(run.end_s[0], 2);
    assert_seconds(run.end_s[1], 2);
    run.engine->close(run.network);
}

#define ZONE(inside)                                                                               \
    "<?xml version='1.0'?>\n<!DOCTYPE platform SYSTEM \"https://simgrid.org/simgrid.dtd\">\n"      \
    "<platform version='4.1'><zone id='z' routing='Full'>\n<host id='a' speed='1Gf'/>\n" inside    \
    "</zone></platform>\n"
#define JOINED(link, route)                                                                        \
    ZONE("<host id='b' speed='1Gf'/><link id='l' " link "/>\n"                                     \
         "<route src='a' dst='b' " route "><link_ctn id='l'/></route>\n")

/* A file that version 4 allows, with properties, which are left out. */
static void test_old_file(void)
{
    static const char text[] =
        "<platform version='4'><AS id='all' routing='Full'><prop id='a' value='b'/>\n"
        "<AS id='x' routing='Full'><host id='h0' speed='1Gf'><prop id='a' value='b'/></host></AS>\n"
        "<AS id='y' routing='Full'><host id='h1' speed='1Gf'/></AS>\n"
        "<link id='l' bandwidth='1GBps' latency='3ms'/><!-- one -->\n"
        "<ASroute src='x' dst='y' gw_src='h0' gw_dst='h1'><link_ctn id='l'/></ASroute>\n"
        "</AS></platform>\n";
    struct duet__network network;
    struct duet_message message = {""};
    struct run run = {.engine = duet__network_simgrid(NULL)};
    if (open_file(&run, text, &network, 2, &message))
        g_error("%s", message.text);
    assert_seconds(run.engine->latency(run.network, 1, 0), 0.003);
    run.engine->close(run.network);
}

static const struct wrong {
    const char *name, *text, *why;
} wrongs[] = {
    {"file", NULL, "cannot open"},
    {"syntax", "<platform version=\"4.1\"><zone></platform>\n", "line "},
    {"root", "<zone id='a'/>\n", "expected <platform>"},
    {"version", "<platform version='3'/>\n", "version 3 is not read"},
    {"config", ZONE("<config><prop id='tracing/filename' value='x'/></config>"),
     "line 5: <config> is not read"},
    {"include", ZONE("<include file='/dev/zero'/>"), "line 5: <include> is not read"},
    {"availability", ZONE("<host id='b' speed='1Gf' speed_file='x'/>"), "not read: speed_file"},
    {"declaration", "<!DOCTYPE platform [<!ENTITY a SYSTEM '/etc/passwd'>]>\n<platform/>\n",
     "declarations"},
    {"many", ZONE("<cluster id='c' radical='0-999999999' speed='1Gf' bw='1GBps' lat='1us'/>"),
     "more than 65536 hosts"},
    {"all", ZONE("<cluster id='c' radical='0-18446744073709551615' speed='1Gf'/>"),
     "more than 65536 hosts"},
    {"radical", ZONE("<cluster id='c' radical='-1' speed='1Gf' bw='1GBps' lat='1us'/>"),
     "is no list"},
    {"hosts", ZONE(""), "1 hosts for 2 nodes"},
    {"route", ZONE("<host id='b' speed='1Gf'/>"), "no route from a to b"},
    {"way", JOINED("bandwidth='1GBps' latency='1ms'", "symmetrical='NO'"), "no route from b to a"},
    {"bandwidth", JOINED("bandwidth='0GBps' latency='1ms'", ""), "link l needs"},
    {"unit", JOINED("bandwidth='1Foo' latency='1ms'", ""), ".xml: unknown unit: Foo"},
    {"latency", JOINED("bandwidth='1GBps' latency='-1ms'", ""), "link l needs"},
};

static void test_wrong(const void *data)
{
    const struct wrong *wrong = data;
    struct duet__network network;
    struct duet_message message = {""};
    struct run run = {.engine = duet__network_simgrid(NULL)};
    g_assert_cmpint(open_file(&run, wrong->text, &network, 2, &message), ==, DUET_EINVAL);
    g_assert_nonnull(strstr(message.text, network.file));
    g_assert_nonnull(strstr(message.text, wrong->why));
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    for (unsigned i = 0; i < G_N_ELEMENTS(scenes); i++) {
        g_autofree char *name = g_strdup_printf("/networks/%s", scenes[i].name);
        g_autofree char *again = g_strdup_printf("/networks/simgrid/%s", scenes[i].name);
        lab_add_on(name, &scenes[i], test_scene);
        if (duet__network_simgrid(NULL))
            lab_add_on(again, &scenes[i], test_scene_simgrid);
    }
    if (!duet__network_simgrid(NULL))
        return g_test_run();
    for (unsigned seed = 1; seed <= SEEDS; seed++) {
        g_autofree char *name = g_strdup_printf("/networks/random/%u", seed);
        lab_add_on(name, GUINT_TO_POINTER(seed), test_random);
    }
    lab_add("/networks/file", test_file);
    lab_add("/networks/old_file", test_old_file);
    for (unsigned i = 0; i < G_N_ELEMENTS(wrongs); i++) {
        g_autofree char *name = g_strdup_printf("/networks/refused/%s", wrongs[i].name);
        lab_add_on(name, &wrongs[i], test_wrong);
    }
    return g_test_run();
}
