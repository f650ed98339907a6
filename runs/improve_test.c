/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The search for better schedules finds the best of all schedules of small graphs, which are
 * simulated one by one. DUET_TEST_LONG=1000 tries so many graphs.
 */
#include <math.h>
#include <stdlib.h>

#include "runs/session.h"
#include "runtime/schedule.h"

enum { TASKS = 4, WORKERS = 2 };

static const char name[] = "tried.json";

/* Returns the makespan of a schedule; INFINITY: it contradicts the dependencies. */
static double simulated_s(const struct duet__request *request, struct duet__schedule *schedule)
{
    struct duet__request own = *request;
    struct duet__session session = {.request = &own,
                                    .policy = name,
                                    .problem = request->problem,
                                    .quiet = true};
    OWNED(duet__run_fini) struct duet__run run = {0};
    int error;
    duet__schedule_offer(name, schedule);
    error = duet__session_run(&session, &run, DUET_RECORDS_NONE, hear());
    duet__session_close(&session);
    duet__schedule_offer(name, NULL);
    return error ? INFINITY : run.stats.makespan_s;
}

/* Tries all workers and dates from 0 to TASKS - 1 of the tasks from the index-th on. */
static double least_s(const struct duet__request *request, struct duet__schedule *schedule,
                      unsigned index, unsigned dates)
{
    double best_s = INFINITY;
    if (index == TASKS) {
        duet__schedule_arrange(schedule);
        return simulated_s(request, schedule);
    }
    for (unsigned date = 0; date < TASKS; date++)
        for (unsigned worker = 0; worker < WORKERS && !(dates >> date & 1); worker++) {
            schedule->tasks[index].worker = worker;
            schedule->tasks[index].start_s = date;
            best_s = fmin(best_s, least_s(request, schedule, index + 1, dates | 1U << date));
        }
    return best_s;
}

/* Searches longer and longer, until what is best is found; nothing better ever is. */
static void search(const struct duet__request *request, const struct duet__series *start,
                   double best_s)
{
    for (unsigned long ms = 50;; ms *= 2) {
        struct duet__improved out;
        int number = 0;
        double found_s;
        WORKS(duet__improve(request, start, 1, (double)ms / 1000, &out, &number, hear()));
        found_s = out.run.stats.makespan_s;
        g_assert_cmpfloat(simulated_s(request, out.schedule), ==, found_s);
        duet__run_fini(&out.run);
        duet__schedule_free(out.schedule);
        g_assert_cmpfloat(found_s, >=, best_s);
        g_assert_cmpfloat(found_s, <=, out.before_s);
        if (found_s == best_s)
            return;
    }
}

/* Runs the request's policy once. */
static int run_once(struct duet__request *request, struct duet__run *run,
                    struct duet_message *message)
{
    struct duet__session session = {.request = request,
                                    .policy = request->policies[0],
                                    .problem = request->problem,
                                    .quiet = true};
    int error = duet__session_run(&session, run, DUET_RECORDS_FIRST, message);
    duet__session_close(&session);
    return error;
}

static void check_graph(const struct duet__platform *platform, unsigned seed)
{
    OWNED(duet__request_fini) struct duet__request request;
    OWNED(duet__run_fini) struct duet__run run = {0};
    g_auto(GStrv) params =
        g_strsplit(seed % 2 ? "width=3 degree=2 work=1e9" : "width=2 work=1e9", " ", 3);
    struct duet__schedule *schedule;
    duet__request_init(&request);
    request.workload = duet__workload_find("layered");
    request.problem.n = TASKS;
    request.problem.tile = 2048;
    request.problem.precision = 'd';
    request.problem.seed = seed;
    request.policies = g_strsplit("eager", ",", -1);
    request.policy_count = 1;
    request.config.simulate = "idgraf";
    request.platform = platform;
    request.config.cpus = WORKERS - 1;
    request.config.gpus = 1;
    request.records = DUET_RECORDS_FIRST;
    request.jobs = 2;
    if (duet__request_set_params(&request, params, hear()) ||
        duet__request_build(&request, hear()) || run_once(&request, &run, hear()) ||
        duet__schedule_take(name, &run.recording, &schedule, hear()))
        g_error("%s", heard());
    search(&request, &(struct duet__series){.policy = "eager", .runs = &run, .count = 1},
           least_s(&request, schedule, 0, 0));
    duet__schedule_free(schedule);
}

static void test_best(void)
{
    const char *wanted = g_getenv("DUET_TEST_LONG");
    const unsigned long graphs = wanted ? strtoul(wanted, NULL, 10) : 12;
    struct duet__platform *platform;
    WORKS(duet__platform_load("idgraf", &platform, hear()));
    for (unsigned seed = 1; seed <= graphs; seed++)
        check_graph(platform, seed);
    duet__platform_free(platform);
}

TEST_MAIN(test_best)
