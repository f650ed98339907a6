/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The whole library as applications see it: random programs on this machine with emulated GPUs
 * whose memories are much too small, and which are lost now and then, against the same programs
 * carried out in order by one thread.
 *
 * DUET_TEST_LONG=N, above 1, multiplies the number of programs by N and their length by 10.
 * DUET_TEST_SEED=N: only program number N.
 */
#include <duet/policy.h>

#include "real/testing_random_run.h"

enum { PROGRAMS = 40 };

/* ------------------------------------------------------------------------------------------- */
/* Settings                                                                                     */

static void draw_machine(struct setting *setting, uint64_t *rng)
{
    static const uint64_t memories[] = {1, 1, 2, 4, 100};
    struct duet_config *config = &setting->config;
    config->emulate = "free";
    config->cpus = (int)duet_random_below(rng, 4);
    config->gpus = (int)duet_random_below(rng, 4);
    if (config->cpus + config->gpus == 0)
        config->cpus = 1;
    config->gpu_memory_bytes =
        memories[duet_random_below(rng, 5)] * (ACCESSES * ((BYTES_MAX + 255) / 256 * 256));
    config->no_peer = duet_random_below(rng, 2);
    config->gpu_window = duet_random_below(rng, 5);
    config->window = duet_random_below(rng, 2) ? 0 : 2 + duet_random_below(rng, 40);
    config->no_bind = true;
    config->watchdog_s = WATCHDOG_S / 4.0;
}

/* Some devices, each at one of its first commands. */
static void draw_losses(struct setting *setting, uint64_t *rng)
{
    size_t end = 0;
    for (int g = 0; g < setting->config.gpus; g++)
        if (duet_random_below(rng, 2))
            end += (size_t)snprintf(setting->lose + end, sizeof setting->lose - end, "%sgpu%d@%u",
                                    end ? "," : "", g,
                                    1 + duet_random_below(rng, 80 * testing_length()));
    setting->config.lose = end ? setting->lose : NULL;
    setting->loses = end > 0;
}

static void draw(struct setting *setting, uint64_t number)
{
    uint64_t rng = duet_random_stream(number, 1);
    unsigned policies = 0;
    while (duet_policy_at(policies))
        policies++;
    memset(setting, 0, sizeof *setting);
    duet_config_init(&setting->config);
    setting->device = (struct device_code){"emulated", work, add};
    draw_machine(setting, &rng);
    setting->seed = setting->config.seed = number;
    setting->config.policy = duet_policy_at(duet_random_below(&rng, policies))->name;
    setting->config.model = duet_random_below(&rng, 2) ? "history" : "regression";
    setting->config.set_arch = duet_random_below(&rng, 4) == 0;
    setting->config.record = duet_random_below(&rng, 2);
    setting->submitters = duet_random_below(&rng, 2) ? 1 : 1 + duet_random_below(&rng, 3);
    setting->shared = setting->submitters > 1 && duet_random_below(&rng, 2);
    setting->steps = 1 + duet_random_below(&rng, 200 * testing_length() / setting->submitters);
    setting->look = duet_random_below(&rng, 2);
    setting->nested = duet_random_below(&rng, 2);
    setting->expand = setting->config.cpus && duet_random_below(&rng, 2);
    if (duet_random_below(&rng, 3) == 0)
        draw_losses(setting, &rng);
    unsigned failure = duet_random_below(&rng, 16);
    unsigned when = 1 + duet_random_below(&rng, 100 * testing_length());
    setting->fail_kernel = failure == 0 ? when : 0;
    setting->cancel_at = failure == 1 ? when : 0;
    setting->cancel_step = failure == 2 ? when : 0;
    setting->abrupt = duet_random_below(&rng, 6) == 0;
    setting->pin = duet_random_below(&rng, 2);
}

static void run_one(uint64_t number, struct tally *tally)
{
    struct setting setting;
    draw(&setting, number);
    const struct duet_config *config = &setting.config;
    g_test_message("%" G_GUINT64_FORMAT ": %s, %d + %d, %u x %u steps%s%s%s%s, lost: %s", number,
                   config->policy, config->cpus, config->gpus, setting.submitters, setting.steps,
                   setting.shared ? ", shared" : "", setting.expand ? ", expand" : "",
                   setting.nested ? ", nested" : "", setting.look ? ", look" : "",
                   config->lose ? config->lose : "none");
    execute(&setting, tally);
}

static void test_programs(void)
{
    const char *only = g_getenv("DUET_TEST_SEED");
    struct tally tally = {0};
    if (only) {
        run_one(g_ascii_strtoull(only, NULL, 10), &tally);
        return;
    }
    for (uint64_t number = 0; number < PROGRAMS * testing_repetitions(); number++)
        run_one(number, &tally);
    g_test_message("%" G_GUINT64_FORMAT " tasks; %u of %u runs ended well, of %u with losses %u",
                   tally.tasks, tally.good, tally.runs, tally.lost, tally.lost_well);
    g_assert_cmpuint(2 * tally.good, >, tally.runs);
}

/* Two runtimes in one process know nothing of each other. */
static void *run_some(void *first)
{
    struct tally tally = {0};
    for (uint64_t number = *(const uint64_t *)first; number < 1012; number += 2)
        run_one(number, &tally);
    return NULL;
}

static void test_two_runtimes(void)
{
    static const uint64_t firsts[] = {1000, 1001};
    pthread_t threads[2];
    for (unsigned i = 0; i < 2; i++)
        g_assert_cmpint(pthread_create(&threads[i], NULL, run_some, (void *)(uintptr_t)&firsts[i]),
                        ==, 0);
    for (unsigned i = 0; i < 2; i++)
        (void)pthread_join(threads[i], NULL);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/random/programs", test_programs);
    g_test_add_func("/random/two_runtimes", test_two_runtimes);
    return g_test_run();
}
