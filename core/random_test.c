/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The core by one thread: random programs on random machines, workers going on in a random order
 * and only when they were woken. What fails here fails again with the same seed. DUET_TEST_SEED=N:
 * only the program number N.
 */
#include "core/testing_random.h"

enum { PROGRAMS = 600 };

struct tally {
    unsigned runs, good, lost_well, lost;
};

static void draw_machine(struct testing_machine *machine, uint64_t *rng)
{
    static const uint64_t capacities[] = {5 << 10, 6 << 10, 8 << 10, 20 << 10, 1 << 20};
    machine->cpus = duet_random_below(rng, 5);
    machine->gpus = duet_random_below(rng, 5);
    if (!machine->cpus && !machine->gpus)
        machine->cpus = 1;
    machine->gpu_archs = 1 + duet_random_below(rng, 3);
    machine->capacity_bytes = capacities[duet_random_below(rng, 5)];
    machine->no_peer = duet_random_below(rng, 2);
    machine->window = 1 + duet_random_below(rng, 4);
    if (duet_random_below(rng, 2))
        machine->window_short = machine->window + duet_random_below(rng, 6);
}

static void draw(struct setting *setting, uint64_t number)
{
    uint64_t rng = duet_random_stream(number, 1);
    size_t policies = 0;
    while (duet_policy_at(policies))
        policies++;
    memset(setting, 0, sizeof *setting);
    struct engine_setting *engine = &setting->engine;
    draw_machine(&engine->machine, &rng);
    engine->policy = duet_policy_at(duet_random_below(&rng, (unsigned)policies))->name;
    engine->seed = number;
    engine->alone = true;
    engine->compute = run_task;
    setting->steps = 1 + duet_random_below(&rng, 120);
    setting->submitters = 1;
    setting->acquire = duet_random_below(&rng, 2);
    setting->nested = duet_random_below(&rng, 3) == 0;
    setting->expand = engine->machine.cpus && duet_random_below(&rng, 3) == 0;
    if (engine->machine.gpus && duet_random_below(&rng, 2)) {
        engine->losses = 1 + duet_random_below(&rng, engine->machine.gpus);
        engine->lose_within = 1 + duet_random_below(&rng, 60);
    }
    unsigned failure = duet_random_below(&rng, 30), when = 1 + duet_random_below(&rng, 50);
    engine->fail_kernel = failure == 0 ? when : 0;
    engine->fail_copy = failure == 1 ? when : 0;
    engine->cancel_at = failure == 2 ? when : 0;
}

static void run_one(uint64_t number, struct tally *tally)
{
    struct setting setting;
    draw(&setting, number);
    const struct testing_machine *machine = &setting.engine.machine;
    g_test_message("%" G_GUINT64_FORMAT ": %s, %u + %u, %u steps%s%s%s, %u lost", number,
                   setting.engine.policy, machine->cpus, machine->gpus, setting.steps,
                   setting.expand ? ", expand" : "", setting.nested ? ", nested" : "",
                   setting.acquire ? ", acquire" : "", setting.engine.losses);
    bool good = execute(&setting);
    tally->runs++;
    tally->good += good;
    tally->lost += setting.engine.losses > 0;
    tally->lost_well += good && setting.engine.losses;
}

static void test_random(void)
{
    const char *only = g_getenv("DUET_TEST_SEED");
    struct tally tally = {0};
    if (only) {
        run_one(g_ascii_strtoull(only, NULL, 10), &tally);
        return;
    }
    for (uint64_t number = 0; number < PROGRAMS * repetitions(); number++)
        run_one(number, &tally);
    g_test_message("%u of %u ended well, of %u with lost devices %u", tally.good, tally.runs,
                   tally.lost, tally.lost_well);
    /* there is something to compare, also where devices were lost, and something else */
    g_assert_cmpuint(2 * tally.good, >, tally.runs);
    g_assert_cmpuint(10 * tally.lost_well, >, tally.lost);
    g_assert_cmpuint(tally.lost_well, <, tally.lost);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    watch_start();
    g_test_add_func("/random/programs", test_random);
    return g_test_run();
}
