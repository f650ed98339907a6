/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of the description, from measured and from assumed copies. */
#include <string.h>

#include <glib.h>

#include "calibrate/calibrate.h"

enum { GPUS = 3 };

/* Bandwidth of each GPU alone, in both directions. */
static const double alone_Bps[GPUS] = {8e9, 12e9, 3e9};

/* A CPU, and GPUs whose routes from and to the host have a link of their own each. */
static void machine_init(struct duet_machine *machine)
{
    g_assert_cmpint(duet_machine_init(machine, 2, GPUS + 1, GPUS + 1, 0), ==, 0);
    g_strlcpy(machine->archs[0].name, "core", DUET_NAME_MAX);
    g_strlcpy(machine->archs[1].name, "device", DUET_NAME_MAX);
    for (unsigned gpu = 0; gpu < GPUS; gpu++) {
        machine->workers[gpu + 1].node = gpu + 1;
        machine->workers[gpu + 1].arch = 1;
        machine->nodes[gpu + 1].capacity_bytes = 1 << 30;
        for (unsigned i = 0; i < 2; i++) {
            unsigned place = i ? (gpu + 1) * (GPUS + 1) : gpu + 1;
            machine->routes[place].bandwidth_Bps = alone_Bps[gpu];
        }
    }
}

static void describe(bool measured, struct duet__platform *platform)
{
    unsigned switches[GPUS] = {0, 0, 1};
    double to_device_Bps[] = {10e9, 5e9}, to_host_Bps[] = {14e9, 2e9};
    struct duet__copy_pair pairs[2 * GPUS];
    struct duet__request runs = {0};
    char name[] = "box";
    const struct duet__calibrate_request request = {.runs = &runs, .name = name};
    struct duet__calibrating c = {
        .request = &request,
        .cpus = 1,
        .gpus = GPUS,
        .pace = 1,
        .has_copies = measured,
        .copies = {.node_count = GPUS + 1,
                   .pairs = pairs,
                   .pair_count = 2 * GPUS,
                   .switches = switches,
                   .switch_count = 2,
                   .to_device_Bps = to_device_Bps,
                   .to_host_Bps = to_host_Bps},
    };
    machine_init(&c.info.machine);
    for (unsigned i = 0; i < 2 * GPUS; i++)
        pairs[i] = (struct duet__copy_pair){.source = i % 2 ? i / 2 + 1 : DUET_HOST,
                                            .destination = i % 2 ? DUET_HOST : i / 2 + 1,
                                            .samples = 1,
                                            .bandwidth_Bps = alone_Bps[i / 2],
                                            .direct = true};
    duet__describe_machine(&c, platform);
    g_assert_cmpstr(platform->name, ==, "box");
    g_assert_cmpuint(platform->gpu_count, ==, GPUS);
    duet_machine_fini(&c.info.machine);
}

/* A switch is as fast as its GPUs are together, and at least as the fastest of them is alone. */
static void test_measured(void)
{
    OWNED(duet__platform_fini) struct duet__platform platform;
    describe(true, &platform);
    g_assert_cmpuint(platform.switch_count, ==, 2);
    for (unsigned gpu = 0; gpu < GPUS; gpu++) {
        g_assert_cmpuint(platform.gpus[gpu].position, ==, gpu / 2);
        g_assert_cmpfloat(platform.gpus[gpu].to_device.bandwidth_Bps, ==, alone_Bps[gpu]);
    }
    g_assert_cmpfloat(platform.switches[0].to_device_Bps, ==, 12e9);
    g_assert_cmpfloat(platform.switches[0].to_host_Bps, ==, 14e9);
    g_assert_cmpfloat(platform.switches[1].to_device_Bps, ==, 5e9);
    g_assert_cmpfloat(platform.switches[1].to_host_Bps, ==, 3e9);
    /* hypothetical switches have the middle one of these figures */
    g_assert_cmpfloat(platform.kinds[0].to_device.bandwidth_Bps, ==, 5e9);
    g_assert_null(strstr(platform.origin, "copies are not measured"));
}

/* Without measurements each GPU has a switch of its own, with its assumed speed. */
static void test_assumed(void)
{
    OWNED(duet__platform_fini) struct duet__platform platform;
    describe(false, &platform);
    g_assert_cmpuint(platform.switch_count, ==, GPUS);
    for (unsigned gpu = 0; gpu < GPUS; gpu++) {
        g_assert_cmpuint(platform.gpus[gpu].position, ==, gpu);
        g_assert_cmpfloat(platform.switches[gpu].to_device_Bps, ==, alone_Bps[gpu]);
        g_assert_cmpfloat(platform.switches[gpu].to_host_Bps, ==, alone_Bps[gpu]);
    }
    g_assert_nonnull(strstr(platform.origin, "copies are not measured"));
}

TEST_MAIN(test_measured, test_assumed)
