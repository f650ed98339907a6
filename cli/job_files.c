/* SPDX-License-Identifier: Apache-2.0 */
/* The files that the subcommands write beside its table. */
#include "cli/job.h"

#include <string.h>

#include "cli/command.h"
#include "report/gantt.h"
#include "report/output.h"
#include "report/page/page.h"
#include "report/perfetto.h"

/* What a file is made from. */
struct source {
    const struct duet_report *report;
    const struct duet_series *series; /* the first one, for a file about all of them */
};

/* Makes sure that the files of an option can be written. Exit status. */
static int check(const struct duet__job *job, const char *path, bool each)
{
    g_auto(GStrv) paths = duet__files_paths(job, path, each);
    struct duet_message message;

    for (char **at = paths; *at; at++)
        if (duet_output_check(*at, &message))
            return duet__complain(DUET__MISUSED, "%s", message.text);
    return DUET__DONE;
}

int duet__files_check(const struct duet__job *job)
{
    int status = check(job, job->values.trace, true);

    if (job->values.machine_xml && !g_str_has_suffix(job->values.machine_xml, ".xml"))
        return duet__complain(DUET__MISUSED,
                              "--machine-xml %s: the name must end in .xml, so that the file can "
                              "be read again",
                              job->values.machine_xml);
    if (status == DUET__DONE)
        status = check(job, job->values.machine_xml, false);
    if (status == DUET__DONE)
        status = check(job, job->values.gantt, true);
    if (status == DUET__DONE)
        status = check(job, job->values.html, false);
    return status;
}

static void write_trace(FILE *stream, const void *data)
{
    const struct source *source = data;

    duet_perfetto_write(stream, duet_run_recording(source->series->runs));
}

static void write_gantt(FILE *stream, const void *data)
{
    const struct source *source = data;
    const struct duet_report *report = source->report;
    const struct duet_recording *recording = duet_run_recording(source->series->runs);
    g_autofree char *resources = duet_report_resources(&report->request->machine);
    g_autofree char *problem = duet_report_problem(report);
    g_autofree char *place = duet_report_place(report);
    g_autofree char *title =
        g_strdup_printf("%s on %s: %s, %.4g s", report->request->workload->name, place,
                        source->series->policy, recording->makespan_s);
    g_autofree char *subtitle = g_strdup_printf("%s; %s", problem, resources);

    duet_gantt_write_svg(stream, recording, title, subtitle);
}

static void write_html(FILE *stream, const void *data)
{
    duet_page_write_report(stream, ((const struct source *)data)->report);
}

/* The runs of a policy; NULL: it failed, or a signal came before its recorded run was finished. */
static const struct duet_series *recorded(const struct duet_report *report, const char *policy)
{
    for (size_t i = 0; i < report->series_count; i++)
        if (strcmp(report->series[i].policy, policy) == 0)
            return duet_run_recording(report->series[i].runs) ? &report->series[i] : NULL;
    return NULL;
}

/* Writes the files of an option; one that fails does not keep the others from being written. */
static int write_all(const struct duet__job *job, const struct duet_report *report,
                     const char *path, bool each, duet_output_fn *contents)
{
    g_auto(GStrv) paths = duet__files_paths(job, path, each);
    struct duet_message message;
    int status = DUET__DONE;

    for (size_t i = 0; paths[i]; i++) {
        const struct source source = {report, each ? recorded(report, job->request.policies[i])
                                                   : report->series};

        if (source.series && report->series_count &&
            duet_output_write(paths[i], contents, &source, &message))
            status = duet__complain(DUET__FAILED, "%s", message.text);
    }
    return status;
}

int duet__files_write(const struct duet__job *job, const struct duet_report *report)
{
    int trace = write_all(job, report, job->values.trace, true, write_trace);
    int gantt = write_all(job, report, job->values.gantt, true, write_gantt);
    int html = write_all(job, report, job->values.html, false, write_html);

    return trace || gantt || html ? DUET__FAILED : DUET__DONE;
}
