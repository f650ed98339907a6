/* SPDX-License-Identifier: Apache-2.0 */
/*
 * SimGrid's network as duet sets it up, against an independent fluid model: random copies over
 * random links, whose rates are found anew at every event.
 */
#include "sim/network.h"

#include <string.h>

#include "core/testing_rates.h"
#include "platforms/catalogue.h"
#include "sim/testing.h"

enum { NODES = 7, LINKS = 12, COPIES = 300 };

struct copy {
    struct flow flow; /* first, as copies are found by it */
    uint64_t bytes;
    double start_s, end_s; /* as simulated */
    double left, expected_s;
};

struct scene {
    struct duet_machine machine;
    struct copy copies[COPIES]; /* ascending in start_s */
    unsigned started, arrived;
};

/* ------------------------------------------------------------------------------------------- */
/* The reference                                                                                */

/*
 * Computes the arrival of each copy: rates change when one starts or ends. Returns the most at a
 * time.
 */
static unsigned reference(struct scene *scene)
{
    struct flow *flows[COPIES];
    unsigned count = 0, next = 0, most = 0;
    double now = 0;
    while (count || next < COPIES) {
        double then = next < COPIES ? scene->copies[next].start_s : INFINITY;
        struct copy *first = NULL;
        flow_rates(&scene->machine, flows, count);
        for (unsigned i = 0; i < count; i++) {
            struct copy *copy = (struct copy *)flows[i];
            double end = now + copy->left / copy->flow.rate;
            if (end < then) {
                then = end;
                first = copy;
            }
        }
        for (unsigned i = 0; i < count; i++)
            ((struct copy *)flows[i])->left -= flows[i]->rate * (then - now);
        now = then;
        if (!first) {
            flows[count++] = &scene->copies[next].flow;
            scene->copies[next].left = (double)scene->copies[next].bytes;
            next++;
            most = MAX(most, count);
            continue;
        }
        first->expected_s = now;
        for (unsigned i = 0; i < count; i++)
            if (flows[i] == &first->flow)
                flows[i] = flows[--count];
    }
    return most;
}

/* ------------------------------------------------------------------------------------------- */
/* The network                                                                                  */

static bool alarm_rings(void *owner)
{
    struct scene *scene = owner;
    struct copy *copy = &scene->copies[scene->started++];
    g_assert_cmpfloat(fabs(duet__network_clock() - copy->start_s), <, 1e-12);
    duet__network_copy(0, copy->flow.source, copy->flow.destination, copy->bytes, copy);
    return false;
}

static void arrived(void *owner, void *tag)
{
    struct scene *scene = owner;
    struct copy *copy = tag;
    copy->end_s = duet__network_clock();
    scene->arrived++;
}

static int by_start(const void *left, const void *right)
{
    const struct copy *a = left, *b = right;
    return (a->start_s > b->start_s) - (a->start_s < b->start_s);
}

static void make_copies(struct scene *scene, uint64_t *random)
{
    for (unsigned i = 0; i < COPIES; i++) {
        struct copy *copy = &scene->copies[i];
        copy->flow.source = duet_random_below(random, NODES);
        copy->flow.destination =
            (copy->flow.source + 1 + duet_random_below(random, NODES - 1)) % NODES;
        copy->bytes = 1 + duet_random_below(random, 20000000);
        copy->start_s = 0.5 * duet_random_unit(random);
    }
    qsort(scene->copies, COPIES, sizeof scene->copies[0], by_start);
}

static void test_random(const void *argument)
{
    static const struct network_calls calls = {.alarm = alarm_rings, .arrived = arrived};
    static struct scene scene;
    struct duet_message message = {""};
    uint64_t random = GPOINTER_TO_UINT(argument);
    random_machine(&scene.machine, NODES, LINKS, false, &random);
    make_copies(&scene, &random);
    g_assert_cmpuint(reference(&scene), >, 10);
    if (duet__network_open(&scene.machine, 1, NULL, &calls, &scene, &message))
        g_error("%s", message.text);
    for (unsigned i = 0; i < COPIES; i++)
        duet__network_alarm(scene.copies[i].start_s);
    duet__network_run();
    g_assert_cmpuint(scene.arrived, ==, COPIES);
    for (unsigned i = 0; i < COPIES; i++) {
        const struct copy *copy = &scene.copies[i];
        if (fabs(copy->end_s - copy->expected_s) > 1e-9 * copy->expected_s)
            g_error("copy %u of %u bytes from %.12g arrives at %.15g, not %.15g", i,
                    (unsigned)copy->bytes, copy->start_s, copy->end_s, copy->expected_s);
    }
    g_assert_cmpint(duet__network_open(&scene.machine, 1, NULL, &calls, &scene, &message), ==,
                    DUET_EBUSY);
    g_assert_nonnull(strstr(message.text, "once"));
    duet__network_close();
    duet_machine_fini(&scene.machine);
}

/*
 * GPUs behind NVSwitch: a GPU's total is limited, in and out, and not only each copy. First two
 * copies leave GPU 0 and share what it has, then four pairs copy at full speed, then two copies
 * enter GPU 0.
 */
static void test_ports(void)
{
    static const struct network_calls calls = {.alarm = alarm_rings, .arrived = arrived};
    static const unsigned pairs[][3] = {{0, 1, 0}, {0, 2, 0}, {0, 1, 1}, {2, 3, 1},
                                        {4, 5, 1}, {6, 7, 1}, {1, 0, 2}, {2, 0, 2}};
    const struct duet__gpu_group gpus[] = {{8, "h100"}};
    const struct duet__assembly assembly = {.name = "eight",
                                            .sockets = 2,
                                            .gpus = gpus,
                                            .group_count = 1,
                                            .fabric = DUET_FABRIC_SWITCHED};
    const struct duet__platform_options whole = {.cpus = -1, .gpus = -1};
    static struct scene scene;
    struct duet__catalogue catalogue;
    struct duet__platform platform;
    struct duet_message message = {""};
    if (duet__catalogue_load(&catalogue, &message) ||
        duet__platform_assemble(&catalogue, &assembly, &platform, &message) ||
        duet__platform_build(&platform, &whole, &scene.machine, &message) ||
        duet__network_open(&scene.machine, 1, NULL, &calls, &scene, &message))
        g_error("%s", message.text);
    double port = platform.gpus[0].port_out_Bps;
    g_assert_cmpfloat_with_epsilon(port, 0.95 * 450e9, 1);
    for (unsigned i = 0; i < G_N_ELEMENTS(pairs); i++) {
        scene.copies[i] = (struct copy){.flow = {1 + pairs[i][0], 1 + pairs[i][1], 0},
                                        .bytes = 1000000000,
                                        .start_s = pairs[i][2]};
        duet__network_alarm(scene.copies[i].start_s);
    }
    duet__network_run();
    for (unsigned i = 0; i < G_N_ELEMENTS(pairs); i++)
        g_assert_cmpfloat_with_epsilon(scene.copies[i].end_s - scene.copies[i].start_s,
                                       1e9 / (pairs[i][2] == 1 ? port : port / 2), 1e-9);
    duet__network_close();
    duet_machine_fini(&scene.machine);
    duet__platform_fini(&platform);
    duet__catalogue_fini(&catalogue);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    lab_add("/network/ports", test_ports);
    for (unsigned seed = 1; seed <= 8; seed++) {
        char name[64];
        g_snprintf(name, sizeof name, "/network/random/%u", seed);
        lab_add_on(name, GUINT_TO_POINTER(seed), test_random);
    }
    return g_test_run();
}
