/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of the policies that only choose a list. */
#include <math.h>

#include "core/policies/testing.h"

static struct testing *start(const char *policy, unsigned cpus, unsigned gpus)
{
    return testing_init(&(struct testing_machine){.cpus = cpus, .gpus = gpus}, policy, 1);
}

static const struct script scripts[] = {
    {"eager: one list, highest priority first, in order of arrival among equals",
     "cpus=2 unasked eager",
     "any; any!2; any!-1; any!2; any; any!5; cpu0 run 6; done 6; cpu1 run 2; done 2; cpu0 run 4;"
     "done 4; cpu1 run 1; done 1; cpu0 run 5; done 5; cpu1 run 3; done 3"},
    {"eager: a worker passes over what it cannot run, whatever its priority",
     "cpus=1 gpus=1 unasked eager",
     "gpu!9; cpu!1; any!5; cpu0 run 3; gpu0 run 1; done 3; done 1; drain"},
    {"ws: local push and pop at the head, steal at the tail", "cpus=2 gpus=1 unasked ws",
     "A 1; B 1!1; C 1!2; by cpu1 A B C; cpu1 lists 3; pop cpu0 none; steal cpu0 gpu0 none;"
     "steal gpu0 cpu1 A; pop cpu1 C; steal cpu0 cpu1 B; fini"},
    {"ws: the submitting thread's list is worker 0's; a finishing worker's its own, even of "
     "others' "
     "tasks",
     "cpus=2 gpus=1 unasked ws",
     "gpu; cpu0 lists 1; A 0/1; by cpu1 A; cpu1 lists 1; pop cpu1 none; gpu0 work 2; steals 2;"
     "fini"},
    {"lws: tasks of high priority first, also for thieves", "cpus=3 gpus=2 unasked lws",
     "A 1!1; B 1!3; C 1!2; D 1!3; push A B C D; pop cpu0 B; steal cpu1 cpu0 D; pop cpu0 C;"
     "steal cpu1 cpu0 A; fini"},
    /* all accesses count, those that only write too; c is on the host, the local core's node; a
     * worker that cannot run it is no candidate */
    {"data-aware (H1): to where most valid bytes are", "cpus=2 gpus=2 unasked data-aware",
     "data a*4 b*12 c*10; gpu a:w; gpu0 work 1; gpu b:w; gpu1 work 1; E any a:r b:r; goes E gpu1 "
     "cpu0;"
     "F any a:r; goes F gpu0 cpu0; G any b:w c:r; goes G gpu1 cpu1; H any a:r c:r;"
     "goes H cpu1 cpu1; I cpu b:r; goes I cpu1 cpu1; fini"},
    {"locality-aware (H2): to who holds what is written, however little, whatever is read",
     "cpus=2 gpus=2 unasked locality-aware",
     "data a*40 b; gpu a:w; gpu0 work 1; gpu b:w; gpu1 work 1; E any a:r b:rw; goes E gpu1 cpu0;"
     "F any b:w a:r; goes F gpu1 cpu0; G any a:rw b:r; goes G gpu0 cpu0; fini"},
    /* numbers beyond the last begin anew */
    {"pinned: tasks run where their priority says", "cpus=2 gpus=2 unasked pinned",
     "any!3; any!1; any; any!1; gpu1 run 1; done 1; cpu1 run 2; done 2; cpu1 run 4; done 4;"
     "cpu0 run 3; done 3"},
    {"pinned: a task that its worker cannot run goes to the next", "cpus=1 gpus=2 unasked pinned",
     "gpu; cpu!2; any!5; cpu!-7; gpu0 run 1; done 1; cpu0 run 2; done 2; gpu1 run 3; done 3;"
     "cpu0 run 4; done 4"},
};

static void test_scripts(void)
{
    policy_scripts_play(scripts, G_N_ELEMENTS(scripts));
}

/* ------------------------------------------------------------------------------------------- */
/* ws                                                                                           */

/*
 * Submits `count` tasks, each expected to take `microseconds` on a CPU worker, on worker 0's list.
 * Returns how many a worker that takes one has then on its own list.
 */
static unsigned taken_along(unsigned count, double microseconds, unsigned thief)
{
    double flops = microseconds * 1e3; /* flops on CPUs: see testing_cost */
    struct testing *t = start("ws", 3, 1);
    const struct duet_task_desc desc = {.codelet = t->any,
                                        .args = &flops,
                                        .args_bytes = sizeof flops};
    for (unsigned i = 0; i < count; i++)
        g_assert_cmpint(duet_submit(t->core, &desc), ==, DUET_OK);
    struct duet_view view = testing_view(t, (int)thief);
    const struct duet_list *own = duet_view_list(&view, thief);
    struct duet_task *task = stolen(t, thief, 0);
    unsigned along = (unsigned)duet_list_length(own);
    g_assert_cmpuint(duet_task_id(task), ==, 1);
    g_assert_cmpuint(duet_list_length(duet_view_list(&view, 0)), ==, count - 1 - along);
    for (unsigned i = 0; i < along; i++) {
        g_assert_cmpuint(duet_task_id(popped(t, thief)), ==, 2 + i);
    }
    g_assert_cmpfloat(duet_view_load(&view, thief), ==, 0);
    testing_fini(t);
    return along;
}

/*
 * A thief takes its part of a list of short tasks along, in their order, up to 100 microseconds;
 * none of long tasks, and none to a device.
 */
static void test_ws_share(void)
{
    g_assert_cmpuint(taken_along(42, 1, 1), ==, 9);
    g_assert_cmpuint(taken_along(42, 30, 1), ==, 2);
    g_assert_cmpuint(taken_along(42, 60, 1), ==, 0);
    g_assert_cmpuint(taken_along(42, 0.01, 3), ==, 0);
    g_assert_cmpuint(taken_along(4, 1, 1), ==, 0);
}

/* ------------------------------------------------------------------------------------------- */
/* lws: victims near the thief first, and tasks of high priority. Three cores, two devices. */

static void test_lws_victims(void)
{
    static const unsigned orders[5][4] = {{1, 2, 3, 4},
                                          {0, 2, 3, 4},
                                          {1, 0, 3, 4},
                                          {4, 2, 1, 0},
                                          {3, 2, 1, 0}};
    OWNED(testing_end) struct testing *t = start("lws", 3, 2);
    for (unsigned w = 0; w < 5; w++)
        for (unsigned i = 0; i < 4; i++)
            g_assert_cmpuint(t->core->workers[w].victims[i], ==, orders[w][i]);
}

/* A thief goes through them in this order, again and again. */
static void test_lws_steals(void)
{
    OWNED(testing_end) struct testing *t = start("lws", 3, 2);
    for (unsigned round = 0; round < 3; round++) {
        uint64_t ids[2];
        for (unsigned i = 0; i < 2; i++) {
            struct duet_task *task = testing_create(t, t->any, NULL, 0, NULL, 0, 0);
            ids[i] = duet_task_id(task);
            push_by(t, (int)i, &task, 1);
        }
        for (unsigned i = 0; i < 2; i++) {
            struct duet__engine_command command = testing_next(t, 2);
            g_assert_cmpint(command.kind, ==, DUET_RUN);
            g_assert_cmpuint(duet_task_id(command.task), ==, ids[1 - i]);
            testing_done(t, &command, 1e-3, 0);
        }
    }
}

/* ------------------------------------------------------------------------------------------- */
/* data-aware (H1), to where most valid bytes are, and locality-aware (H2), to who holds what is
 * written. Two cores, two devices. */

enum { GPU0 = 2, GPU1 = 3, MANY = 200 };

/* Makes the handle valid on one device alone. */
static void write_on(struct testing *t, unsigned worker, struct duet_handle *handle)
{
    (void)testing_submit(t, t->gpu, handle, DUET_W, NULL, 0, 0);
    g_assert_cmpuint(testing_work(t, worker, NULL), ==, 1);
}

/* Among equals the local worker; if it is none of them, each of them now and then. */
static void test_most_ties(void)
{
    unsigned count[4] = {0};
    OWNED(testing_end) struct testing *t = start("data-aware", 2, 2);
    struct duet_handle *c = testing_handle(t, 100);
    struct duet_task *anywhere = testing_create(t, t->any, NULL, 0, NULL, 0, 0);
    struct duet_task *on_host = testing_create(t, t->any, c, DUET_R, NULL, 0, 0);
    struct duet_task *on_gpu = testing_create(t, t->gpu, c, DUET_R, NULL, 0, 0);
    for (int by = 0; by < 4; by++)
        g_assert_cmpuint(goes_to(t, anywhere, by), ==, (unsigned)by);
    g_assert_cmpuint(goes_to(t, anywhere, DUET_SUBMITTER), ==, 0);
    for (unsigned i = 0; i < MANY; i++) {
        count[goes_to(t, on_host, GPU0)]++;
        count[goes_to(t, on_gpu, 0)]++;
    }
    for (unsigned w = 0; w < 4; w++)
        g_assert_cmpuint(count[w], >, MANY / 4);
}

/* Local if nobody holds it, if nothing is written, or if who holds it cannot run the task. */
static void test_owner_local(void)
{
    OWNED(testing_end) struct testing *t = start("locality-aware", 2, 2);
    struct duet_handle *a = testing_handle(t, 1000);
    write_on(t, GPU0, a);
    struct duet_task *const tasks[] = {testing_create(t, t->any, NULL, 0, NULL, 0, 0),
                                       testing_create(t, t->any, a, DUET_R, NULL, 0, 0),
                                       testing_create(t, t->cpu, a, DUET_RW, NULL, 0, 0)};
    for (unsigned i = 0; i < 3; i++)
        for (int by = 0; by < 4; by++)
            g_assert_cmpuint(goes_to(t, tasks[i], by), ==, (unsigned)by);
    g_assert_cmpuint(goes_to(t, tasks[0], DUET_SUBMITTER), ==, 0);
}

/* Several holders: each of them now and then, the local one no more than the others. */
static void test_owner_several(void)
{
    unsigned count[4] = {0};
    OWNED(testing_end) struct testing *t = start("locality-aware", 2, 2);
    struct duet_handle *a = testing_handle(t, 1000), *b = testing_handle(t, 1000);
    (void)testing_submit(t, t->gpu, a, DUET_R, NULL, 0, 0);
    g_assert_cmpuint(testing_work(t, GPU0, NULL), ==, 1);
    write_on(t, GPU1, b);
    struct duet_task *task = testing_create(t, t->any, a, DUET_RW, NULL, 0, 0);
    struct duet_task *both = testing_create(t, t->any, a, DUET_RW, b, DUET_RW, 0);
    for (unsigned i = 0; i < MANY; i++)
        count[goes_to(t, task, 1)]++;
    g_assert_cmpuint(count[GPU1], ==, 0);
    for (unsigned w = 0; w < 3; w++)
        g_assert_cmpuint(count[w], >, MANY / 5);
    for (unsigned i = 0; i < MANY; i++)
        count[goes_to(t, both, GPU1)]++;
    g_assert_cmpuint(count[GPU1], >, MANY / 8);
    g_assert_cmpuint(count[GPU1], <, MANY / 2);
}

/* A worker's own pushes go to the head of its list, and those of others to the tail. */
static void test_ends(void)
{
    for (unsigned i = 0; i < 2; i++) {
        OWNED(testing_end) struct testing *t = start(i ? "locality-aware" : "data-aware", 2, 2);
        struct duet_handle *a = testing_handle(t, 1000);
        write_on(t, GPU0, a);
        for (int by = 0; by <= GPU0; by += GPU0) {
            enum duet_mode mode = i ? DUET_RW : DUET_R;
            struct duet_task *const tasks[] = {testing_create(t, t->any, a, mode, NULL, 0, 0),
                                               testing_create(t, t->any, a, mode, NULL, 0, 0)};
            push_by(t, by, tasks, 2);
            g_assert_true(popped(t, GPU0) == tasks[by == GPU0]);
            g_assert_true(stolen(t, 1, GPU0) == tasks[by != GPU0]);
        }
    }
}

/* ------------------------------------------------------------------------------------------- */
/* random and w-rand: who gets how many tasks. Two cores, two devices, ten times as fast. */

/* Each worker gets its share of the tasks, to within five deviations of a fair draw. */
static void test_random(void)
{
    enum { DRAWS = 4000 };
    static const struct {
        const char *policy;
        double parameters[2]; /* 0: as they are initially */
        bool gpus_only;
        double shares[4];
    } rows[] = {
        {"random", {0}, false, {1.0 / 4, 1.0 / 4, 1.0 / 4, 1.0 / 4}},
        {"random", {0}, true, {0, 0, 1.0 / 2, 1.0 / 2}},
        {"w-rand", {0}, false, {1.0 / 22, 1.0 / 22, 10.0 / 22, 10.0 / 22}},
        {"w-rand", {1, 3}, false, {1.0 / 8, 1.0 / 8, 3.0 / 8, 3.0 / 8}},
    };
    for (unsigned r = 0; r < G_N_ELEMENTS(rows); r++) {
        OWNED(testing_end) struct testing *t = start(rows[r].policy, 2, 2);
        struct duet_view view = testing_view(t, DUET_SUBMITTER);
        for (unsigned i = 0; rows[r].parameters[0] > 0 && i < 2; i++)
            t->core->parameters[i] = rows[r].parameters[i];
        for (unsigned i = 0; i < DRAWS; i++)
            (void)testing_submit(t, rows[r].gpus_only ? t->gpu : t->any, NULL, 0, NULL, 0, 0);
        for (unsigned w = 0; w < 4; w++) {
            double mean = DRAWS * rows[r].shares[w];
            double count = (double)duet_list_length(duet_view_list(&view, w));
            g_assert_cmpfloat(fabs(count - mean), <=, 5 * sqrt(mean * (1 - rows[r].shares[w])));
        }
        g_assert_null(t->core->policy->steal);
    }
}

/* ------------------------------------------------------------------------------------------- */
/* pinned: tasks run where their priority says, or on the next worker that can. */

/* The policy is found by its name, but is not listed. */
static void test_pinned_not_listed(void)
{
    const struct duet_policy *pinned = duet_policy_find("pinned");
    g_assert_cmpint(duet_policy_check(pinned, NULL), ==, DUET_OK);
    g_assert_null(pinned->steal);
    g_assert_null(duet_policy_find("eager")->steal);
    for (size_t i = 0; duet_policy_at(i); i++)
        g_assert_true(duet_policy_at(i) != pinned);
}

TEST_MAIN(test_scripts, test_ws_share, test_lws_victims, test_lws_steals, test_most_ties,
          test_owner_local, test_owner_several, test_ends, test_random, test_pinned_not_listed)
