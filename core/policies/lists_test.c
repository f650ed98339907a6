/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of the policies that only choose a list. */
#include <math.h>

#include "core/policies/testing.h"

static struct testing *start(const char *policy, unsigned cpus, unsigned gpus)
{
    return testing_init(&(struct testing_machine){.cpus = cpus, .gpus = gpus}, policy, 1);
}

/* ------------------------------------------------------------------------------------------- */
/* eager: one list, highest priority first, in order of arrival among equals. */

static void test_eager_order(void)
{
    static const int priorities[] = {0, 2, -1, 2, 0, 5};
    static const uint64_t order[] = {6, 2, 4, 1, 5, 3};
    OWNED(testing_end) struct testing *t = start("eager", 2, 0);
    struct duet_view view = testing_view(t, DUET_SUBMITTER);
    for (unsigned i = 0; i < 6; i++)
        (void)testing_submit(t, t->any, NULL, 0, NULL, 0, priorities[i]);
    g_assert_cmpuint(duet_list_length(duet_view_shared(&view)), ==, 6);
    for (unsigned i = 0; i < 6; i++) {
        struct duet__engine_command command = testing_next(t, i % 2);
        g_assert_cmpuint(duet_task_id(command.task), ==, order[i]);
        testing_done(t, &command, 1e-6, 0);
    }
}

/* A worker passes over what it cannot run, whatever its priority. */
static void test_eager_passing(void)
{
    OWNED(testing_end) struct testing *t = start("eager", 1, 1);
    (void)testing_submit(t, t->gpu, NULL, 0, NULL, 0, 9);
    (void)testing_submit(t, t->cpu, NULL, 0, NULL, 0, 1);
    (void)testing_submit(t, t->any, NULL, 0, NULL, 0, 5);
    struct duet__engine_command on_cpu = testing_next(t, 0), on_gpu = testing_next(t, 1);
    g_assert_cmpuint(duet_task_id(on_cpu.task), ==, 3);
    g_assert_cmpuint(duet_task_id(on_gpu.task), ==, 1);
    testing_done(t, &on_cpu, 1e-6, 0);
    testing_done(t, &on_gpu, 1e-6, 0);
    testing_drain(t);
    g_assert_null(t->core->policy->steal);
}

/* ------------------------------------------------------------------------------------------- */
/* ws: local push and pop at the head, steal at the tail. */

static void test_ws_ends(void)
{
    struct duet_task *tasks[3];
    OWNED(testing_end) struct testing *t = start("ws", 2, 1);
    struct duet_view view = testing_view(t, 1);
    for (unsigned i = 0; i < 3; i++)
        tasks[i] = testing_create(t, t->any, NULL, 0, NULL, 0, (int)i);
    push_by(t, 1, tasks, 3);
    g_assert_cmpuint(duet_list_length(duet_view_list(&view, 1)), ==, 3);
    g_assert_null(popped(t, 0));
    g_assert_null(stolen(t, 0, 2));
    g_assert_true(stolen(t, 2, 1) == tasks[0]);
    g_assert_true(popped(t, 1) == tasks[2]);
    g_assert_true(stolen(t, 0, 1) == tasks[1]);
}

/* The submitting thread's list is worker 0's; a finishing worker's its own, even of others' tasks.
 */
static void test_ws_local(void)
{
    OWNED(testing_end) struct testing *t = start("ws", 2, 1);
    struct duet_view view = testing_view(t, DUET_SUBMITTER);
    (void)testing_submit(t, t->gpu, NULL, 0, NULL, 0, 0);
    g_assert_cmpuint(duet_list_length(duet_view_list(&view, 0)), ==, 1);
    struct duet_task *task = testing_create(t, t->gpu, NULL, 0, NULL, 0, 0);
    push_by(t, 1, &task, 1);
    g_assert_cmpuint(duet_list_length(duet_view_list(&view, 1)), ==, 1);
    g_assert_null(popped(t, 1));
    g_assert_cmpuint(testing_work(t, 2, NULL), ==, 2);
    struct duet_stats stats;
    duet_stats(t->core, &stats);
    g_assert_cmpuint(stats.steals, ==, 2);
}

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

static void test_lws_priorities(void)
{
    OWNED(testing_end) struct testing *t = start("lws", 3, 2);
    static const int priorities[] = {1, 3, 2, 3};
    static const uint64_t order[] = {2, 4, 3, 1};
    for (unsigned i = 0; i < 4; i++)
        (void)testing_submit(t, t->any, NULL, 0, NULL, 0, priorities[i]);
    for (unsigned i = 0; i < 4; i++)
        g_assert_cmpuint(duet_task_id(i % 2 ? stolen(t, 1, 0) : popped(t, 0)), ==, order[i]);
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

static void test_most_bytes(void)
{
    OWNED(testing_end) struct testing *t = start("data-aware", 2, 2);
    struct duet_handle *a = testing_handle(t, 1000), *b = testing_handle(t, 3000);
    struct duet_handle *c = testing_handle(t, 2500);
    write_on(t, GPU0, a);
    write_on(t, GPU1, b);
    g_assert_cmpuint(goes_to(t, testing_create(t, t->any, a, DUET_R, b, DUET_R, 0), 0), ==, GPU1);
    g_assert_cmpuint(goes_to(t, testing_create(t, t->any, a, DUET_R, NULL, 0, 0), 0), ==, GPU0);
    /* all accesses count, those that only write too; c is on the host, the local core's node */
    g_assert_cmpuint(goes_to(t, testing_create(t, t->any, b, DUET_W, c, DUET_R, 0), 1), ==, GPU1);
    g_assert_cmpuint(goes_to(t, testing_create(t, t->any, a, DUET_R, c, DUET_R, 0), 1), ==, 1);
    /* a worker that cannot run it is no candidate */
    g_assert_cmpuint(goes_to(t, testing_create(t, t->cpu, b, DUET_R, NULL, 0, 0), 1), ==, 1);
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

/* Tasks go to a worker with a valid copy of the written data, however little, whatever is read. */
static void test_owner(void)
{
    OWNED(testing_end) struct testing *t = start("locality-aware", 2, 2);
    struct duet_handle *a = testing_handle(t, 10000), *b = testing_handle(t, 10);
    write_on(t, GPU0, a);
    write_on(t, GPU1, b);
    g_assert_cmpuint(goes_to(t, testing_create(t, t->any, a, DUET_R, b, DUET_RW, 0), 0), ==, GPU1);
    g_assert_cmpuint(goes_to(t, testing_create(t, t->any, b, DUET_W, a, DUET_R, 0), 0), ==, GPU1);
    g_assert_cmpuint(goes_to(t, testing_create(t, t->any, a, DUET_RW, b, DUET_R, 0), 0), ==, GPU0);
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

/* A task that its worker cannot run goes to the next; numbers beyond the last begin anew. */
static void test_pinned(void)
{
    static const struct {
        unsigned cpus;
        const char *kinds; /* of the tasks: for any worker, CPUs, GPUs */
        int priorities[4];
        unsigned workers[4]; /* who runs the next task, and which one that is */
        uint64_t ids[4];
    } rows[] = {{2, "aaaa", {3, 1, 0, 1}, {3, 1, 1, 0}, {1, 2, 4, 3}},
                {1, "gcac", {0, 2, 5, -7}, {1, 0, 2, 0}, {1, 2, 3, 4}}};
    for (unsigned r = 0; r < G_N_ELEMENTS(rows); r++) {
        OWNED(testing_end) struct testing *t = start("pinned", rows[r].cpus, 2);
        for (unsigned i = 0; i < 4; i++) {
            const char kind = rows[r].kinds[i];
            struct duet_codelet *codelet = kind == 'a' ? t->any : kind == 'c' ? t->cpu : t->gpu;
            (void)testing_submit(t, codelet, NULL, 0, NULL, 0, rows[r].priorities[i]);
        }
        for (unsigned i = 0; i < 4; i++) {
            struct duet__engine_command command = testing_next(t, rows[r].workers[i]);
            g_assert_cmpint(command.kind, ==, DUET_RUN);
            g_assert_cmpuint(duet_task_id(command.task), ==, rows[r].ids[i]);
            testing_done(t, &command, 1e-6, 0);
        }
    }
}

/* The policy is found by its name, but is not listed. */
static void test_pinned_not_listed(void)
{
    const struct duet_policy *pinned = duet_policy_find("pinned");
    g_assert_cmpint(duet_policy_check(pinned, NULL), ==, DUET_OK);
    g_assert_null(pinned->steal);
    for (size_t i = 0; duet_policy_at(i); i++)
        g_assert_true(duet_policy_at(i) != pinned);
}

TEST_MAIN(test_eager_order, test_eager_passing, test_ws_ends, test_ws_local, test_ws_share,
          test_lws_victims, test_lws_steals, test_lws_priorities, test_most_bytes, test_most_ties,
          test_owner, test_owner_local, test_owner_several, test_ends, test_random, test_pinned,
          test_pinned_not_listed)
