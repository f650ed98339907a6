/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The core under threads: random programs on one thread a worker and memories that are much too
 * small. With tasks that expand and nested ones in threads_expand_test.c, with devices that are
 * lost in threads_lost_test.c, and by one thread in a random order in random_test.c.
 */
#include "core/testing_random.h"

static const struct testing_machine small = {.cpus = 4, .gpus = 3, .capacity_bytes = 6 << 10};

static void check_all(struct setting setting, unsigned seeds)
{
    size_t policies = 0;
    while (duet_policy_at(policies))
        policies++;
    g_assert_cmpuint(all(setting, seeds), ==, seeds * repetitions() * policies);
}

static void test_tiny_memory(void)
{
    check_all((struct setting){.engine.machine = small, .steps = 200, .submitters = 1}, 3);
}

static void test_no_peer(void)
{
    struct setting setting = {.engine.machine = small, .steps = 200, .submitters = 1};
    setting.engine.machine.no_peer = true;
    setting.engine.machine.gpu_archs = 2;
    check_all(setting, 3);
}

static void test_application(void)
{
    struct setting setting = {.engine.machine = small, .steps = 200, .submitters = 1};
    setting.acquire = true;
    check_all(setting, 3);
}

static void test_roomy(void)
{
    struct setting setting = {.engine.machine = small, .steps = 200, .submitters = 1};
    setting.engine.machine.capacity_bytes = 1 << 20;
    check_all(setting, 1);
}

static void test_submitters(void)
{
    struct setting setting = {.engine.machine = small, .steps = 100, .submitters = 2};
    check_all(setting, 2);
    setting.shared = true;
    check_all(setting, 2);
    setting.submitters = 3;
    setting.engine.machine.cpus = setting.engine.machine.gpus = 8;
    check_all(setting, 1);
}

static void test_lopsided(void)
{
    struct setting setting = {.engine.machine = small, .steps = 100, .submitters = 1};
    setting.engine.machine.cpus = 0;
    check_all(setting, 1);
    setting.engine.machine.gpus = 1;
    setting.engine.machine.window = 4;
    check_all(setting, 1);
    setting.engine.machine = (struct testing_machine){.cpus = 1};
    check_all(setting, 1);
    setting.engine.machine.cpus = 6;
    check_all(setting, 1);
}

static void test_failures(void)
{
    struct setting setting = {.engine.machine = small, .steps = 100, .submitters = 1};
    setting.engine.fail_kernel = 40;
    g_assert_cmpuint(all(setting, 2), ==, 0);
    setting.engine.fail_kernel = 0;
    setting.engine.fail_copy = 3;
    setting.engine.machine.cpus = 1; /* or the devices may have nothing to do */
    g_assert_cmpuint(all(setting, 2), ==, 0);
    setting.engine.machine.no_peer = true;
    setting.submitters = 2;
    g_assert_cmpuint(all(setting, 2), ==, 0);
}

static void test_cancelled(void)
{
    struct setting setting = {.engine.machine = small, .steps = 100, .submitters = 1};
    setting.engine.cancel_at = 40;
    g_assert_cmpuint(all(setting, 2), ==, 0);
    setting.acquire = true;
    g_assert_cmpuint(all(setting, 1), ==, 0);
    setting.acquire = false;
    setting.submitters = 3;
    g_assert_cmpuint(all(setting, 1), ==, 0);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    watch_start();
    g_test_add_func("/threads/tiny_memory", test_tiny_memory);
    g_test_add_func("/threads/no_peer", test_no_peer);
    g_test_add_func("/threads/application", test_application);
    g_test_add_func("/threads/roomy", test_roomy);
    g_test_add_func("/threads/submitters", test_submitters);
    g_test_add_func("/threads/lopsided", test_lopsided);
    g_test_add_func("/threads/failures", test_failures);
    g_test_add_func("/threads/cancelled", test_cancelled);
    return g_test_run();
}
