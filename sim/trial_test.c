/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the core's trials foretell is what the simulation takes, though they share no line: by hand,
 * and for random programs under every policy, with little memory, links that are shared, and costs.
 */
#include <duet/random.h>

#include "sim/testing.h"

enum { TASKS = 60, DATA = 12, SEEDS = 3 };

static const struct duet_policy_parameter parameters[] = {{"tasks", 1000, 1, 1000, "tasks"},
                                                          {NULL}};

/* A policy that makes its choice among this one alone. */
static struct duet_policy alone(const struct duet_candidate *candidates)
{
    return (struct duet_policy){.name = "alone",
                                .description = "one",
                                .source = "this test",
                                .parameters = parameters,
                                .candidates = candidates};
}

static void expect_foretold(struct lab *lab)
{
    struct duet_choice choice;
    struct duet_stats stats;
    lab_finish(lab);
    duet_stats(lab->duet, &stats);
    g_assert_true(duet_choice(lab->duet, &choice));
    g_assert_cmpstr(choice.why, ==, "");
    assert_seconds(choice.predicted_s, stats.makespan_s);
}

/*
 * Two GPUs behind one switch each fetch 1 MB at 0.5 GB/s, after 1 ms: kernels of 4 ms from 3 to 7
 * ms; then the second GPU fetches what the first has written, 2 ms and 1 MB at 2 GB/s.
 */
static void test_by_hand(void)
{
    static const struct duet_candidate candidates[] = {{.policy = "cp"}, {.policy = NULL}};
    if (!lab_child())
        return;
    const struct duet_policy policy = alone(candidates);
    struct lab lab = lab_open(&(struct lab_options){.gpus = 2, .custom = &policy});
    struct duet_handle *a = lab_data(&lab, 1000000), *b = lab_data(&lab, 1000000);
    lab_task(&lab, "gpu0", 0.004, 1, a, DUET_RW);
    lab_task(&lab, "gpu1", 0.004, 1, b, DUET_RW);
    lab_task(&lab, "gpu1", 0.004, 2, a, DUET_R, b, DUET_RW);
    expect_foretold(&lab);
    assert_kernel(&lab, 2, "gpu1", 0.003, 0.007);
    assert_kernel(&lab, 3, "gpu1", 0.0095, 0.0135);
    lab_close(&lab);
}

/* A policy and a seed. */
struct program {
    struct duet_candidate candidates[2];
    uint64_t seed;
};

static unsigned draw(uint64_t *state, unsigned bound)
{
    return duet_random_below(state, bound);
}

static void submit_one(struct lab *lab, struct duet_handle **data, uint64_t *state)
{
    static const enum duet_mode modes[] = {DUET_R, DUET_R, DUET_RW, DUET_RW, DUET_W, DUET_COMMUTE};
    const double seconds = 1e-4 * (1 + draw(state, 20));
    struct lab_seconds took = {seconds * (1 + draw(state, 8)), seconds};
    unsigned count = draw(state, 4), at[3];
    int mode[3];
    for (unsigned i = 0; i < 3; i++) {
        at[i] = draw(state, DATA);
        mode[i] = modes[draw(state, G_N_ELEMENTS(modes))];
    }
    g_assert_cmpint(lab_try(lab, took, NULL, count, data[at[0]], mode[0], data[at[1]], mode[1],
                            data[at[2]], mode[2]),
                    ==, DUET_OK);
}

static void run_program(const void *argument, FILE *out)
{
    const struct program *program = argument;
    const struct duet_policy policy = alone(program->candidates);
    uint64_t state = duet_random_stream(program->seed, 1);
    struct duet_handle *data[DATA];
    struct lab lab = lab_open(&(struct lab_options){
        .cpus = 1 + draw(&state, 3),
        .gpus = 1 + draw(&state, 4),
        .gpu_memory_bytes = draw(&state, 2) ? 3000000 : 0,
        .no_peer = draw(&state, 2),
        .costs = {.submit_s = 1e-6,
                  .push_s = 2e-7,
                  .pop_s = 3e-7,
                  .steal_s = 5e-7,
                  .kernel_launch_s = 4e-6,
                  .copy_launch_s = 3e-6,
                  .event_s = 7e-6},
        .seed = program->seed,
        .first_waits = draw(&state, 2),
        .custom = &policy,
    });
    for (unsigned i = 0; i < DATA; i++)
        data[i] = lab_data(&lab, 1000 * (1 + draw(&state, 1000)));
    for (unsigned i = 0; i < TASKS; i++)
        submit_one(&lab, data, &state);
    expect_foretold(&lab);
    lab_close(&lab);
}

static void test_random_programs(void)
{
    const struct duet_policy *policy;
    for (size_t p = 0; (policy = duet_policy_at(p)); p++) {
        for (uint64_t seed = 1; seed <= SEEDS && !policy->candidates; seed++) {
            const struct program program = {{{.policy = policy->name}, {.policy = NULL}}, seed};
            g_byte_array_unref(lab_fork(run_program, &program));
        }
    }
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/trial/by-hand", test_by_hand);
    g_test_add_func("/trial/random-programs", test_random_programs);
    return g_test_run();
}
