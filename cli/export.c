/* SPDX-License-Identifier: Apache-2.0 */
/* `duet export`: a task graph, of a file, workload or program, in a format that others read. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cli/job.h"
#include "workloads/files/graph.h"
#include "platforms/platform.h"
#include "base/files.h"
#include "runs/session.h"
#include "trace/trace.h"

static int find_format(const struct duet__job *job, const struct duet__graph_format **out,
                       struct duet_message *message)
{
    const char *name = job->values.format ? job->values.format : "json";
    g_autoptr(GString) known = g_string_new(NULL);
    *out = duet__graph_format_find(name);
    if (*out && (*out)->write)
        return 0;
    for (size_t i = 0; duet__graph_format_at(i); i++)
        if (duet__graph_format_at(i)->write)
            g_string_append_printf(known, "%s%s", known->len ? ", " : "",
                                   duet__graph_format_at(i)->name);
    return duet_fail(message, DUET_EINVAL, "--format %s: known are %s", name, known->str);
}

/* ------------------------------------------------------------------------------------------- */
/* Graphs of workloads and programs                                                             */

/* Sets the times that the machine's calibration knows of a task, on every architecture. */
static void set_times(const struct duet__job *job, struct duet__graph *graph)
{
    for (size_t i = 0; i < duet__graph_count(graph); i++) {
        const struct duet__graph_task *task = duet__graph_task(graph, i);
        for (guint a = 0; a < graph->archs->len; a++) {
            const struct duet__curve *curve =
                duet__calibration_find(&job->platform->calibration,
                                       duet__graph_kernel_name(graph, task->kernel),
                                       graph->archs->pdata[a]);
            struct duet__point point;
            if (curve && !duet__curve_point(curve, task->work, false, &point))
                duet__graph_seconds(graph, i)[a] = point.mean_s;
        }
    }
}

/* Makes one simulated run, and its graph. Returns the number of the signal that ended it, or 0. */
static int take_run(struct duet__job *job, struct duet_message *message)
{
    struct duet__request *request = &job->request;
    struct duet__series series = {0};
    struct duet__progress progress = {0};
    struct duet__graph *graph = g_new(struct duet__graph, 1);
    int number = 0, error;
    duet__graph_init(graph);
    job->graph = graph;
    request->records = DUET_RECORDS_TRACE;
    error = duet__simulate(request, &progress, &series, &number, message);
    if (!error && number)
        error = number;
    if (!error && series.error)
        error = duet_fail(message, series.error, "%s", series.message.text);
    if (!error)
        error = duet__graph_take(graph, &series.runs[0].recording, message);
    graph->makespan_s = 0; /* nobody has asked for this run, and it was not measured */
    graph->name = g_strdup(request->workload->name);
    graph->origin = request->estimated ? g_strdup_printf("%s; estimated: times of %s", job->line,
                                                         request->estimated)
                                       : g_strdup(job->line);
    if (!error)
        set_times(job, graph);
    duet__series_fini(&series);
    return error;
}

/* Builds the problem and the machine that the options describe, for take_run. */
static int build(struct duet__job *job, const struct duet__workload *workload,
                 struct duet_message *message)
{
    const struct duet__values *values = &job->values;
    struct duet__request *request = &job->request;
    int error;
    if (!values->platform || !*values->platform)
        return duet_fail(message, DUET_EINVAL,
                         "which machine's times? --platform NAME (duet list platforms shows them)");
    request->workload = workload;
    request->config.simulate = values->platform;
    request->config.context = workload->name;
    request->reps = 1;
    error = duet__job_take_problem(values, request, message);
    if (!error)
        error = workload->check(&request->problem, message);
    if (!error)
        error = duet__request_set_policies(request, "eager", message);
    if (!error)
        error = duet__platform_load(values->platform, &job->platform, message);
    if (error)
        return error;
    duet__calibration_select(&job->platform->calibration, workload->name);
    request->platform = job->platform;
    error = duet__request_build(request, message);
    return error ? error : take_run(job, message);
}

/* ------------------------------------------------------------------------------------------- */
/* The command                                                                                  */

/* Checks that every task has a time, if the format wants one. */
static int check_times(const struct duet__graph *graph, const struct duet__graph_format *format,
                       struct duet_message *message)
{
    char label[DUET__GRAPH_LABEL_MAX];
    for (size_t i = 0; i < duet__graph_count(graph) && format->needs_times; i++)
        if (isnan(duet__graph_reference(graph, i)))
            return duet_fail(message, DUET_EINVAL,
                             "%s: no time is known of %s, and %s has no task without one",
                             graph->name, duet__graph_label(graph, i, label), format->name);
    return 0;
}

static int work(struct duet__job *job, int argc, char **argv)
{
    const struct duet__graph_format *format = NULL;
    struct duet_message message = {""};
    int error = find_format(job, &format, &message);
    if (job->values.out && strcmp(job->values.out, "-") == 0)
        job->values.out = NULL;
    if (!error)
        error = duet__job_read_workload(job, argc, argv, &message);
    if (!error)
        error = duet__files_distinct(job, &message);
    if (!error && job->values.out)
        error = duet__file_check(job->values.out, &message);
    if (!error && job->request.workload != &job->graph_workload)
        error = build(job, job->request.workload, &message);
    if (error > 0)
        return duet__complain(DUET__SIGNALLED + error, "interrupted");
    if (error)
        return duet__job_refuse(error, &message);
    error = check_times(job->graph, format, &message);
    if (error)
        return duet__job_refuse(error, &message);
    if (!job->values.out) {
        format->write(stdout, job->graph);
        return duet__finish_output();
    }
    error = duet__file_write(job->values.out, format->write, job->graph, &message);
    return error ? duet__complain(DUET__FAILED, "%s", message.text) : DUET__DONE;
}

const struct duet__command duet__export_command = {
    .name = "export",
    .description = "a task graph in a format that other programs read",
    .where = DUET__IN_EXPORT,
    .arguments = "WORKLOAD | FILE | -- PROGRAM ARGUMENT...",
    .summary =
        "Writes the task graph of a workload, of a program, or one from a file, which may be a "
        "trace, in one\nof the formats that duet knows. A workload or program is simulated once, "
        "with the times of a platform.",
    .work = work,
};
