/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Times that the core's trials foretell are those of the simulation, though they share no line: by
 * hand, and for random programs under every policy, with little memory, shared links, and costs.
 */
#include <duet/random.h>

#include "sim/testing.h"

enum { TASKS = 60, DATA = 12, CUT = 4, SEEDS = 4 };

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
 * ms; then the second GPU fetches what the first has written, by way of the host, 2 ms each way.
 */
static void test_by_hand(void)
{
    static const struct duet_candidate candidates[] = {{.policy = "cp"}, {.policy = NULL}};
    const struct duet_policy policy = alone(candidates);
    OWNED(lab_close) struct lab lab = lab_open(&(struct lab_options){.gpus = 2, .custom = &policy});
    struct duet_handle *a = lab_data(&lab, 1000000), *b = lab_data(&lab, 1000000);
    lab_task(&lab, "gpu0", 0.004, 1, a, DUET_RW);
    lab_task(&lab, "gpu1", 0.004, 1, b, DUET_RW);
    lab_task(&lab, "gpu1", 0.004, 2, a, DUET_R, b, DUET_RW);
    expect_foretold(&lab);
    assert_kernel(&lab, 2, "gpu1", 0.003, 0.007);
    assert_kernel(&lab, 3, "gpu1", 0.011, 0.015);
}

/* A policy and a seed, and whether parts of data are used. */
struct program {
    struct duet_candidate candidates[2];
    uint64_t seed;
    bool cut;
};

static unsigned draw(uint64_t *state, unsigned bound)
{
    return duet_random_below(state, bound);
}

/* Objects of a program: data, of which the first ones are cut, and references to its tasks. */
struct things {
    struct duet_handle *data[DATA + 2 * CUT];
    struct duet_ref *refs[TASKS];
    unsigned refs_count;
};

static void make_data(struct lab *lab, struct things *things, uint64_t *state)
{
    for (unsigned i = 0; i < DATA; i++)
        things->data[i] = lab_data(lab, 1000 * (1 + draw(state, 1000)));
    for (unsigned i = 0; i < CUT; i++) /* the last one is a half that is cut again */
        g_assert_cmpint(duet_cut_blocks(lab->duet, things->data[i < CUT - 1 ? i : DATA], 2, 1,
                                        &things->data[DATA + 2 * i]),
                        ==, DUET_OK);
}

/* A whole and a part of it are refused, unless they are to read. */
static void submit_one(struct lab *lab, struct things *things, uint64_t *state, bool cut)
{
    static const enum duet_mode modes[] = {DUET_R, DUET_R, DUET_RW, DUET_RW, DUET_W, DUET_COMMUTE};
    const double seconds = 1e-4 * (1 + draw(state, 20));
    const struct lab_seconds took = {seconds * (1 + draw(state, 8)), seconds};
    struct duet_access accesses[3];
    struct duet_task_extra extra = {.after_count = draw(state, 4) ? 0 : 2};
    struct duet_ref *after[2];
    struct duet_task_desc desc = {.codelet = lab->kernel,
                                  .accesses = accesses,
                                  .access_count = draw(state, 4),
                                  .args = &took,
                                  .args_bytes = sizeof took,
                                  .extra = &extra};
    for (unsigned i = 0; i < 3; i++) {
        accesses[i].handle = things->data[draw(state, cut ? G_N_ELEMENTS(things->data) : DATA)];
        accesses[i].mode = modes[draw(state, G_N_ELEMENTS(modes))];
    }
    for (unsigned i = 0; i < 2; i++)
        after[i] = things->refs_count ? things->refs[draw(state, things->refs_count)] : NULL;
    extra.after = after;
    if (draw(state, 2))
        extra.ref = &things->refs[things->refs_count];
    if (duet_submit(lab->duet, &desc) == DUET_OK)
        things->refs_count += extra.ref != NULL;
}

static void run_program(const void *argument, FILE *out)
{
    const struct program *program = argument;
    const struct duet_policy policy = alone(program->candidates);
    uint64_t state = duet_random_stream(program->seed, 1);
    struct things things = {.refs_count = 0};
    OWNED(lab_close)
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
    make_data(&lab, &things, &state);
    for (unsigned i = 0; i < TASKS; i++)
        submit_one(&lab, &things, &state, program->cut);
    expect_foretold(&lab);
    for (unsigned i = 0; i < things.refs_count; i++)
        duet_ref_free(things.refs[i]);
}

static void test_random_programs(void)
{
    const struct duet_policy *policy;
    for (size_t p = 0; (policy = duet_policy_at(p)); p++) {
        for (uint64_t seed = 1; seed <= SEEDS && !policy->candidates; seed++) {
            const struct program program = {{{.policy = policy->name}, {.policy = NULL}},
                                            seed,
                                            seed % 2};
            g_byte_array_unref(lab_fork(run_program, &program));
        }
    }
}

LAB_MAIN(test_by_hand, test_random_programs)
