/* SPDX-License-Identifier: Apache-2.0 */
/* The files that the subcommands write beside its table. */
#include "cli/job.h"

#include "cli/command.h"
#include "cli/signals.h"
#include "report/gantt.h"
#include "report/page/page.h"
#include "report/perfetto.h"
#include "report/output.h"

/* Writes the contents of one file; `policy` is NULL for a file about all of them. */
typedef int (*write_fn)(FILE *stream, const struct duet_report *report,
                        const struct duet_policy_runs *policy, struct duet_message *message);

static int check(const struct duet__job *job, const char *path, bool each)
{
    char **paths = duet__files_paths(job, path, each);
    struct duet_message message;
    int status = DUET__DONE;

    for (char **at = paths; *at && status == DUET__DONE; at++) {
        struct duet_output output;

        if (duet_output_open(&output, *at, &message))
            status = duet__complain(DUET__MISUSED, "%s", message.text);
        else
            duet_output_discard(&output);
    }
    g_strfreev(paths);
    return status;
}

int duet__files_check(const struct duet__job *job)
{
    int status = check(job, job->trace, true);

    if (job->machine_xml && !g_str_has_suffix(job->machine_xml, ".xml"))
        return duet__complain(DUET__MISUSED,
                              "--machine-xml %s: the name must end in .xml, so that the file can "
                              "be read again",
                              job->machine_xml);
    if (status == DUET__DONE)
        status = check(job, job->machine_xml, false);
    if (status == DUET__DONE)
        status = check(job, job->gantt, true);
    if (status == DUET__DONE)
        status = check(job, job->html, false);
    return status;
}

static int write_trace(FILE *stream, const struct duet_report *report,
                       const struct duet_policy_runs *policy, struct duet_message *message)
{
    (void)report;
    return duet_perfetto_write(stream, policy->recording, message);
}

static int write_gantt(FILE *stream, const struct duet_report *report,
                       const struct duet_policy_runs *policy, struct duet_message *message)
{
    char *resources = duet_report_resources(report->machine);
    char *problem = duet_report_problem(report);
    char *place = duet_report_place(report);
    char *title = g_strdup_printf("%s on %s: %s, %.4g s", report->workload, place, policy->policy,
                                  policy->recording->makespan_s);
    char *subtitle = g_strdup_printf("%s; %s", problem, resources);

    (void)message;
    duet_gantt_write_svg(stream, policy->recording, title, subtitle);
    g_free(subtitle);
    g_free(title);
    g_free(place);
    g_free(problem);
    g_free(resources);
    return 0;
}

static int write_html(FILE *stream, const struct duet_report *report,
                      const struct duet_policy_runs *policy, struct duet_message *message)
{
    (void)policy;
    return duet_page_write_report(stream, report, message);
}

static int write_one(const char *path, write_fn contents, const struct duet_report *report,
                     const struct duet_policy_runs *policy)
{
    struct duet_message message;
    struct duet_output output;
    int result = duet_output_open(&output, path, &message);

    if (!result) {
        result = contents(output.stream, report, policy, &message);
        if (result)
            duet_output_discard(&output);
        else
            result = duet_output_commit(&output, &message);
    }
    return result ? duet__complain(DUET__FAILED, "%s", message.text) : DUET__DONE;
}

static int write_all(const struct duet__job *job, const struct duet_report *report,
                     const char *path, bool each, write_fn contents)
{
    char **paths = duet__files_paths(job, path, each);
    int status = DUET__DONE;

    /* one that fails does not keep the others from being written */
    for (size_t i = 0; paths[i] && i < report->policy_count; i++)
        if (write_one(paths[i], contents, report, &report->policies[i]) != DUET__DONE)
            status = DUET__FAILED;
    g_strfreev(paths);
    return status;
}

int duet__files_write(const struct duet__job *job, const struct duet_report *report)
{
    sigset_t before;
    int trace, gantt, html;

    if (!report->policy_count)
        return DUET__DONE;
    /* a signal waits until the files are whole, so that no temporary one stays */
    duet__signals_hold(&before);
    trace = write_all(job, report, job->trace, true, write_trace);
    gantt = write_all(job, report, job->gantt, true, write_gantt);
    html = write_all(job, report, job->html, false, write_html);
    duet__signals_release(&before);
    return trace || gantt || html ? DUET__FAILED : DUET__DONE;
}
