/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The core under threads: random programs on devices that are lost at a random command. The result
 * is right, or the run has failed with DUET_ELOST.
 */
#include "core/testing_random.h"

static const struct testing_machine small = {.cpus = 3, .gpus = 3, .capacity_bytes = 6 << 10};

static void try_all(struct setting setting, unsigned seeds)
{
    g_test_message("%u runs with lost devices ended well", all(setting, seeds));
}

static struct setting losing(unsigned losses, unsigned within, unsigned steps)
{
    struct setting setting = {.engine.machine = small, .steps = steps, .submitters = 1};
    setting.engine.losses = losses;
    setting.engine.lose_within = within;
    return setting;
}

static void test_one(void)
{
    try_all(losing(1, 30, 100), 6);
}

/* Much of what is computed goes to the host at once, so that little is lost. */
static void test_application(void)
{
    struct setting setting = losing(1, 20, 60);
    setting.acquire = true;
    try_all(setting, 6);
    setting.engine.machine.no_peer = true;
    try_all(setting, 4);
}

static void test_kinds(void)
{
    struct setting setting = losing(2, 40, 80);
    setting.engine.machine.gpu_archs = 2;
    setting.engine.machine.cpus = 1;
    try_all(setting, 6);
}

static void test_expand(void)
{
    struct setting setting = losing(1, 60, 60);
    setting.expand = setting.nested = true;
    try_all(setting, 6);
    setting.engine.machine.no_peer = true;
    setting.engine.losses = 2;
    try_all(setting, 4);
}

static void test_submitters(void)
{
    struct setting setting = losing(1, 30, 40);
    setting.submitters = 3;
    setting.shared = true;
    try_all(setting, 6);
}

/* Many devices, of which many go. */
static void test_many(void)
{
    struct setting setting = losing(6, 40, 60);
    setting.engine.machine.gpus = 8;
    setting.engine.machine.cpus = 2;
    try_all(setting, 6);
    setting.engine.machine.no_peer = true;
    try_all(setting, 4);
}

/* All devices, nobody else. */
static void test_no_cpu(void)
{
    struct setting setting = losing(4, 40, 60);
    setting.engine.machine.cpus = 0;
    try_all(setting, 4);
}

/* Lost and failed or cancelled: whichever comes first. */
static void test_failures(void)
{
    struct setting setting = losing(2, 30, 80);
    setting.engine.fail_kernel = 30;
    try_all(setting, 3);
    setting.engine.fail_kernel = 0;
    setting.engine.cancel_at = 30;
    setting.expand = true;
    try_all(setting, 3);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    watch_start();
    g_test_add_func("/threads_lost/one", test_one);
    g_test_add_func("/threads_lost/application", test_application);
    g_test_add_func("/threads_lost/kinds", test_kinds);
    g_test_add_func("/threads_lost/expand", test_expand);
    g_test_add_func("/threads_lost/submitters", test_submitters);
    g_test_add_func("/threads_lost/many", test_many);
    g_test_add_func("/threads_lost/no_cpu", test_no_cpu);
    g_test_add_func("/threads_lost/failures", test_failures);
    return g_test_run();
}
