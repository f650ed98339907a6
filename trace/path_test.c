/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Critical paths, and what workers wait for, of recordings made by hand; and of simulations of
 * random graphs, whose paths have neither gaps nor overlaps.
 */
#include "trace/account.h"

#include <math.h>

#include "runs/session.h"
#include "trace/testing_account.h"
#include "trace/trace.h"

/* A stretch that is expected. */
struct expected {
    enum duet__state state;
    uint64_t id;
    double end_s;
    enum duet_release after;
};

static void expect_path(struct testing_recording *testing, const struct expected *expected,
                        guint count)
{
    struct duet__path path;
    double date_s = 0, parts_s = 0;
    testing_release(testing);
    duet__path_make(&testing->recording, NULL, &path);
    for (guint i = 0; i < path.steps->len; i++) {
        const struct duet__step *step = &g_array_index(path.steps, struct duet__step, i);
        g_test_message("state %u of %u from %g to %g", step->state,
                       (unsigned)testing->events[step->event].id, step->start_s, step->end_s);
        g_assert_cmpuint(i, <, count);
        g_assert_cmpint(step->state, ==, expected[i].state);
        g_assert_cmpuint(testing->events[step->event].id, ==, expected[i].id);
        testing_near(step->start_s, date_s);
        testing_near(step->end_s, expected[i].end_s);
        if (step->state == DUET_STATE_KERNEL)
            g_assert_cmpint(step->after, ==, expected[i].after);
        date_s = step->end_s;
    }
    g_assert_cmpuint(path.steps->len, ==, count);
    for (guint i = 0; i < path.parts->len; i++)
        parts_s += g_array_index(path.parts, struct duet__path_part, i).seconds;
    testing_near(parts_s, testing->recording.makespan_s);
    duet__path_fini(&path);
    duet__path_fini(&path);
}

/* A task, its data's way to the host and on, with a wait for the link, and the next task. */
static void test_copies(void)
{
    OWNED(testing_fini) struct testing_recording testing;
    testing_init(&testing, 20);
    testing_task(&testing, 0, 0, 0, 1, 3)->submit_s = 1;
    testing_copy(&testing, 7, 0, 1, 3, 5, 8); /* waits 2 s for the link */
    testing_task(&testing, 1, 1, 3, 8, 10);
    testing_copy(&testing, 8, 1, 0, 10, 10, 12);
    testing_copy(&testing, 8, 0, 2, 12, 12, 15);
    testing_task(&testing, 2, 1, 10, 15.5, 18);
    testing_task(&testing, 2, 0, 0, 18, 20);
    testing_task(&testing, 0, 0, 0, 3, 4); /* is on no path */
    expect_path(&testing,
                (const struct expected[]){
                    {DUET_STATE_BEFORE, 1, 1, 0},
                    {DUET_STATE_KERNEL, 1, 3, DUET_RELEASE_SUBMISSION},
                    {DUET_STATE_TO_DEVICE_QUEUE, 7, 5, 0},
                    {DUET_STATE_TO_DEVICE, 7, 8, 0},
                    {DUET_STATE_KERNEL, 3, 10, DUET_RELEASE_COPY},
                    {DUET_STATE_TO_HOST, 8, 12, 0},
                    {DUET_STATE_TO_DEVICE, 8, 15, 0},
                    {DUET_STATE_OVERHEAD, 6, 15.5, 0},
                    {DUET_STATE_KERNEL, 6, 18, DUET_RELEASE_COPY},
                    {DUET_STATE_KERNEL, 7, 20, DUET_RELEASE_WORKER},
                },
                10);
}

/* Room is made before data comes; the application waits before it submits more. */
static void test_room(void)
{
    OWNED(testing_fini) struct testing_recording testing;
    testing_init(&testing, 12);
    testing_task(&testing, 1, 0, 0, 0, 2);
    testing_copy(&testing, 1, 1, 0, 2, 2, 5)->write_back = true;
    testing_copy(&testing, 2, 0, 1, 5, 5, 6);
    testing_task(&testing, 1, 0, 0, 6, 8)->submit_s = 0;
    testing_task(&testing, 0, 0, 10, 10, 12)->submit_s = 10;
    expect_path(&testing,
                (const struct expected[]){
                    {DUET_STATE_KERNEL, 1, 2, DUET_RELEASE_SUBMISSION},
                    {DUET_STATE_ROOM, 1, 5, 0},
                    {DUET_STATE_TO_DEVICE, 2, 6, 0},
                    {DUET_STATE_KERNEL, 4, 8, DUET_RELEASE_COPY},
                    {DUET_STATE_BEFORE, 5, 10, 0},
                    {DUET_STATE_KERNEL, 5, 12, DUET_RELEASE_SUBMISSION},
                },
                6);
}

/* Kernels of no length that all end at one date: each look for the one before another would have to
   pass by all that are on the path, which would take longer than a test may. */
static void test_one_date(void)
{
    enum { MANY = 1000 * 1000 };
    OWNED(testing_fini) struct testing_recording testing;
    OWNED(duet__path_fini) struct duet__path path;
    testing_init(&testing, 1);
    testing_task(&testing, 0, 0, 0, 1, 1);
    testing.recording.events = g_new(struct duet_event, MANY);
    for (size_t i = 0; i < MANY; i++) {
        testing.recording.events[i] = testing.events[0];
        testing.recording.events[i].id = i + 1;
    }
    testing.recording.event_count = MANY;
    duet__path_make(&testing.recording, NULL, &path);
    g_assert_cmpuint(path.steps->len, ==, MANY + 1); /* with the time before */
    g_free(testing.recording.events);
}

/* Each second of each worker has its reason. */
static void test_states(void)
{
    OWNED(testing_fini) struct testing_recording testing;
    OWNED(duet__account_fini) struct duet__account account;
    static const double expected[][DUET_STATES] = {
        {[DUET_STATE_KERNEL] = 3, [DUET_STATE_ELSEWHERE] = 3, [DUET_STATE_AFTER] = 14},
        {[DUET_STATE_BEFORE] = 2,
         [DUET_STATE_TO_DEVICE_QUEUE] = 1,
         [DUET_STATE_TO_DEVICE] = 2,
         [DUET_STATE_OVERHEAD] = 1,
         [DUET_STATE_KERNEL] = 5,
         [DUET_STATE_WITHIN] = 6,
         [DUET_STATE_ROOM] = 3},
        {[DUET_STATE_BEFORE] = 13, [DUET_STATE_ELSEWHERE] = 7},
    };
    testing_init(&testing, 20);
    testing_task(&testing, 0, 0, 0, 0, 3);
    testing_copy(&testing, 1, 0, 1, 2, 3, 5);
    testing_task(&testing, 1, 1, 2, 6, 8)->where = 2; /* not for CPUs */
    testing_copy(&testing, 2, 1, 0, 14, 14, 17)->write_back = true;
    testing_task(&testing, 1, 1, 14, 17, 20)->where = 3;
    testing_release(&testing);
    WORKS(duet__account_make(&testing.recording, &account, hear()));
    for (unsigned worker = 0; worker < 3; worker++)
        for (unsigned state = 0; state < DUET_STATES; state++) {
            g_test_message("worker %u, state %u: %g s", worker, state,
                           account.workers_s[worker][state]);
            testing_near(account.workers_s[worker][state], expected[worker][state]);
        }
}

/* ------------------------------------------------------------------------------------------- */
/* Simulated                                                                                    */

/* The edges of a graph of tasks numbered from 1: pairs of numbers. */
static GHashTable *edges_of(const struct duet__graph *graph)
{
    struct duet__graph_walk *walk = duet__graph_walk_new(graph);
    GHashTable *edges = g_hash_table_new(NULL, NULL);
    for (size_t task = 0; task < duet__graph_count(graph); task++) {
        size_t count;
        const struct duet__graph_edge *before = duet__graph_walk_next(walk, &count);
        for (size_t i = 0; i < count; i++)
            g_hash_table_add(edges,
                             GSIZE_TO_POINTER((gsize)(task + 1) << 32 | (before[i].from + 1)));
    }
    duet__graph_walk_free(walk);
    return edges;
}

/* No gap, no overlap; kernels where the records have them, each after what it says. */
static void check_path(const struct duet__recording *recording, const struct duet__graph *graph)
{
    OWNED(duet__path_fini) struct duet__path path;
    const struct duet_event *last = NULL; /* kernel */
    GHashTable *edges = graph ? edges_of(graph) : NULL;
    double date_s = 0, parts_s = 0;
    duet__path_make(recording, graph, &path);
    for (guint i = 0; i < path.steps->len; i++) {
        const struct duet__step *step = &g_array_index(path.steps, struct duet__step, i);
        const struct duet_event *event = &recording->events[step->event];
        g_assert_true(step->start_s == date_s); /* exact: one date */
        g_assert_cmpfloat(step->end_s, >=, step->start_s);
        if (step->state == DUET_STATE_OVERHEAD) /* the platform's launching and waking */
            g_assert_cmpfloat(step->end_s - step->start_s, <=, 2e-5);
        if (step->state == DUET_STATE_KERNEL) {
            g_assert_cmpint(event->kind, ==, DUET_EVENT_TASK);
            g_assert_cmpfloat(step->end_s - step->start_s, <=,
                              event->end_s - event->start_s + 1e-12);
            if (step->after == DUET_RELEASE_WORKER)
                g_assert_cmpint(last->worker, ==, event->worker);
            if (step->after == DUET_RELEASE_TASK && edges)
                g_assert_true(g_hash_table_contains(edges, GSIZE_TO_POINTER((gsize)event->id << 32 |
                                                                            last->id)));
            g_assert_true(!last || last->end_s <= event->start_s + 1e-6);
            last = event;
        }
        date_s = step->end_s;
    }
    if (edges)
        g_hash_table_unref(edges);
    g_assert_true(date_s == recording->makespan_s);
    g_assert_cmpfloat(path.hindered_s, <=, recording->makespan_s);
    for (guint i = 0; i < path.parts->len; i++)
        parts_s += g_array_index(path.parts, struct duet__path_part, i).seconds;
    g_assert_cmpfloat_with_epsilon(parts_s, recording->makespan_s, 1e-9 * recording->makespan_s);
}

static void check_workers(const struct duet__recording *recording)
{
    OWNED(duet__account_fini) struct duet__account account;
    WORKS(duet__account_make(recording, &account, hear()));
    for (unsigned worker = 0; worker < account.workers; worker++) {
        double sum_s = 0;
        for (unsigned state = 0; state < DUET_STATES; state++) {
            g_assert_cmpfloat(account.workers_s[worker][state], >=, -1e-12);
            sum_s += account.workers_s[worker][state];
        }
        g_assert_cmpfloat_with_epsilon(sum_s, account.makespan_s, 1e-9 * account.makespan_s);
    }
}

/* Random layers of tasks, under several policies, with little memory or much. */
static void test_random(void)
{
    enum { POLICIES = 4 };
    for (unsigned round = 0; round < 4; round++) {
        const struct duet__workload *workload =
            duet__workload_find(round % 2 ? "layered" : "cholesky");
        OWNED(duet__request_fini) struct duet__request request;
        struct duet__series series[POLICIES];
        struct duet__progress progress = {0};
        int number = 0;
        duet__request_init(&request);
        request.workload = workload;
        request.problem.n = round % 2 ? 200 : 9600;
        request.problem.tile = round % 2 ? workload->default_tile : 960;
        request.problem.seed = request.seed = round + 1;
        request.config.simulate = "idgraf";
        request.config.cpus = 2;
        request.config.gpus = 3;
        request.config.gpu_memory_share = round < 2 ? 0.05 : 0;
        request.config.context = workload->name;
        request.policies = g_strsplit("ws,heft,dmdas,eager", ",", -1);
        request.policy_count = POLICIES;
        request.records = DUET_RECORDS_TRACE;
        request.jobs = 2;
        WORKS(duet__request_build(&request, hear()));
        WORKS(duet__simulate(&request, &progress, series, &number, hear()));
        for (unsigned i = 0; i < POLICIES; i++) {
            OWNED(duet__graph_fini) struct duet__graph graph;
            const struct duet__recording *recording = duet__series_recording(&series[i]);
            g_test_message("%s, %s: %s", workload->name, request.policies[i],
                           series[i].message.text);
            g_assert_nonnull(recording);
            duet__graph_init(&graph);
            WORKS(duet__graph_take(&graph, recording, hear()));
            check_path(recording, &graph);
            check_path(recording, NULL);
            check_workers(recording);
            duet__series_fini(&series[i]);
        }
    }
}

TEST_MAIN(test_copies, test_room, test_one_date, test_states, test_random)
