/* SPDX-License-Identifier: Apache-2.0 */
/* `duet compare`: reads two files, puts together what they have in common, reports. */
#include "base/files.h"
#include "cli/job.h"
#include "report/compare.h"

static int read_all(const struct duet__job *job, int argc, char *const *argv,
                    struct duet_message *message)
{
    const char *html = job->values.html;
    int error = 0;
    if (argc != 3)
        return duet_fail(message, DUET_EINVAL,
                         "compare takes two files, not %d (duet compare --help)", argc - 1);
    error = duet__exclude(job, "json", "csv", message);
    if (!error && html && !*html)
        error = duet_fail(message, DUET_EINVAL, "--html takes the name of a file, not ''");
    for (unsigned i = 0; i < 2 && !error; i++)
        if (html && duet__files_same(html, argv[i + 1]))
            error =
                duet_fail(message, DUET_EINVAL, "--html and %c are one file, %s", 'A' + i, html);
    if (!error && html)
        error = duet__file_check(html, message);
    return error;
}

static int report(const struct duet__job *job, struct duet__comparison *comparison)
{
    g_autoptr(GDateTime) now = g_date_time_new_now_utc();
    g_autofree char *date = g_date_time_format(now, "%Y-%m-%d %H:%M UTC");
    int status;
    comparison->validation.command = job->line;
    comparison->validation.date = date;
    comparison->validation.fail_over = job->values.fail_over;
    status = duet__validation_show(job, &comparison->validation);
    for (unsigned i = 0; i < comparison->notes->len; i++)
        duet__complain(DUET__DONE, "%s", (const char *)g_ptr_array_index(comparison->notes, i));
    return status;
}

static int work(struct duet__job *job, int argc, char **argv)
{
    struct duet__comparison comparison = {0};
    struct duet_message message = {""};
    int error = read_all(job, argc, argv, &message), status;
    if (!error && (duet__schedule_in(argv[1]) || duet__schedule_in(argv[2]))) {
        if (job->values.json || job->values.csv || job->values.html)
            return duet__complain(
                DUET__MISUSED, "of two schedules there is a table only: no --json, --csv, --html");
        return duet__compare_schedules((const char *const *)argv + 1);
    }
    if (!error)
        error = duet__comparison_make(&comparison, (const char *const *)argv + 1,
                                      job->values.config.policy, &message);
    status = error ? duet__job_refuse(error, &message) : report(job, &comparison);
    duet__comparison_fini(&comparison);
    return status;
}

const struct duet__command duet__compare_command = {
    .name = "compare",
    .description = "two traces or reports: how far apart, and why",
    .where = DUET__IN_COMPARE,
    .arguments = "A B",
    .summary =
        "Compares the runs in two files, A and B: traces (--trace, DUET_TRACE) or JSON that duet\n"
        "simulate, run, validate or compare printed, in any combination; or two schedules "
        "(--schedule-out).\nOf two traces it says why "
        "A\n"
        "takes longer or shorter than B.",
    .notes =
        "Runs of reports are compared where workload, parameters, n, tile, precision, cpus, gpus, "
        "policy,\nset_arch, hold and priorities are the same; what only one of the files has is "
        "listed on standard "
        "error. Exit status:\n0, 1 if a difference is larger than --fail-over, 2 for bad input.\n\n"
        "Example:\n"
        "  duet simulate cholesky --platform idgraf --n 9600 --policy ws --trace ws.json\n"
        "  duet simulate cholesky --platform idgraf --n 9600 --policy heft --trace heft.json\n"
        "  duet compare ws.json heft.json --html why.html",
    .work = work,
};
