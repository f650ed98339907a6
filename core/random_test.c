/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random programs on the core alone, on random machines with memories that are much too small and
 * devices that are lost. By one thread, workers going on in a random order and only when they were
 * woken: what fails here fails again with the same number. And by a thread a worker. See
 * testing_random.h for the environment.
 */
#include "core/testing.h"
#include "core/testing_engine.h"
#include "core/testing_random.h"

static _Atomic(unsigned) given; /* tasks, in all programs */

/* Gives a task that a worker has not begun to any idle one. */
static int to_anybody(void *self, struct duet_view *view, const struct duet_task *task,
                      unsigned victim, double begin_s, double now)
{
    unsigned count = duet_view_workers(view), first = duet_view_random(view, (int)victim, count);
    for (unsigned i = 0; i < count; i++) {
        unsigned w = (first + i) % count;
        if (w != victim && duet_view_idle(view, w) && duet_view_can_run(view, w, task)) {
            atomic_fetch_add(&given, 1);
            return (int)w;
        }
    }
    return -1;
}

static struct duet_policy generous; /* eager, with that */

static int count_copy(void *data)
{
    struct run *run = data;
    uint64_t number;
    return count(run, &run->copies, run->setting.fail_copy, &number);
}

static int open_core(struct run *run, struct duet_message *message)
{
    const struct duet_config *config = &run->setting.config;
    uint64_t rng = duet_random_stream(config->seed, 4);
    struct engine_setting setting = {
        .machine = {.cpus = (unsigned)config->cpus,
                    .gpus = (unsigned)config->gpus,
                    .gpu_archs = run->setting.archs,
                    .capacity_bytes = config->gpu_memory_bytes,
                    .no_peer = config->no_peer,
                    .window = config->gpu_window,
                    .window_short = config->gpu_window_short},
        .policy = config->policy,
        .model = config->model,
        .perturbation = config->perturbation,
        .seed = config->seed,
        .window = config->window,
        .set_arch = config->set_arch,
        .keep_going = config->keep_going,
        .nearest_source = config->nearest_source,
        .hold = config->hold,
        .record = config->record,
        .computes = true,
        .alone = run->setting.alone,
        .spin = run->setting.spin,
        .losses = run->setting.loses ? 1 + duet_random_below(&rng, (unsigned)config->gpus) : 0,
        .lose_within = 1 + duet_random_below(&rng, 60),
        .copying = count_copy,
        .data = run,
    };
    setting.own = one_of(&rng, 4) ? &generous : NULL;
    int error = duet__priorities_read(config->priorities, &setting.priorities, message);
    if (error)
        return error;
    struct engine *engine = engine_new(&setting);
    run->duet = engine->core;
    engine_start(engine);
    return DUET_OK;
}

static void draw(struct setting *setting)
{
    static const struct world world = {.arch = "cuda", .work = work, .add = add, .open = open_core};
    uint64_t rng = duet_random_stream(setting->config.seed, 1);
    setting->world = &world;
    draw_machine(setting, &rng);
    draw_program(setting, &rng, 150);
    setting->loses = setting->config.gpus && one_of(&rng, 3);
    setting->spin = one_of(&rng, 2);
}

static void draw_alone(struct setting *setting)
{
    draw(setting);
    setting->alone = true;
    setting->wait = false;
    setting->shared = false; /* otherwise submitters would acquire data that others use */
    setting->submitters = 1;
}

/* There is something to compare, where devices were lost too, and something else. */
static void test_alone(void)
{
    struct tally tally = run_programs(100, draw_alone, RUNS_MAX, false);
    if (tally.runs < 100)
        return;
    g_assert_cmpuint(2 * tally.good, >, tally.runs);
    g_assert_cmpuint(10 * tally.lost_well, >, tally.lost);
    g_assert_cmpuint(tally.lost_well, <, tally.lost);
    g_assert_cmpuint(atomic_load(&given), >, tally.runs);
}

static void test_threads(void)
{
    (void)run_programs(25, draw, RUNS_MAX, false);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    generous = *duet_policy_find("eager");
    generous.revoke = to_anybody;
    g_test_add_func("/random/alone", test_alone);
    g_test_add_func("/random/threads", test_threads);
    return g_test_run();
}
