/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The choice of a policy and its explanation, on machines small enough to calculate the time of
 * each policy by hand. Kernels take as many milliseconds as they say on a core, a tenth of it on a
 * device; there are no costs; copies take 1 us, and 1 ns for each byte.
 */
#include "core/testing_script.h"

#define UNTRIED "never were more tasks held than there are workers, with nothing under way"

enum { MOST = 1000 };

/* Candidates: first in, first out, and by the expected end; the number of tasks is the parameter.
 */
static const struct duet_candidate two[] = {
    {.policy = "cp"},
    {.policy = "eager"},
    {.policy = NULL},
};
static const struct duet_policy_parameter most[] = {{"tasks", MOST, 1, MOST, "tasks"}, {NULL}};
static const struct duet_policy chooses = {
    .name = "chooses",
    .description = "one of two",
    .source = "this test",
    .parameters = most,
    .candidates = two,
};

/*
 * "untried" and "tried cp 4 eager" look at the choice: the first policy and why, or the policy that
 * was chosen, on how many tasks, and the second best; "predicts 4000" at its makespan in us.
 */
static bool choice_step(struct stage *stage, char **words)
{
    struct testing *t = stage->t;
    struct duet_choice choice;
    if (!stage_is(words, "untried") && !stage_is(words, "tried") && !stage_is(words, "predicts"))
        return false;
    testing_let_in(t);
    g_assert_true(duet_choice(t->core, &choice));
    g_assert_cmpstr(choice.policy, ==, policy_of(t->core)->name);
    if (words[0][0] == 'p') {
        g_assert_cmpfloat_with_epsilon(choice.predicted_s, 1e-6 * g_ascii_strtod(words[1], NULL),
                                       1e-12);
        return true;
    }
    const bool tried = words[0][0] == 't';
    g_assert_cmpstr(choice.why, ==, tried ? "" : UNTRIED);
    g_assert_cmpstr(choice.policy, ==, tried ? words[1] : "cp");
    stage_same(stage, "the number of tasks", (int64_t)choice.tasks,
               tried ? stage_number(stage, words[2]) : 0);
    if (tried && words[3])
        g_assert_cmpstr(choice.runner_up, ==, words[3]);
    return true;
}

#define BOTH "cpus=1 gpus=1 unasked"

static const struct script scripts[] = {
    /* 1 ms each on the device, one after another there; eager's first two go to whoever asks first,
     * a core among them: 10 ms */
    {"four tasks of 10 ms", BOTH, "untried; 4 any=10; tried cp 4 eager; predicts 4000"},
    {"the trial takes as many tasks as the parameter says, in order of submission",
     "cpus=2 unasked", "1010 any=1; tried cp 1000; predicts 500000"},
    {"few tasks are the first's; it is chosen when there are more, and never again", BOTH,
     "any=10; untried; 3 any=10; untried; drain; finished 4; 3 any=10; tried cp 3; 9 "
     "any=10;"
     "tried cp 3"},
    {"data is on the device already: no copy", "gpus=1 unasked",
     "data a*4; any=10 a:rw; untried; us 1000; gpu0 copy a host>gpu0; done a; gpu0 run 1; done 1;"
     "finished 1; 2 any=10 a:rw; predicts 2000"},
    {"commuting tasks run one after another, in any order; scratch data needs room",
     "cpus=2 unasked", "data a; 3 any=1 a:c; 2 any=1 a:s; predicts 3000"},
    {"a device that is gone is not counted on", BOTH, "lose gpu0; 3 any=10; predicts 30000"},
    {"data is cut in the trial, too: halves at once on two cores, then all of it", "cpus=2 unasked",
     "data a*8; cut a 2; any=1 a0:rw; any=1 a1:rw; any=5 a:rw; predicts 6000"},
    {"a task that comes after another without data does so in the trial", "cpus=3 unasked",
     "any=1>a; any=1<a>b; 2 any=1<a<b; predicts 3000"},
    {"hints are no tasks, and what is unregistered after them is no reason to wait", BOTH,
     "data a b c; prefetch a gpu0; prefetch b gpu0; prefetch c gpu0; untried; gpu0 work 0;"
     "temporary d; any=1 d:w; 4 any=1 d:r; leave d; tried cp 5"},
};

static void test_scripts(void)
{
    scripts_play_with(scripts, G_N_ELEMENTS(scripts), &(struct stage_more){&chooses, choice_step});
}

static struct testing *start(unsigned cpus, unsigned gpus)
{
    return testing_init_policy(&(struct testing_machine){.cpus = cpus, .gpus = gpus}, &chooses, 1);
}

static void submit(struct testing *t, double ms, struct duet_handle *a, enum duet_mode mode)
{
    const struct duet_access access = {a, mode};
    const double flops = ms * 1e6;
    const struct duet_task_desc desc = {.codelet = t->any,
                                        .accesses = &access,
                                        .access_count = a != NULL,
                                        .args = &flops,
                                        .args_bytes = sizeof flops};
    g_assert_cmpint(duet_submit(t->core, &desc), ==, DUET_OK);
}

static struct duet_choice choice_of(struct testing *t)
{
    struct duet_choice choice;
    testing_let_in(t);
    g_assert_true(duet_choice(t->core, &choice));
    g_assert_cmpstr(choice.policy, ==, policy_of(t->core)->name);
    return choice;
}

static void end(struct testing *t)
{
    while (!duet__finished(t->core)) {
        for (unsigned w = 0; w < t->workers; w++) {
            struct duet__engine_command command = testing_next(t, w);
            if (command.kind == DUET_RUN || command.kind == DUET_COPY)
                testing_done(t, &command, 1e-6, 0);
        }
    }
    testing_fini(t);
}

/* Eager works until then: it ends, and lists are in cp's order from then on. */
static void test_becomes(void)
{
    const struct duet_candidate swapped[] = {two[1], two[0], two[2]};
    struct duet_policy policy = chooses;
    policy.candidates = swapped;
    struct testing *t =
        testing_init_policy(&(struct testing_machine){.cpus = 1, .gpus = 1}, &policy, 1);
    g_assert_cmpstr(choice_of(t).policy, ==, "eager");
    for (unsigned i = 0; i < 4; i++)
        submit(t, 10, NULL, DUET_R);
    g_assert_cmpstr(choice_of(t).policy, ==, "cp");
    g_assert_cmpuint(duet_list_length(&t->core->workers[1].list), ==, 4);
    g_assert_cmpint(t->core->workers[1].list.order, ==, DUET_HEAP);
    end(t);
}

/* A policy is tried where workers are alike, which a core and a device are not. */
static void test_alike(void)
{
    const struct duet_candidate some[] = {two[0], {.policy = "eager", .alike = true}, two[2]};
    struct duet_policy policy = chooses;
    policy.candidates = some;
    for (unsigned gpus = 0; gpus < 2; gpus++) {
        struct testing *t =
            testing_init_policy(&(struct testing_machine){.cpus = 2, .gpus = gpus}, &policy, 1);
        for (unsigned i = 0; i < 4; i++)
            submit(t, 10, NULL, DUET_R);
        struct duet_choice choice = choice_of(t);
        g_assert_cmpstr(choice.why, ==, "");
        g_assert_cmpstr(choice.runner_up, ==, gpus ? "" : "eager");
        end(t);
    }
}

static void expect_untried(struct testing *t, const char *why)
{
    struct duet_choice choice = choice_of(t);
    g_assert_cmpstr(choice.why, ==, why);
    g_assert_cmpstr(choice.policy, ==, "cp");
    g_assert_cmpuint(choice.tasks, ==, 0);
    end(t);
}

static void test_unknown_times(void)
{
    static const struct duet_implementation cpu = {.arch = "cpu"};
    const struct duet_codelet_desc desc = {.name = "unknown",
                                           .implementations = &cpu,
                                           .implementation_count = 1};
    struct testing *t = start(1, 0);
    g_assert_cmpint(duet_register_codelet(t->core, &desc, &t->any), ==, DUET_OK);
    for (unsigned i = 0; i < 3; i++)
        submit(t, 1, NULL, DUET_R);
    expect_untried(t, "some times of kernels are not known");
}

static void refuse(struct duet_policy policy, const char *fragment)
{
    OWNED(duet_machine_fini) struct duet_machine machine;
    struct duet_runtime *core;
    struct testing t = {.core = NULL};
    testing_machine(&machine, &(struct testing_machine){.cpus = 1});
    struct duet__core_config config = {.machine = &machine,
                                       .policy = &policy,
                                       .model = duet_model_at(0),
                                       .ops = &testing_ops,
                                       .engine = &t};
    FAILS(duet__core_new(&core, &config, hear()), DUET_EINVAL, fragment);
}

static void test_refused(void)
{
    static const struct duet_candidate unknown[] = {{.policy = "best"}, {.policy = NULL}};
    static const struct duet_candidate itself[] = {{.policy = "auto"}, {.policy = NULL}};
    static const struct duet_candidate wrong[] = {{"cp", "gamma", 1, false}, {.policy = NULL}};
    static const struct duet_candidate steals[] = {{.policy = "ws"}, {.policy = "cp"}, {NULL}};
    struct duet_candidate many[20] = {{.policy = NULL}};
    struct duet_policy policy = chooses;
    policy.candidates = unknown;
    refuse(policy, "candidate best of policy chooses");
    policy.candidates = itself;
    refuse(policy, "candidate auto of policy chooses");
    policy.candidates = wrong;
    refuse(policy, "has no parameter gamma");
    policy.candidates = &two[2];
    refuse(policy, "policy chooses has no candidates");
    policy.candidates = steals;
    refuse(policy, "candidate ws of policy chooses is the first, and keeps state, steals");
    for (unsigned i = 0; i < 19; i++)
        many[i] = (struct duet_candidate){"cp", "beta", i, false};
    policy.candidates = many;
    refuse(policy, "more than 16 candidates");
    policy.parameters = NULL;
    refuse(policy, "no parameter that says on how many tasks");
}

/* Others make no choice. With the built-in one 38 tasks go to devices, and two to the cores. */
static void test_built_in(void)
{
    struct duet_choice choice;
    struct testing *t = testing_init(&(struct testing_machine){.cpus = 1}, "ws", 1);
    g_assert_false(duet_choice(t->core, &choice));
    testing_fini(t);
    t = testing_init(&(struct testing_machine){.cpus = 2, .gpus = 2}, "auto", 1);
    for (unsigned i = 0; i < 40; i++)
        submit(t, 10, NULL, DUET_R);
    g_assert_cmpfloat_with_epsilon(choice_of(t).predicted_s, 19e-3, 1e-6);
    end(t);
}

TEST_MAIN(test_scripts, test_becomes, test_alike, test_unknown_times, test_refused, test_built_in)
