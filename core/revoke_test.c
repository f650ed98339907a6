/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests of tasks that are taken and not begun, and go to another worker, by a policy that says who.
 */
#include "core/testing_script.h"

/* Questions of the core to the policy: its answer, their number, and the last one. */
static struct {
    int thief;
    unsigned asked, victim;
    double begin_s;
} policy_says;

static int says(void *self, struct duet_view *view, const struct duet_task *task, unsigned victim,
                double begin_s, double now)
{
    policy_says.asked++;
    policy_says.victim = victim;
    policy_says.begin_s = begin_s;
    return policy_says.thief == (int)victim ? -1 : policy_says.thief;
}

/*
 * "thief gpu1" is the policy's answer from here on, "asked 2 gpu0" so many questions, the last of
 * which was of that worker's task; "behind 100" says that this is to begin so many us later.
 */
static bool policy_step(struct stage *stage, char **words)
{
    if (stage_is(words, "thief")) {
        policy_says.thief = !strcmp(words[1], "another") ? 3 : stage_worker(stage, words[1]);
    } else if (stage_is(words, "asked")) {
        stage_same(stage, "the number of questions", policy_says.asked,
                   stage_number(stage, words[1]));
        if (words[2])
            stage_same(stage, "the victim", policy_says.victim, stage_worker(stage, words[2]));
    } else if (stage_is(words, "behind")) {
        g_assert_cmpfloat(policy_says.begin_s, >=,
                          stage->t->now + 1e-6 * (double)stage_number(stage, words[1]) - 1e-9);
    } else {
        return false;
    }
    return true;
}

#define TWO "cpus=1 gpus=2 unasked"

static const struct script scripts[] = {
    /* The first device keeps only the copy under way. The writer of its data waits for it, though
     * the reader has ended. The copies stay valid there. */
    {"a device waits for two inputs, of which one has come, when another idle one gets the task",
     TWO,
     "thief nobody; data a b; gpu a:r b:r; gpu0 copy a host>gpu0; gpu0 copy b host>gpu0; gpu0 idle;"
     "done a; pinned gpu0 2; asked 0; hush gpu0; gpu1 idle; woken gpu0; gpu0 idle; asked 1 gpu0;"
     "behind 0; thief gpu1; hush gpu1; gpu0 idle; woken gpu1; revocations 1; pinned gpu0 0;"
     "gpu0 takes 0; gpu1 lists 1; thief nobody; gpu1 work 1; cpu a:w; cpu b:w; cpu0 run 2; done 2;"
     "cpu0 idle; done b; valid b host gpu0 gpu1; cpu0 work 1"},
    {"a worker that got the task after all is not asked for it again", TWO,
     "thief gpu1; data a; gpu a:r; gpu0 copy a host>gpu0; gpu1 idle; gpu0 idle; asked 1;"
     "gpu1 copy a host>gpu1; thief gpu0; gpu1 idle; done a>gpu1; gpu1 run 1; done 1; asked 1;"
     "done a"},
    {"a task that writes data on its way is not asked for before the data has come", TWO,
     "thief nobody; data a; gpu a:rw; gpu1 work 1; any a:rw; gpu0 copy a gpu1>gpu0; thief gpu1;"
     "gpu1 idle; gpu0 idle; asked 0; done a; gpu0 idle; revocations 1; gpu1 run 2; done 2"},
    {"a task that waits for room is behind a kernel", "cpus=2 gpus=1 blocks=1 unasked",
     "thief nobody; data a b; gpu a:w; any b:rw; gpu0 run 1; gpu0 idle; gpu0 takes 2; thief cpu0;"
     "cpu0 idle; gpu0 idle; gpu0 takes 1; behind 100; blocked gpu0 0; cpu0 run 2; done 2; done 1"},
    {"a commuting task is never asked for", TWO,
     "thief gpu1; data a; gpu a:c; gpu0 copy a host>gpu0; gpu1 idle; gpu0 idle; asked 0; done a;"
     "gpu0 run 1; done 1"},
    {"a policy that names a worker that there is not fails the run, and the task stays", TWO,
     "thief another; data a; gpu a:r; gpu0 copy a host>gpu0; gpu1 idle; gpu0 idle; revocations 0;"
     "done a; gpu0 idle; end EINVAL policy eager asks for the list of worker 3 of 3"},
    {"the thief is lost", TWO,
     "thief gpu1; data a; gpu a:r; gpu0 copy a host>gpu0; cpu0 idle; gpu1 idle; lose gpu1;"
     "gpu0 idle; revocations 1; done a; go 1; gpu0 ran 1"},
    {"the victim is lost, with the copy under way", TWO,
     "thief gpu1; data a; gpu a:r; gpu0 copy a host>gpu0; cpu0 idle; gpu1 idle; gpu0 idle;"
     "revocations 1; lose gpu0; lost a; go 1; gpu1 ran 1"},
};

static void test_scripts(void)
{
    struct duet_policy policy = *duet_policy_find("eager");
    policy.revoke = says;
    for (size_t i = 0; i < G_N_ELEMENTS(scripts); i++) {
        policy_says.asked = 0;
        scripts_play_with(&scripts[i], 1, &(struct stage_more){&policy, policy_step});
    }
}

/* A policy gives everything to a worker that is busy, while one is idle that can run nothing. */
static void test_many(void)
{
    enum { TASKS = 60000, BUSY = 0, VICTIM = 1, IDLE = 2 };
    struct duet_policy policy = *duet_policy_find("eager");
    struct duet_stats stats;
    policy.revoke = says;
    policy_says.thief = BUSY;
    struct testing *t =
        testing_init_policy(&(struct testing_machine){.cpus = 2, .gpus = 1}, &policy, 1);
    (void)testing_submit(t, t->cpu, NULL, 0, NULL, 0, 0);
    struct duet__engine_command run = expect_run(t, BUSY);
    expect_idle(t, IDLE);
    for (unsigned i = 0; i < TASKS; i++)
        (void)testing_submit(t, t->cpu, NULL, 0, NULL, 0, 0);
    expect_idle(t, VICTIM);
    duet_stats(t->core, &stats);
    g_assert_cmpuint(stats.revocations, ==, TASKS);
    policy_says.thief = -1;
    testing_done(t, &run, 1e-6, 0);
    g_assert_cmpuint(testing_work(t, BUSY, NULL), ==, TASKS);
    lost_end(t, DUET_OK, "");
}

/* Policies with revocation: a core leaves its task to an idle device that ends it earlier. */
static void test_policies(void)
{
    static const char *const names[] = {"eager", "no-prio", "lws", "heteroprio"};
    enum { CPU = 0, GPU = 1, GPU2 = 2 };
    struct duet_stats stats;
    static const double weights[] = {2, 20, 0}; /* it is 10 times as fast */
    for (unsigned i = 0; i < 3 * G_N_ELEMENTS(names); i++) {
        const struct duet_policy *policy = duet_policy_find(names[i / 3]);
        struct testing *t =
            testing_init_policy(&(struct testing_machine){.cpus = 1, .gpus = 2}, policy, 1);
        for (unsigned p = 0; policy->parameters[p].name; p++)
            t->core->parameters[p] =
                strcmp(policy->parameters[p].name, "revoke") ? 0 : weights[i % 3];
        struct duet_handle *a = testing_handle(t, SLAB_ALIGN);
        (void)testing_submit(t, t->gpu, a, DUET_W, NULL, 0, 0);
        g_assert_cmpuint(testing_work(t, GPU, NULL), ==, 1);
        (void)testing_submit(t, t->any, a, DUET_R, NULL, 0, 0);
        expect_idle(t, CPU);
        expect_idle(t, GPU2);
        g_assert_true(t->woken[CPU]);
        expect_idle(t, CPU);
        duet_stats(t->core, &stats);
        g_assert_cmpuint(stats.revocations, ==, (uint64_t)(weights[i % 3] == 2));
        testing_drain(t);
        lost_end(t, DUET_OK, "");
    }
}

TEST_MAIN(test_scripts, test_many, test_policies)
