/* SPDX-License-Identifier: Apache-2.0 */
/* `duet run`: reads the command line, makes the runs, writes the report. */
#include "cli/command.h"

#include "cli/job.h"
#include "runs/real.h"
#include "world/here.h"

static const char summary[] =
    "Runs a task graph on this machine, under one or several scheduling policies, and prints one "
    "line\na policy: makespan, rate, bytes moved, cache hits, idle time, lower bounds.";

static const char notes[] =
    "Each policy has a runtime of its own, which first makes W runs that are not measured: kernels "
    "warm up,\nand the scheduler learns their times. Makespans are given as the median of R runs "
    "and the 95 %\nconfidence interval of their mean. An interrupt (Ctrl-C) gives the rest up and "
    "reports the runs that\nare finished; a second one ends at once.\n\n"
    "--emulate free adds GPUs that are computed by CPU cores in memories of their own: right "
    "results, no GPU's\nspeed. --emulate PLATFORM takes the times of that machine and computes "
    "nothing.\n\n"
    "With several policies, --trace and --gantt write one file each, the policy's name before the\n"
    "extension; they show the first measured run. duet list shows what there is.\n\n"
    "Examples:\n"
    "  duet run cholesky --n 4096 --tile 256 --policy ws,heft --verify\n"
    "  duet run cholesky --n 16384 --tile 1024 --gpus 1 --policy heft,ws --verify\n"
    "  duet run cholesky --cpus 1 --gpus 2 --emulate free --gpu-memory 64MiB --html report.html\n"
    "  duet run cholesky --emulate idgraf --scale 0.1 --policy all --set-arch";

static int make_problem(struct duet__job *job, struct duet_message *message)
{
    const struct duet_workload *workload = job->request.workload;
    bool paced = duet_request_paced(&job->request);
    bool real = !paced && workload->real_n;

    if (!paced && !workload->generate)
        return duet_fail(message, DUET_EINVAL,
                         "%s has no kernels that compute%s: duet simulate %s, or an emulated "
                         "platform (--emulate)",
                         workload->name, workload->kernels[0] ? " in this duet" : "",
                         workload->name);
    if (job->request.verify && !workload->verify)
        return duet_fail(message, DUET_EINVAL, "--verify: %s has no result to be verified",
                         workload->name);
    return duet__job_make_problem(job, real ? workload->real_n : workload->default_n,
                                  real ? workload->real_tile : workload->default_tile, message);
}

/* All that is left once the options are read. */
static int read_all(struct duet__job *job, int argc, char *const *argv,
                    struct duet_message *message)
{
    int error = duet__job_check_run(job, message);

    if (!error)
        error = duet__job_check_emulation(job, message);
    if (!error && job->request.verify && duet_request_paced(&job->request))
        error = duet_fail(message, DUET_EINVAL,
                          "--verify: an emulated platform computes nothing that could be verified");
    if (!error)
        error = duet__job_read_workload(job, argc, argv, message);
    if (!error)
        error = make_problem(job, message);
    if (!error)
        error = duet__job_find_policies(job, message);
    if (!error)
        error = duet__job_check_machine(job, message);
    return error ? error : duet__files_distinct(job, message);
}

/* ------------------------------------------------------------------------------------------- */

/* One line if the result of a run is wrong. Exit status. */
static int judge(const struct duet_report *report)
{
    size_t runs = 0, failed = 0;

    for (size_t i = 0; i < report->series_count; i++) {
        runs += report->series[i].count;
        for (size_t k = 0; k < report->series[i].count; k++)
            failed += !duet_run_passes(&report->series[i].runs[k]);
    }
    if (!failed)
        return DUET__DONE;
    return duet__complain(DUET__FAILED, "the results of %zu of %zu runs are wrong", failed, runs);
}

/* Makes the report of what is finished and says what has failed. Exit status. */
static int report(const struct duet__job *job, const struct duet_session *session,
                  const struct duet_series *series)
{
    const struct duet_request *request = &job->request;
    struct duet_series *finished = g_new0(struct duet_series, request->policy_count);
    GPtrArray *failures = duet__failures_new();
    struct duet_report report = {.command = job->command,
                                 .request = request,
                                 .series = finished,
                                 .cores = duet__here_cores(),
                                 .interrupted = duet_monitor_signal(session->monitor) != 0,
                                 .show_wall = true};
    size_t runs = 0;
    int judged, status;

    for (size_t i = 0; i < request->policy_count; i++) {
        runs += series[i].count;
        if (series[i].error)
            duet__failures_add(failures, series[i].error, series[i].message.text, "the run of %s",
                               request->policies[i]);
        else if (series[i].count)
            finished[report.series_count++] = series[i];
    }
    judged = judge(&report);
    status = duet__job_conclude(job, &report, failures);
    if (status == DUET__DONE)
        status = judged;
    if (report.interrupted)
        status = duet__complain(DUET__SIGNALLED + duet_monitor_signal(session->monitor),
                                "interrupted: %zu of %zu measured runs are finished", runs,
                                request->policy_count * request->reps);
    g_ptr_array_unref(failures);
    g_free(finished);
    return status;
}

/* Exit status where no runtime could be opened at all. */
static int refuse(const struct duet__job *job, int error, const struct duet_message *message)
{
    /* without a platform no file is read: it is a device of this machine that does not work */
    if (error == DUET_EIO && !duet_request_paced(&job->request))
        return duet__complain(DUET__FAILED, "%s", message->text);
    return duet__job_refuse(error, message);
}

/* Makes the runs, policy after policy, on data that is generated once. Exit status. */
static int make_runs(const struct duet__job *job, struct duet_session *session,
                     struct duet_series *series)
{
    struct duet_request *request = session->request;
    struct duet_message message = {""};
    int error = 0;
    bool opened = false;

    session->problem = request->problem;
    if (!duet_request_paced(request))
        error = request->workload->generate(&request->problem, &session->problem.data, &message);
    for (size_t i = 0;
         i < request->policy_count && !error && !duet_monitor_signal(session->monitor); i++) {
        session->policy = request->policies[i];
        duet_series_make(&series[i], session);
        opened |= series[i].opened;
    }
    /* what no policy could do anything about */
    if (!error && !opened && series[0].error)
        error = duet_fail(&message, series[0].error, "%s", series[0].message.text);
    if (session->problem.data)
        request->workload->discard(session->problem.data);
    return error && !duet_monitor_signal(session->monitor) ? refuse(job, error, &message)
                                                           : DUET__DONE;
}

static int run(struct duet__job *job)
{
    struct duet_request *request = &job->request;
    struct duet_series *series = g_new0(struct duet_series, request->policy_count);
    struct duet_monitor monitor = {0};
    struct duet_session session = {.request = request, .monitor = &monitor};
    size_t runs = request->policy_count * (request->warmups + request->reps);
    int status;

    duet_monitor_start(&monitor, !job->values.quiet, duet_request_tasks(request) * runs, runs);
    status = make_runs(job, &session, series);
    duet_monitor_stop(&monitor);
    if (status == DUET__DONE)
        status = report(job, &session, series);
    for (size_t i = 0; i < request->policy_count; i++)
        duet_runs_free(series[i].runs, request->reps);
    g_free(series);
    return status;
}

static int run_command(int argc, char **argv)
{
    struct duet_message message = {""};
    struct duet__job job = {0};
    int status;

    duet__job_init(&job, "run", DUET__IN_RUN, argc, argv);
    job.values.reps = 5;
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

const struct duet__command duet__run_command = {
    .name = "run",
    .description = "runs a task graph on this machine, or on GPUs that it emulates",
    .run = run_command,
};
