/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests of tasks that are taken and not begun, and go to another worker, by a policy that says who.
 */
#include <math.h>

#include "core/testing_lost.h"

enum { CPU = 0, GPU = 1, GPU2 = 2, BLOCK = SLAB_ALIGN };

static const struct testing_machine two = {.cpus = 1, .gpus = 2};

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

/* A core that nobody has asked yet. */
static struct testing *start(const struct testing_machine *make, int thief)
{
    static struct duet_policy policy; /* the core keeps a pointer */
    policy = *duet_policy_find("eager");
    policy.revoke = says;
    policy_says.thief = thief;
    policy_says.asked = 0;
    return testing_init_policy(make, &policy, 1);
}

static uint64_t revocations(const struct testing *t)
{
    struct duet_stats stats;
    duet_stats(t->core, &stats);
    return stats.revocations;
}

static void done(struct testing *t, struct duet__engine_command command)
{
    testing_done(t, &command, 1e-6, 0);
}

/*
 * A device waits for two inputs, of which one has come, when another becomes idle and gets the
 * task. Nothing of it is left at the first one but the copy under way, behind which what writes the
 * data comes, though the task has ended; and the copies are valid there.
 */
static void test_fetching(void)
{
    struct testing *t = start(&two, -1);
    struct duet_handle *a = testing_handle(t, BLOCK), *b = testing_handle(t, BLOCK);
    (void)testing_submit(t, t->gpu, a, DUET_R, b, DUET_R, 0);
    struct duet__engine_command first = expect_copy(t, GPU, a, 0, 1);
    struct duet__engine_command second = expect_copy(t, GPU, b, 0, 1);
    expect_idle(t, GPU);
    done(t, first);
    g_assert_cmpuint(atomic_load(&t->core->nodes[1].pinned), ==, 2);
    g_assert_cmpuint(policy_says.asked, ==, 0); /* nobody is idle */
    t->woken[GPU] = false;
    expect_idle(t, GPU2);
    g_assert_true(t->woken[GPU]);
    expect_idle(t, GPU); /* it is asked, and stays */
    g_assert_cmpuint(policy_says.asked, ==, 1);
    g_assert_cmpuint(policy_says.victim, ==, GPU);
    g_assert_cmpfloat(policy_says.begin_s, >=, t->now);
    policy_says.thief = GPU2;
    t->woken[GPU2] = false;
    expect_idle(t, GPU);
    g_assert_true(t->woken[GPU2]);
    g_assert_cmpuint(revocations(t), ==, 1);
    g_assert_cmpuint(atomic_load(&t->core->nodes[1].pinned), ==, 0);
    g_assert_cmpint(atomic_load(&t->core->workers[GPU].taken_ns), ==, 0);
    g_assert_cmpuint(duet_list_length(&t->core->workers[GPU2].list), ==, 1);

    policy_says.thief = -1;
    g_assert_cmpuint(testing_work(t, GPU2, NULL), ==, 1);
    (void)testing_submit(t, t->cpu, a, DUET_W, NULL, 0, 0);
    (void)testing_submit(t, t->cpu, b, DUET_W, NULL, 0, 0);
    done(t, expect_run(t, CPU));
    expect_idle(t, CPU);
    done(t, second);
    g_assert_true(bit_test(b->valid, 1));
    g_assert_cmpuint(testing_work(t, CPU, NULL), ==, 1);
    lost_end(t, DUET_OK, "");
}

/* A worker that got the task after all is not asked for it again. */
static void test_once(void)
{
    struct testing *t = start(&two, GPU2);
    struct duet_handle *a = testing_handle(t, BLOCK);
    (void)testing_submit(t, t->gpu, a, DUET_R, NULL, 0, 0);
    struct duet__engine_command copy = expect_copy(t, GPU, a, 0, 1);
    expect_idle(t, GPU2);
    expect_idle(t, GPU);
    g_assert_cmpuint(policy_says.asked, ==, 1);
    struct duet__engine_command again = expect_copy(t, GPU2, a, 0, 2);
    policy_says.thief = GPU;
    expect_idle(t, GPU2);
    done(t, again);
    done(t, expect_run(t, GPU2));
    g_assert_cmpuint(policy_says.asked, ==, 1);
    done(t, copy);
    lost_end(t, DUET_OK, "");
}

/* A task that writes data on its way is not asked for before the data has come. */
static void test_writes(void)
{
    struct testing *t = start(&two, -1);
    struct duet_handle *a = testing_handle(t, BLOCK);
    (void)testing_submit(t, t->gpu, a, DUET_RW, NULL, 0, 0);
    g_assert_cmpuint(testing_work(t, GPU2, NULL), ==, 1);
    (void)testing_submit(t, t->any, a, DUET_RW, NULL, 0, 0);
    struct duet__engine_command copy = expect_copy(t, GPU, a, 2, 1);
    policy_says.thief = GPU2;
    expect_idle(t, GPU2);
    expect_idle(t, GPU);
    g_assert_cmpuint(policy_says.asked, ==, 0);
    done(t, copy);
    expect_idle(t, GPU);
    g_assert_cmpuint(revocations(t), ==, 1);
    done(t, expect_run(t, GPU2));
    lost_end(t, DUET_OK, "");
}

/* A task that waits for room, behind a kernel. */
static void test_taken(void)
{
    struct testing *t =
        start(&(struct testing_machine){.cpus = 2, .gpus = 1, .capacity_bytes = BLOCK}, -1);
    enum { DEVICE = 2 };
    struct duet_handle *a = testing_handle(t, BLOCK), *b = testing_handle(t, BLOCK);
    (void)testing_submit(t, t->gpu, a, DUET_W, NULL, 0, 0);
    (void)testing_submit(t, t->any, b, DUET_RW, NULL, 0, 0);
    struct duet__engine_command run = expect_run(t, DEVICE);
    expect_idle(t, DEVICE);
    g_assert_cmpint(t->core->workers[DEVICE].slots[1]->state, ==, TASK_TAKEN);
    policy_says.thief = CPU;
    expect_idle(t, CPU);
    expect_idle(t, DEVICE);
    g_assert_cmpuint(t->core->workers[DEVICE].taken, ==, 1);
    g_assert_cmpfloat(policy_says.begin_s, >=, t->now + 1e-4 - 1e-9); /* behind the kernel */
    g_assert_false(atomic_load(&t->core->nodes[1].blocked));
    done(t, expect_run(t, CPU));
    done(t, run);
    lost_end(t, DUET_OK, "");
}

/* A commuting task is never asked for. */
static void test_never(void)
{
    struct testing *t = start(&two, GPU2);
    struct duet_handle *a = testing_handle(t, BLOCK);
    (void)testing_submit(t, t->gpu, a, DUET_COMMUTE, NULL, 0, 0);
    struct duet__engine_command copy = expect_copy(t, GPU, a, 0, 1);
    expect_idle(t, GPU2);
    expect_idle(t, GPU);
    g_assert_cmpuint(policy_says.asked, ==, 0);
    done(t, copy);
    done(t, expect_run(t, GPU));
    lost_end(t, DUET_OK, "");
}

/* A policy that names a worker that there is not fails the run, and the task stays. */
static void test_nobody(void)
{
    struct testing *t = start(&two, 3);
    struct duet_handle *a = testing_handle(t, BLOCK);
    (void)testing_submit(t, t->gpu, a, DUET_R, NULL, 0, 0);
    struct duet__engine_command copy = expect_copy(t, GPU, a, 0, 1);
    expect_idle(t, GPU2);
    expect_idle(t, GPU);
    g_assert_cmpuint(revocations(t), ==, 0);
    done(t, copy);
    expect_idle(t, GPU);
    lost_end(t, DUET_EINVAL, "policy eager asks for the list of worker 3 of 3");
}

/* A policy gives everything to a worker that is busy, while one is idle that can run nothing. */
static void test_many(void)
{
    enum { TASKS = 60000, BUSY = 0, VICTIM = 1, IDLE = 2 };
    static const struct testing_machine mixed = {.cpus = 2, .gpus = 1};
    struct testing *t = start(&mixed, BUSY);
    (void)testing_submit(t, t->cpu, NULL, 0, NULL, 0, 0);
    struct duet__engine_command run = expect_run(t, BUSY);
    expect_idle(t, IDLE);
    for (unsigned i = 0; i < TASKS; i++)
        (void)testing_submit(t, t->cpu, NULL, 0, NULL, 0, 0);
    expect_idle(t, VICTIM);
    g_assert_cmpuint(revocations(t), ==, TASKS);
    policy_says.thief = -1;
    done(t, run);
    g_assert_cmpuint(testing_work(t, BUSY, NULL), ==, TASKS);
    lost_end(t, DUET_OK, "");
}

/* The thief, or the victim with the copy under way, is lost. */
static void test_lost(void)
{
    for (unsigned lost = GPU; lost <= GPU2; lost++) {
        struct testing *t = start(&two, GPU2);
        struct duet_handle *a = testing_handle(t, BLOCK);
        (void)testing_submit(t, t->gpu, a, DUET_R, NULL, 0, 0);
        struct duet__engine_command copy = expect_copy(t, GPU, a, 0, 1);
        expect_idle(t, CPU);
        expect_idle(t, GPU2);
        if (lost == GPU2)
            lose(t, GPU2);
        expect_idle(t, GPU);
        g_assert_cmpuint(revocations(t), ==, 1);
        if (lost == GPU) {
            lose(t, GPU);
            done_lost(t, &copy);
        } else {
            done(t, copy);
        }
        g_assert_cmpuint(go(t, NULL), ==, 1);
        g_assert_cmpuint(duet_worker_stats(t->core, lost == GPU ? GPU2 : GPU).tasks, ==, 1);
        lost_end(t, DUET_OK, "");
    }
}

/* Policies with revocation: a core leaves its task to an idle device that ends it earlier. */
static void test_policies(void)
{
    static const char *const names[] = {"eager", "no-prio", "lws", "heteroprio"};
    static const double weights[] = {2, 20, 0}; /* it is 10 times as fast */
    for (unsigned i = 0; i < 3 * G_N_ELEMENTS(names); i++) {
        const struct duet_policy *policy = duet_policy_find(names[i / 3]);
        struct testing *t = testing_init_policy(&two, policy, 1);
        for (unsigned p = 0; policy->parameters[p].name; p++)
            t->core->parameters[p] =
                strcmp(policy->parameters[p].name, "revoke") ? 0 : weights[i % 3];
        struct duet_handle *a = testing_handle(t, BLOCK);
        (void)testing_submit(t, t->gpu, a, DUET_W, NULL, 0, 0);
        g_assert_cmpuint(testing_work(t, GPU, NULL), ==, 1);
        (void)testing_submit(t, t->any, a, DUET_R, NULL, 0, 0);
        expect_idle(t, CPU);
        expect_idle(t, GPU2);
        g_assert_true(t->woken[CPU]);
        expect_idle(t, CPU);
        g_assert_cmpuint(revocations(t), ==, (uint64_t)(weights[i % 3] == 2));
        testing_drain(t);
        lost_end(t, DUET_OK, "");
    }
}

TEST_MAIN(test_fetching, test_once, test_writes, test_taken, test_never, test_nobody, test_many,
          test_lost, test_policies)
