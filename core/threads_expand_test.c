/* SPDX-License-Identifier: Apache-2.0 */
/* The core under threads: random programs of which tasks expand, again and again, or submit others.
 */
#include "core/testing_random.h"

static const struct testing_machine small = {.cpus = 3, .gpus = 3, .capacity_bytes = 6 << 10};

static void check_all(struct setting setting, unsigned seeds)
{
    size_t policies = 0;
    while (duet_policy_at(policies))
        policies++;
    g_assert_cmpuint(all(setting, seeds), ==, seeds * repetitions() * policies);
}

static void test_expand(void)
{
    struct setting setting = {.engine.machine = small, .steps = 100, .submitters = 1};
    setting.expand = true;
    check_all(setting, 3);
    setting.engine.machine.no_peer = true;
    setting.engine.machine.gpu_archs = 3;
    check_all(setting, 2);
}

static void test_nested(void)
{
    struct setting setting = {.engine.machine = small, .steps = 200, .submitters = 1};
    setting.nested = true;
    check_all(setting, 2);
    setting.engine.machine.cpus = 0;
    check_all(setting, 1);
}

static void test_both(void)
{
    struct setting setting = {.engine.machine = small, .steps = 100, .submitters = 1};
    setting.expand = setting.nested = setting.acquire = true;
    check_all(setting, 2);
    setting.acquire = false;
    setting.submitters = 3;
    check_all(setting, 1);
    setting.shared = true;
    check_all(setting, 1);
}

static void test_few(void)
{
    struct setting setting = {.engine.machine = {.cpus = 1}, .steps = 100, .submitters = 1};
    setting.expand = setting.nested = true;
    check_all(setting, 1);
    setting.engine.machine.gpus = 1;
    setting.engine.machine.capacity_bytes = 6 << 10;
    check_all(setting, 1);
}

/* A kernel or a copy that fails, a run that is cancelled, with expansions under way. */
static void test_failures(void)
{
    struct setting setting = {.engine.machine = small, .steps = 100, .submitters = 1};
    setting.expand = setting.nested = true;
    setting.engine.fail_kernel = 60;
    g_assert_cmpuint(all(setting, 2), ==, 0);
    setting.engine.fail_kernel = 0;
    setting.engine.cancel_at = 60;
    g_assert_cmpuint(all(setting, 2), ==, 0);
    setting.engine.cancel_at = 0;
    setting.engine.fail_copy = 3;
    setting.engine.machine.cpus = 1;
    g_assert_cmpuint(all(setting, 2), ==, 0);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    watch_start();
    g_test_add_func("/threads_expand/expand", test_expand);
    g_test_add_func("/threads_expand/nested", test_nested);
    g_test_add_func("/threads_expand/both", test_both);
    g_test_add_func("/threads_expand/few", test_few);
    g_test_add_func("/threads_expand/failures", test_failures);
    return g_test_run();
}
