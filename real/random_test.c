/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The whole library as applications see it: random programs on this machine with emulated GPUs
 * whose memories are much too small, and which are lost now and then, several runtimes at once,
 * against the same programs carried out in order by one thread. See core/testing_random.h for the
 * environment.
 */
#include "core/testing_random.h"

static int open_real(struct run *run, struct duet_message *message)
{
    return duet_open(&run->duet, &run->setting.config, message);
}

/* Some devices, each at one of its first commands. */
static void draw_losses(struct setting *setting, uint64_t *rng)
{
    unsigned commands = 80 * length_of(setting->config.seed);
    size_t end = 0;
    for (int g = 0; g < setting->config.gpus; g++)
        if (one_of(rng, 2))
            end += (size_t)snprintf(setting->lose + end, sizeof setting->lose - end, "%sgpu%d@%u",
                                    end ? "," : "", g, 1 + duet_random_below(rng, commands));
    setting->config.lose = end ? setting->lose : NULL;
    setting->loses = end > 0;
}

static void draw(struct setting *setting)
{
    static const struct world world = {.arch = "emulated",
                                       .work = work,
                                       .add = add,
                                       .open = open_real};
    uint64_t rng = duet_random_stream(setting->config.seed, 1);
    setting->world = &world;
    draw_machine(setting, &rng);
    draw_program(setting, &rng, 200);
    setting->config.emulate = "free";
    setting->config.watchdog_s = WATCHDOG_S / 4.0;
    setting->fail_copy = 0;
    if (one_of(&rng, 3))
        draw_losses(setting, &rng);
}

static void test_programs(void)
{
    (void)run_programs(16, draw, RUNS_MAX, false);
}

TEST_MAIN(test_programs)
