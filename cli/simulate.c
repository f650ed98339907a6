/* SPDX-License-Identifier: Apache-2.0 */
/* `duet simulate`: reads the command line, makes the runs, writes the report. */
#include "cli/command.h"

#include <inttypes.h>
#include <stdio.h>

#include "cli/job.h"
#include "platforms/platform.h"
#include "runs/simulated.h"

static const char summary[] =
    "Simulates a task graph on a machine, under one or several scheduling policies, and prints one "
    "line\na policy: makespan, rate, bytes moved, cache hits, idle time, lower bounds.";

static const char notes[] =
    "Run r of a policy (from 0) has seed S + r. The same command gives the same output, byte for "
    "byte,\nwhich is why the time a simulation took is left out of it unless --wall asks for it. "
    "Makespans of\nseveral runs are given as their median and the 95 % confidence interval of "
    "their "
    "mean.\n\n"
    "With several policies, --trace and --gantt write one file each, the policy's name before the\n"
    "extension; with several runs, they show the first. duet list shows what there is.\n\n"
    "Example:\n"
    "  duet simulate cholesky --platform idgraf --n 38400 --tile 960 --cpus 4 --gpus 8 \\\n"
    "      --policy all --set-arch --html report.html";

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
    job->platform_option = "--platform";
    return 0;
}

/* One line each about what of the platform is not as one would think. */
static void remark(const struct duet__job *job, const struct duet_platform *platform)
{
    const struct duet_request *request = &job->request;
    const struct duet_platform_options options = {
        .no_peer = request->config.no_peer,
        .links = (const struct duet_link_override *)(void *)job->links->data,
        .link_count = job->links->len,
    };
    char *kept = duet_platform_kept_links(platform, &options);
    GPtrArray *kernels = g_ptr_array_new_with_free_func(g_free);
    char *holes;

    for (size_t i = 0; request->workload->kernels[i]; i++)
        g_ptr_array_add(kernels, g_strdup_printf("%c%s", request->problem.precision,
                                                 request->workload->kernels[i]));
    g_ptr_array_add(kernels, NULL);
    holes = duet_platform_holes(&platform->calibration, &request->machine,
                                (const char *const *)kernels->pdata);
    if (kept)
        duet__complain(DUET__DONE, "--link leaves %s as they are (--link all=... changes all)",
                       kept);
    if (holes)
        duet__complain(DUET__DONE, "%s has no times of %s: no such task runs there", platform->name,
                       holes);
    g_ptr_array_unref(kernels);
    g_free(holes);
    g_free(kept);
}

/* The machine that the runs will simulate, for reports, and as a file if one is asked for. */
static int build_machine(struct duet__job *job, struct duet_message *message)
{
    struct duet_request *request = &job->request;
    int error = duet_platform_load(request->config.simulate, NULL, &job->platform, message);

    if (error)
        return error;
    duet_calibration_select(&job->platform->calibration, request->config.context);
    request->platform = job->platform;
    error = duet_request_build(request, message);
    if (!error)
        remark(job, job->platform);
    if (!error && job->values.machine_xml)
        error = duet_platform_write_xml(&request->machine, &job->platform->calibration,
                                        job->values.machine_xml, message);
    return error;
}

/* All that is left once the options are read. */
static int read_all(struct duet__job *job, int argc, char *const *argv,
                    struct duet_message *message)
{
    int error = duet__job_check_run(job, message);

    if (!error)
        error = duet__exclude(job, "costs", "no-costs", message);
    if (!error)
        error = duet__job_read_workload(job, argc, argv, message);
    if (!error)
        error = duet__job_make_problem(job, job->request.workload->default_n,
                                       job->request.workload->default_tile, message);
    if (!error)
        error = duet__job_find_policies(job, message);
    if (!error)
        error = find_platform(job, message);
    if (!error)
        error = duet__job_check_machine(job, message);
    if (!error)
        error = duet__files_distinct(job, message);
    return error ? error : build_machine(job, message);
}

/* ------------------------------------------------------------------------------------------- */

/* Before a long simulation: how long it will be, so that nobody waits for days unawares. */
static void announce(const struct duet__job *job)
{
    enum { TASKS_PER_S = 100000, LONG_S = 60 }; /* of a process, on a machine of today */
    const struct duet_request *request = &job->request;
    uint64_t tasks = duet_request_tasks(request);
    size_t runs = request->policy_count * request->reps;
    double seconds = (double)tasks * (double)runs / TASKS_PER_S / (double)MIN(runs, request->jobs);

    if (job->values.quiet || seconds < LONG_S)
        return;
    fprintf(stderr, "duet: %" PRIu64 " tasks in each of %zu run%s: expect about %.1f %s\n", tasks,
            runs, runs == 1 ? "" : "s", seconds < 7200 ? seconds / 60 : seconds / 3600,
            seconds < 7200 ? "minutes" : "hours");
}

/* The finished runs of a policy, moved to the front of its array; none if one has failed. */
static size_t gather(struct duet_run *runs, size_t reps, const struct duet_run **failed)
{
    size_t count = 0;

    *failed = NULL;
    for (size_t i = 0; i < reps; i++) {
        struct duet_run run = runs[i];

        if (run.message) {
            *failed = &runs[i];
            return 0;
        }
        if (run.error || count++ == i)
            continue;
        runs[i] = runs[count - 1];
        runs[count - 1] = run;
    }
    return count;
}

/* Makes the report of what is finished and says what has failed. Exit status. */
static int report(const struct duet__job *job, struct duet_run *runs, int number)
{
    const struct duet_request *request = &job->request;
    struct duet_series *series = g_new0(struct duet_series, request->policy_count);
    GPtrArray *failures = duet__failures_new();
    struct duet_report report = {.command = job->command,
                                 .request = request,
                                 .series = series,
                                 .interrupted = number != 0,
                                 .show_wall = job->values.wall};
    size_t finished = 0;
    int status;

    for (size_t i = 0; i < request->policy_count; i++) {
        struct duet_run *own = runs + i * request->reps;
        const struct duet_run *failed;
        size_t count = gather(own, request->reps, &failed);

        if (failed)
            duet__failures_add(failures, failed->error, failed->message,
                               "the simulation of %s with seed %" PRIu64, request->policies[i],
                               request->seed + (uint64_t)(failed - own));
        if (count)
            series[report.series_count++] =
                (struct duet_series){.policy = request->policies[i], .runs = own, .count = count};
        finished += count;
    }
    status = duet__job_conclude(job, &report, failures);
    if (number)
        status =
            duet__complain(DUET__SIGNALLED + number, "interrupted: %zu of %zu runs are finished",
                           finished, request->policy_count * request->reps);
    g_ptr_array_unref(failures);
    g_free(series);
    return status;
}

static int run(const struct duet__job *job)
{
    const struct duet_request *request = &job->request;
    size_t count = request->policy_count * request->reps;
    struct duet_run *runs = duet_runs_new(count);
    struct duet_progress progress;
    struct duet_message message = {""};
    int number = 0, error;

    announce(job);
    duet_progress_init(&progress, !job->values.quiet, duet_request_tasks(request) * count, count);
    error = duet_simulate(request, &progress, runs, &number, &message);
    duet_progress_clear(&progress);
    error = error ? duet__complain(DUET__FAILED, "%s", message.text) : report(job, runs, number);
    duet_runs_free(runs, count);
    return error;
}

static int simulate(int argc, char **argv)
{
    struct duet_message message = {""};
    struct duet__job job = {0};
    int status;

    duet__job_init(&job, "simulate", DUET__IN_SIMULATE, argc, argv);
    job.values.reps = 1;
    status = duet__job_parse(&job, "WORKLOAD", summary, notes, &argc, &argv);
    if (status < 0) {
        int error = read_all(&job, argc, argv, &message);

        status = error ? duet__job_refuse(error, &message) : duet__files_check(&job);
        if (status == DUET__DONE)
            status = run(&job);
    }
    duet__job_fini(&job);
    return status;
}

const struct duet__command duet__simulate_command = {
    .name = "simulate",
    .description = "how a task graph would run on a machine, under one or several policies",
    .run = simulate,
};
