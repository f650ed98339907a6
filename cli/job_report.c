/* SPDX-License-Identifier: Apache-2.0 */
/* The report of a job: completed, printed, written into files. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "cli/command.h"
#include "cli/job.h"

static int print(const struct duet__job *job, const struct duet_report *report)
{
    if (job->values.json)
        duet_report_write_json(stdout, report);
    else if (job->values.csv)
        duet_report_write_csv(stdout, report);
    else
        duet_report_write_table(stdout, report);
    return duet__finish_output();
}

static int report_runs(const struct duet__job *job, const struct duet_report *report)
{
    /* the table first: a long run is not lost because a disk is full */
    int printed = print(job, report), written = duet__files_write(job, report);

    return printed ? printed : written;
}

/* ------------------------------------------------------------------------------------------- */

struct failure {
    char *what, *message;
    int error;
};

static void failure_free(gpointer pointer)
{
    struct failure *failure = pointer;

    g_free(failure->what);
    g_free(failure->message);
    g_free(failure);
}

GPtrArray *duet__failures_new(void)
{
    return g_ptr_array_new_with_free_func(failure_free);
}

void duet__failures_add(GPtrArray *failures, int error, const char *message, const char *what, ...)
{
    struct failure *failure = g_new0(struct failure, 1);
    va_list arguments;

    va_start(arguments, what);
    failure->what = g_strdup_vprintf(what, arguments);
    va_end(arguments);
    failure->message = g_strdup(message);
    failure->error = error;
    g_ptr_array_add(failures, failure);
}

/* Where some policies did run, those that did not are named; else the input may be to blame. */
static int complain(const GPtrArray *failures, bool some)
{
    int status = DUET__DONE;

    for (guint i = 0; i < failures->len; i++) {
        const struct failure *failure = failures->pdata[i];
        bool told = false;

        for (guint k = 0; k < i; k++)
            told |= strcmp(failure->message, ((struct failure *)failures->pdata[k])->message) == 0;
        if (some)
            status = duet__complain(DUET__FAILED, "%s failed: %s", failure->what, failure->message);
        else if (!told)
            status = duet__job_complain(failure->what, failure->error, failure->message);
    }
    return status;
}

int duet__job_conclude(const struct duet__job *job, const struct duet_report *report,
                       const GPtrArray *failures)
{
    bool some = report->series_count > 0;
    int reported = some || !failures->len ? report_runs(job, report) : DUET__DONE;
    int failed = complain(failures, some);

    return failed ? failed : reported;
}
