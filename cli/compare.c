/* SPDX-License-Identifier: Apache-2.0 */
/* `duet compare`: reads two files, puts together what they have in common, reports. */
#include <stdio.h>

#include "cli/command.h"
#include "cli/job.h"
#include "cli/validation.h"
#include "report/compare.h"

/* What was asked for. */
struct compare {
    struct duet__job job; /* only its options and command line */
    struct duet_comparison comparison;
};

static const char summary[] =
    "Compares the runs in two files, A and B: traces (--trace, DUET_TRACE) or JSON that duet\n"
    "simulate, run, validate or compare printed, in any combination. Of two traces it says why A\n"
    "takes longer or shorter than B.";

static const char notes[] =
    "Runs of reports are compared where workload, parameters, n, tile, precision, cpus, gpus, "
    "policy\nand set_arch are the same; what only one of the files has is listed on standard "
    "error. Exit status:\n0, 1 if a difference is larger than --fail-over, 2 for bad input.\n\n"
    "Example:\n"
    "  duet simulate cholesky --platform idgraf --n 9600 --policy ws --trace ws.json\n"
    "  duet simulate cholesky --platform idgraf --n 9600 --policy heft --trace heft.json\n"
    "  duet compare ws.json heft.json --html why.html";

/* The options and both files. */
static int read_all(struct compare *compare, int argc, char *const *argv,
                    struct duet_message *message)
{
    const char *html = compare->job.values.html;
    int error = 0;

    if (argc != 3)
        error = duet_fail(message, DUET_EINVAL,
                          "compare takes two files, not %d (duet compare "
                          "--help)",
                          argc - 1);
    if (!error)
        error = duet__exclude(&compare->job, "json", "csv", message);
    if (!error && html && !*html)
        error = duet_fail(message, DUET_EINVAL, "--html takes the name of a file, not ''");
    for (unsigned i = 0; i < 2 && !error; i++)
        if (html && duet__files_same(html, argv[i + 1]))
            error =
                duet_fail(message, DUET_EINVAL, "--html and %c are one file, %s", 'A' + i, html);
    if (!error)
        error = duet_comparison_make(&compare->comparison, (const char *const *)argv + 1,
                                     compare->job.values.config.policy, message);
    return error;
}

/* ------------------------------------------------------------------------------------------- */
/* The report                                                                                   */

static int report(const struct compare *compare)
{
    g_autoptr(GDateTime) now = g_date_time_new_now_utc();
    g_autofree char *date = g_date_time_format(now, "%Y-%m-%d %H:%M UTC");
    const struct duet_comparison *comparison = &compare->comparison;
    const char *first = comparison->names[0], *second = comparison->names[1];
    g_autofree char *title = g_strdup_printf("%s against %s", first, second);
    struct duet_validation validation = {
        .command = compare->job.command,
        .title = title,
        .first_name = first,
        .second_name = second,
        .machine = comparison->place,
        .calibration = "",
        .date = date,
        .cases = (struct duet_case *)(void *)comparison->cases->data,
        .case_count = comparison->cases->len,
        .fail_over = compare->job.values.fail_over,
    };
    int status;

    status = duet__validation_show(&compare->job, &validation);
    for (unsigned i = 0; i < comparison->notes->len; i++)
        duet__complain(DUET__DONE, "%s", (const char *)g_ptr_array_index(comparison->notes, i));
    duet_validation_fini(&validation);
    return status;
}

static int run(int argc, char **argv)
{
    struct compare compare = {0};
    struct duet_message message = {""};
    int status = DUET__MISUSED;

    duet__job_init(&compare.job, "compare", DUET__IN_COMPARE, argc, argv);
    if (duet__job_options(&compare.job, "A B", summary, notes, &argc, &argv)) {
        int error = read_all(&compare, argc, argv, &message);

        status = error ? duet__job_refuse(error, &message) : report(&compare);
    }
    duet_comparison_fini(&compare.comparison);
    duet__job_fini(&compare.job);
    return status;
}

const struct duet__command duet__compare_command = {
    .name = "compare",
    .description = "two traces or reports: how far apart, and why",
    .run = run,
};
