/* SPDX-License-Identifier: Apache-2.0 */
/* `duet export`: a task graph as a file, in a format that others read. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cli/job.h"
#include "graphs/graph.h"
#include "platforms/platform.h"
#include "report/atomic_file.h"

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

/* Every task has a time, if the format wants one. */
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
    const struct duet__workload *workload;
    struct duet_message message = {""};
    int error = find_format(job, &format, &message);

    if (!error && argc > 2)
        error =
            duet_fail(&message, DUET_EINVAL, "one graph at a time: '%s' is one too many", argv[2]);
    if (!error)
        error = duet__job_find_workload(job, argc > 1 ? argv[1] : NULL, &workload, &message);
    if (!error)
        error = duet__files_distinct(job, &message);
    if (!error)
        error = job->graph
                    ? check_times(job->graph, format, &message)
                    : duet_fail(&message, DUET_EINVAL, "%s is no file of a task graph", argv[1]);
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
    .arguments = "FILE",
    .summary = "Writes a task graph from a file in one of the formats that duet knows.",
    .work = work,
};
