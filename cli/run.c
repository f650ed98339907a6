/* SPDX-License-Identifier: Apache-2.0 */
/* `duet run` and `duet simulate`: the command line, the runs, the report. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cli/job.h"
#include "base/json.h"
#include "base/stats.h"
#include "runs/session.h"
#include "study/study.h"
#include "runtime/open.h"

static bool is_simulated(const struct duet__job *job)
{
    return job->command->where == DUET__IN_SIMULATE;
}

/* ------------------------------------------------------------------------------------------- */
/* The command line                                                                             */

static int find_platform(struct duet__job *job, struct duet_message *message)
{
    const char *platform = job->values.platform;
    if (!platform)
        return duet_fail(message, DUET_EINVAL,
                         "which machine? --platform NAME (duet list platforms shows them)");
    if (!*platform)
        return duet_fail(message, DUET_EINVAL,
                         "--platform takes the name of a machine or a file, not '' (duet list "
                         "platforms shows them)");
    job->request.config.simulate = platform;
    job->request.warmups = 0;
    job->platform_option = "--platform";
    return duet__exclude(job, "costs", "no-costs", message);
}

/* Checks that the workload can be computed and verified as wanted, where its runs are made. */
static int check_workload(const struct duet__job *job, struct duet_message *message)
{
    const struct duet__request *request = &job->request;
    const char *name = job->graph ? job->graph_path : request->workload->name;
    if (!duet__request_platform(request) && !request->workload->generate &&
        !request->workload->program)
        return duet_fail(message, DUET_EINVAL,
                         "%.300s has no kernels that compute%s: duet simulate %.300s --platform "
                         "NAME, or duet run with --emulate NAME (duet list platforms shows them)",
                         name, request->workload->kernels[0] ? " in this duet" : "", name);
    if (request->verify && duet__request_paced(request))
        return duet_fail(message, DUET_EINVAL,
                         "--verify: an emulated platform computes nothing that could be verified");
    if (request->verify && !request->workload->verify)
        return duet_fail(message, DUET_EINVAL, "--verify: %s has no result to be verified",
                         request->workload->name);
    return 0;
}

/* Prints one line about each thing of the platform that is not as one would think. */
static void remark(const struct duet__job *job)
{
    const struct duet__request *request = &job->request;
    g_autoptr(GPtrArray) kernels = g_ptr_array_new_with_free_func(g_free);
    g_autofree char *kept = duet__open_kept_links(job->platform, &request->config), *holes = NULL;
    for (size_t i = 0; request->workload->kernels[i]; i++)
        g_ptr_array_add(kernels, g_strdup_printf("%c%s", request->problem.precision,
                                                 request->workload->kernels[i]));
    g_ptr_array_add(kernels, NULL);
    holes = duet__platform_holes(&job->platform->calibration, &request->machine,
                                 (const char *const *)kernels->pdata);
    if (kept && !job->values.quiet)
        duet__complain(DUET__DONE, "--link leaves %s as they are (--link all=... changes all)",
                       kept);
    if (job->values.csv && request->estimated) /* other outputs say so themselves */
        duet__complain(DUET__DONE, "estimated, not measured: times of %s", request->estimated);
    if (holes)
        duet__complain(DUET__DONE, "%s has no times of %s: no such task runs there",
                       job->platform->name, holes);
}

/* Returns true if --noise would draw anything: the platform knows a spread of a kernel's times. */
static bool draws(const struct duet__job *job)
{
    for (size_t c = 0; c < job->platform->calibration.count; c++) {
        const struct duet__curve *curve = &job->platform->calibration.curves[c];
        if (!g_hash_table_contains(job->graph->kernel_index, curve->kernel))
            continue;
        for (size_t p = 0; p < curve->count; p++)
            if (curve->points[p].noise > 0 || curve->points[p].deviation_s > 0)
                return true;
    }
    return false;
}

/* Builds the machine of a platform that runs are made on, and writes it if a file is asked for. */
static int build_machine(struct duet__job *job, struct duet_message *message)
{
    struct duet__request *request = &job->request;
    int error = job->platform
                    ? 0
                    : duet__platform_load(duet__request_platform(request), &job->platform, message);
    if (error)
        return error;
    duet__calibration_select(&job->platform->calibration, request->config.context);
    request->platform = job->platform;
    error = duet__request_build(request, message);
    if (!error && job->graph)
        duet__job_guess(job);
    if (!error && request->config.noise && job->graph && !request->config.interval && !draws(job)) {
        request->config.noise = false;
        if (!job->in_table)
            duet__complain(DUET__DONE,
                           "no spread is known of the times of %s: --noise draws nothing",
                           job->graph->name);
    }
    if (!error && !job->in_table)
        remark(job);
    if (!error && job->values.machine_xml)
        error = duet__platform_write_xml(&request->machine, job->platform, job->values.machine_xml,
                                         message);
    return error;
}

/* Policy of a report's last line where --improve was given. */
static const char improved[] = "improved";

/* Adds the line of --improve to those of the policies. */
static int take_improvement(struct duet__job *job, struct duet_message *message)
{
    struct duet__request *request = &job->request;
    if (request->workload->program)
        return duet_fail(message, DUET_EINVAL,
                         "--improve simulates a task graph over and over: duet export makes one of "
                         "a program");
    if (request->config.noise || request->reps > 1 || duet__request_nodes(request) > 1)
        return duet_fail(message, DUET_EINVAL,
                         "--improve looks for the schedule of one node without noise: leave out "
                         "%s",
                         duet__request_nodes(request) > 1 ? "--nodes"
                         : request->reps > 1              ? "--reps"
                                                          : "--noise");
    request->policies = g_renew(char *, request->policies, request->policy_count + 2);
    request->policies[request->policy_count++] = g_strdup(improved);
    request->policies[request->policy_count] = NULL;
    return 0;
}

/* Reads and checks everything that is left once the options are read. */
static int read_all(struct duet__job *job, int argc, char *const *argv,
                    struct duet_message *message)
{
    int error = duet__job_check_run(job, message);
    if (!job->values.reps)
        job->request.reps = !is_simulated(job)            ? 5
                            : job->values.config.interval ? DUET_PREDICTIVE_USUAL
                                                          : 1;
    job->request.config.noise |= job->values.config.interval != NULL;
    if (!error && job->values.config.interval && !job->in_table &&
        job->request.reps < DUET_PREDICTIVE_LEAST)
        error = duet_fail(message, DUET_EINVAL,
                          "--interval has no 90 %% of fewer than %d runs: --reps %d, the default, "
                          "or more",
                          DUET_PREDICTIVE_LEAST, DUET_PREDICTIVE_USUAL);
    if (!error)
        error = duet__job_read_workload(job, argc, argv, message);
    if (!error)
        error = is_simulated(job) ? find_platform(job, message)
                                  : duet__job_check_emulation(job, message);
    if (!error)
        error = check_workload(job, message);
    if (!error)
        error = duet__job_take_problem(&job->values, &job->request, message);
    if (!error)
        error = job->request.workload->check(&job->request.problem, message);
    if (!error)
        error = duet__request_set_policies(&job->request, job->values.config.policy, message);
    if (!error && job->values.improve_s > 0)
        error = take_improvement(job, message);
    if (!error)
        error = duet__job_check_machine(job, message);
    if (!error)
        error = duet__files_distinct(job, message);
    if (!error && duet__request_platform(&job->request))
        error = build_machine(job, message);
    return error;
}

/* ------------------------------------------------------------------------------------------- */
/* The report                                                                                   */

static int print(const struct duet__job *job, const struct duet__report *report)
{
    if (job->values.json)
        duet__report_write_json(stdout, report);
    else if (job->values.csv)
        duet__report_write_csv(stdout, report);
    else
        duet__report_write_table(stdout, report);
    return duet__finish_output();
}

/* Complains in one line if the result of a run is wrong. Returns the exit status. */
static int judge(const struct duet__report *report, size_t runs)
{
    size_t wrong = 0;
    for (size_t i = 0; i < report->series_count; i++)
        wrong += duet__report_summarise(&report->series[i]).failed;
    if (!wrong)
        return DUET__DONE;
    return duet__complain(DUET__FAILED, "the results of %zu of %zu runs are wrong", wrong, runs);
}

/*
 * Names the policies that failed. If none has a run, the input may be to blame, and an error that
 * several share is printed once. Returns the exit status.
 */
static int complain(const struct duet__job *job, const struct duet__series *series, bool some)
{
    int status = DUET__DONE;
    for (size_t i = 0; i < job->request.policy_count; i++) {
        const char *text = series[i].message.text;
        g_autofree char *what =
            is_simulated(job) ? g_strdup_printf("the simulation of %s with seed %" PRIu64,
                                                job->request.policies[i], series[i].failed_seed)
                              : g_strdup_printf("the run of %s", job->request.policies[i]);
        bool told = false;
        for (size_t k = 0; k < i; k++)
            told |= series[k].error && strcmp(series[k].message.text, text) == 0;
        if (series[i].error && some)
            status = duet__complain(DUET__FAILED, "%s failed: %s", what, text);
        else if (series[i].error && !told)
            status = duet__job_complain(what, series[i].error, text);
    }
    return status;
}

/* Reports finished runs and complains about failed ones; `number` is the signal that came, or 0. */
static int report(const struct duet__job *job, const struct duet__series *series, int number)
{
    const struct duet__request *request = &job->request;
    struct duet__series *finished = g_new0(struct duet__series, request->policy_count);
    struct duet__report report = {.command = job->line,
                                  .request = request,
                                  .series = finished,
                                  .cores = is_simulated(job) ? 0 : duet__usable_cores(),
                                  .interrupted = number != 0,
                                  .show_wall = job->values.wall || !is_simulated(job)};
    const char *who = ""; /* the node that the signal came to, if there are several */
    size_t runs = 0, failed = 0;
    int status = DUET__DONE, written, wrong;
    for (size_t i = 0; i < request->policy_count; i++) {
        runs += series[i].count;
        failed += series[i].error != 0;
        if (!series[i].error && *series[i].message.text)
            who = series[i].message.text;
        if (series[i].count)
            finished[report.series_count++] = series[i];
    }
    wrong = judge(&report, runs);
    if (runs || !failed) {
        /* the table first: a long run is not lost because a disk is full */
        status = print(job, &report);
        written = duet__files_write(job, &report);
        status = status ? status : written;
    }
    g_free(finished);
    if (failed)
        status = complain(job, series, runs > 0);
    if (number)
        status = duet__complain(DUET__SIGNALLED + number,
                                "interrupted: %s%s%zu of %zu %sruns are finished", who,
                                *who ? ": " : "", runs, request->policy_count * request->reps,
                                is_simulated(job) ? "" : "measured ");
    return status ? status : wrong;
}

/* ------------------------------------------------------------------------------------------- */
/* The runs                                                                                     */

/* Prints, before a long simulation, how long it will take, so that nobody waits for days
   unawares. */
static void announce(const struct duet__job *job)
{
    /* speed of a process on a machine of today; with nodes, messages take most of a simulation */
    enum { TASKS_PER_S = 100000, OF_NODES_PER_S = 20000, LONG_S = 60 };
    const struct duet__request *request = &job->request;
    uint64_t tasks = duet__request_tasks(request);
    size_t runs = request->policy_count * request->reps;
    int rate = duet__request_nodes(request) > 1 ? OF_NODES_PER_S : TASKS_PER_S;
    double seconds = (double)tasks * (double)runs / rate / (double)MIN(runs, request->jobs);
    if (job->values.quiet || seconds < LONG_S)
        return;
    fprintf(stderr, "duet: %" PRIu64 " tasks in each of %zu run%s: expect about %.1f %s\n", tasks,
            runs, runs == 1 ? "" : "s", seconds < 7200 ? seconds / 60 : seconds / 3600,
            seconds < 7200 ? "minutes" : "hours");
}

/* Looks for a schedule that is better than those of the series before the last one, as long as
   asked. */
static void improve(struct duet__job *job, struct duet__series *series, int *number)
{
    const struct duet__request *request = &job->request;
    const size_t last = request->policy_count - 1;
    struct duet__series *own = &series[last];
    struct duet__improved out;
    double best_s = INFINITY, found_s, bound_s;
    size_t best = last;
    for (size_t i = 0; i < last; i++)
        if (series[i].count && series[i].runs[0].stats.makespan_s < best_s) {
            best_s = series[i].runs[0].stats.makespan_s;
            best = i;
        }
    if (best == last) /* none has a run: that is told */
        return;
    *own = (struct duet__series){.policy = request->policies[last],
                                 .runs = g_new0(struct duet__run, 1),
                                 .failed_seed = request->seed};
    own->error =
        duet__improve(request, series, last, job->values.improve_s, &out, number, &own->message);
    if (own->error)
        return;
    own->runs[own->count++] = out.run;
    job->improved = out.schedule;
    found_s = out.run.stats.makespan_s;
    (void)duet__bounds_best(&out.run.bounds, &bound_s);
    if (job->values.quiet)
        return;
    if (found_s >= best_s)
        duet__complain(DUET__DONE,
                       "no schedule was found that is better than that of %s: %" PRIu64
                       " were simulated",
                       series[best].policy, out.tries);
    else
        duet__complain(DUET__DONE,
                       "the best of %" PRIu64
                       " schedules takes %.2f %% less than that of %s, which "
                       "is %.0f %% of the way to the lower bound",
                       out.tries, 100 * (1 - found_s / best_s), series[best].policy,
                       100 * (best_s - found_s) / (best_s - bound_s));
}

static int make_runs(struct duet__job *job, struct duet__series *series, int *number,
                     struct duet_message *message)
{
    struct duet__request *request = &job->request;
    uint64_t tasks = duet__request_tasks(request);
    size_t runs = request->policy_count * (request->warmups + request->reps);
    struct duet__progress progress;
    struct duet__monitor monitor = {0};
    int error;
    if (is_simulated(job) && job->in_table) {
        series->policy = request->policies[0];
        series->runs = g_new0(struct duet__run, 1);
        series->error = duet__simulate_here(request, series->runs, &series->message);
        series->count = !series->error;
        return 0;
    }
    if (is_simulated(job)) {
        struct duet__request given = *request;
        given.policy_count -= job->values.improve_s > 0;
        announce(job);
        duet__progress_init(&progress, !job->values.quiet, tasks * runs, runs);
        error = duet__simulate(&given, &progress, series, number, message);
        duet__progress_clear(&progress);
        if (!error && !*number && given.policy_count < request->policy_count)
            improve(job, series, number);
        return error;
    }
    duet__monitor_start(&monitor, !job->values.quiet, tasks, runs);
    error = duet__run_all(request, &monitor, series, message);
    duet__monitor_stop(&monitor);
    *number = duet__monitor_signal(&monitor);
    return error;
}

/* True if another process of the same run reports it and writes its files. */
static bool is_told_by_another(const struct duet__job *job)
{
    unsigned count;
    return job->together && duet__launched_as(&count) > 0;
}

static int make_and_report(struct duet__job *job)
{
    g_autofree struct duet__series *series = g_new0(struct duet__series, job->request.policy_count);
    struct duet_message message = {""};
    int number = 0, error = make_runs(job, series, &number, &message), status;
    if (is_told_by_another(job))
        status = DUET__DONE;
    else
        status = error && !number ? duet__complain(duet__status_of(error), "%s", message.text)
                                  : report(job, series, number);
    for (size_t i = 0; i < job->request.policy_count; i++)
        duet__series_fini(&series[i]);
    return status;
}

/* ------------------------------------------------------------------------------------------- */
/* The commands                                                                                 */

/* Writes the row of a run that has no result. */
static void put_error(FILE *rows, int status, const char *text)
{
    g_autofree char *own = duet__own_options(text);
    struct duet__json_writer json = {.stream = rows};
    duet__json_print(&json, "{status: %u, error: %s}", (unsigned)status, own);
}

void duet__job_rows(struct duet__job *job, const char *workload, FILE *rows)
{
    char *words[] = {(char *)(uintptr_t)job->command->name, (char *)(uintptr_t)workload, NULL};
    struct duet_message message = {""};
    struct duet__series series = {0};
    int number, error = read_all(job, workload ? 2 : 1, words, &message);
    bool passes = true;
    if (error) {
        put_error(rows, error == DUET_EIO ? DUET__MISUSED : duet__status_of(error), message.text);
        return;
    }
    error = make_runs(job, &series, &number, &message);
    if (!error && series.error)
        error = duet_fail(&message, series.error, "%s", series.message.text);
    for (size_t i = 0; i < series.count; i++)
        passes = passes && duet__run_passes(&series.runs[i]);
    if (error)
        put_error(rows, error == DUET_EIO ? DUET__ROW_SYSTEM : duet__status_of(error),
                  message.text);
    else if (!passes)
        put_error(rows, DUET__ROW_FAILED, "its result is wrong");
    else
        duet__report_write_rows(rows, &(struct duet__report){.command = job->line,
                                                             .request = &job->request,
                                                             .series = &series,
                                                             .series_count = 1,
                                                             .cores = is_simulated(job)
                                                                          ? 0
                                                                          : duet__usable_cores(),
                                                             .show_wall = job->values.wall ||
                                                                          !is_simulated(job)});
    duet__series_fini(&series);
}

static int work(struct duet__job *job, int argc, char **argv)
{
    struct duet_message message = {""};
    int error, status;
    job->together = !is_simulated(job) && duet__processes_share(&job->request);
    if (job->several && duet__given(job, "nodes") && !is_simulated(job))
        return duet__complain(DUET__MISUSED, "runs on several nodes are no table: one command for "
                                             "each value of an option");
    if (job->several && job->values.improve_s > 0)
        return duet__complain(DUET__MISUSED,
                              "--improve is for one problem: one value of each option");
    if (job->several)
        return duet__tabulate(job, argc, argv);
    error = read_all(job, argc, argv, &message);
    status = error                     ? duet__job_refuse(error, &message)
             : is_told_by_another(job) ? DUET__DONE
                                       : duet__files_check(job);
    return status == DUET__DONE ? make_and_report(job) : status;
}

const struct duet__command duet__simulate_command = {
    .name = "simulate",
    .description = "how a task graph would run on a machine, under one or several policies",
    .where = DUET__IN_SIMULATE,
    .arguments = "WORKLOAD | FILE | -- PROGRAM ARGUMENT...",
    .summary =
        "Simulates a task graph on a machine, under one or several scheduling policies, and prints "
        "one line\na policy: makespan, rate, bytes moved, cache hits, idle time, lower bounds.",
    .notes =
        "Run r of a policy (from 0) has seed S + r. The same command gives the same output, byte "
        "for byte,\nwhich is why the time a simulation took is left out of it unless --wall asks "
        "for it. Makespans of\nseveral runs are given as their median and the 95 % confidence "
        "interval of their mean.\n\n"
        "With several policies, --trace and --gantt write one file each, the policy's name before "
        "the\nextension; with several runs, they show the first. duet list shows what there is."
        "\n\n"
        "Example:\n"
        "  duet simulate cholesky --platform idgraf --n 38400 --tile 960 --cpus 4 --gpus 8 \\\n"
        "      --policy all --set-arch --html report.html",
    .work = work,
};

const struct duet__command duet__run_command = {
    .name = "run",
    .description = "runs a task graph on this machine, or on GPUs that it emulates",
    .where = DUET__IN_RUN,
    .arguments = "WORKLOAD | FILE | -- PROGRAM ARGUMENT...",
    .summary =
        "Runs a task graph on this machine, under one or several scheduling policies, and prints "
        "one line\na policy: makespan, rate, bytes moved, cache hits, idle time, lower bounds.",
    .notes =
        "Each policy has a runtime of its own, which first makes W runs that are not measured: "
        "kernels warm up,\nand the scheduler learns their times. Makespans are given as the median "
        "of R runs and the 95 %\nconfidence interval of their mean. An interrupt (Ctrl-C) gives "
        "the rest up and reports the runs that\nare finished; a second one ends at once.\n\n"
        "--emulate free adds GPUs that are computed by CPU cores in memories of their own: right "
        "results, no GPU's\nspeed. --emulate PLATFORM takes the times of that machine and computes "
        "nothing.\n\n"
        "With several policies, --trace and --gantt write one file each, the policy's name before "
        "the\nextension; they show the first measured run. duet list shows what there is.\n\n"
        "Examples:\n"
        "  duet run cholesky --n 4096 --tile 256 --policy ws,heft --verify\n"
        "  duet run cholesky --n 16384 --tile 1024 --gpus 1 --policy heft,ws --verify\n"
        "  duet run cholesky --cpus 1 --gpus 2 --emulate free --gpu-memory 64MiB --html "
        "report.html\n"
        "  duet run cholesky --emulate idgraf --scale 0.1 --policy all --set-arch",
    .work = work,
};
