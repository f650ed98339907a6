/* SPDX-License-Identifier: Apache-2.0 */
/* The report of a job: completed, printed, written into files. */
#include <stdio.h>

#include "cli/command.h"
#include "cli/job.h"

/* Parameters of the workload, "variant=left, width=8"; caller frees. */
static char *settings_text(const struct duet__job *job)
{
    GString *text = g_string_new(NULL);

    for (size_t i = 0; i < job->problem.setting_count; i++)
        g_string_append_printf(text, "%s%s=%s", i ? ", " : "", job->problem.settings[i].name,
                               job->problem.settings[i].value);
    return g_string_free(text, FALSE);
}

static int print(const struct duet__job *job, const struct duet_report *report)
{
    struct duet_message message = {""};
    int result;

    if (job->json)
        result = duet_report_write_json(stdout, report, &message);
    else if (job->csv)
        result = duet_report_write_csv(stdout, report, &message);
    else
        result = duet_report_write_table(stdout, report, &message);
    if (result)
        return duet__complain(DUET__FAILED, "%s", message.text);
    return duet__finish_output();
}

int duet__job_report(const struct duet__job *job, const struct duet_report *world)
{
    struct duet_report report = *world;
    char *settings = settings_text(job);
    int printed, written;

    report.command = job->command;
    report.workload = job->workload->name;
    report.settings = settings;
    report.platform = job->platform_name;
    report.n = job->problem.n;
    report.tile = job->problem.tile;
    report.precision = job->problem.precision;
    report.set_arch = job->config.set_arch;
    report.without = job->config.without;
    report.flops = job->workload->flops(&job->problem);
    report.machine = &job->machine;
    /* the table first: a long run is not lost because a disk is full */
    printed = print(job, &report);
    written = duet__files_write(job, &report);
    g_free(settings);
    return printed ? printed : written;
}
