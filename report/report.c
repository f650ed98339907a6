/* SPDX-License-Identifier: Apache-2.0 */
/* Summarises the runs of a policy, and describes where they were made. */
#include "report/report.h"

#include <inttypes.h>
#include <math.h>

#include <glib.h>

#include "base/table.h"
#include "base/stats.h"

unsigned duet__report_cpus(const struct duet_machine *machine)
{
    unsigned count = 0;

    for (unsigned i = 0; i < machine->worker_count; i++)
        count += duet__is_host(machine, machine->workers[i].node);
    return count;
}

unsigned duet__report_gpus(const struct duet_machine *machine)
{
    return machine->worker_count - duet__report_cpus(machine);
}

struct duet__policy_summary duet__report_summarise(const struct duet__series *series)
{
    struct duet__policy_summary summary = {.ci95_low_s = NAN, .ci95_high_s = NAN};
    double *values = g_new(double, series->count);
    struct duet__summary makespans;

    for (size_t i = 0; i < series->count; i++) {
        const struct duet__run *run = &series->runs[i];
        double residual = run->verdict.residual;

        values[i] = run->stats.makespan_s;
        summary.judged += run->verdict.formula != NULL;
        summary.failed += !duet__run_passes(run);
        summary.residual = fmax(summary.residual, isnan(residual) ? INFINITY : residual);
    }
    makespans = duet__summarise(values, series->count);
    g_free(values);
    summary.makespan_s = makespans.median;
    summary.mean_s = makespans.mean;
    /* an interval that begins below 0 tells nothing: runs are too few for their spread */
    if (duet__spreads(&makespans) && makespans.mean_low > 0) {
        summary.ci95_low_s = makespans.mean_low;
        summary.ci95_high_s = makespans.mean_high;
    }
    return summary;
}

/* "4 CPUs (x5650)": the workers that are (or are not) on the host, and their architectures. */
static void append_workers(GString *text, const struct duet_machine *machine, bool host,
                           const char *name)
{
    g_autoptr(GString) archs = g_string_new(NULL);
    unsigned count = host ? duet__report_cpus(machine) : duet__report_gpus(machine);

    for (unsigned arch = 0; arch < machine->arch_count; arch++)
        for (unsigned i = 0; i < machine->worker_count; i++)
            if (machine->workers[i].arch == arch &&
                duet__is_host(machine, machine->workers[i].node) == host) {
                g_string_append_printf(archs, "%s%s", archs->len ? ", " : "",
                                       machine->archs[arch].name);
                break;
            }
    if (count)
        g_string_append_printf(text, "%s%u %s%s (%s)", text->len ? " + " : "", count, name,
                               count == 1 ? "" : "s", archs->str);
}

char *duet__report_resources(const struct duet_machine *machine)
{
    GString *text = g_string_new(NULL);

    append_workers(text, machine, true, "CPU");
    append_workers(text, machine, false, "GPU");
    return g_string_free(text, FALSE);
}

const char *duet__report_world(const struct duet__report *report)
{
    const struct duet_config *config = &report->request->config;

    return config->simulate ? "simulated" : config->emulate ? "emulated" : "real";
}

struct duet__verdict duet__series_verdict(const struct duet__series *series)
{
    for (size_t i = 0; i < series->count; i++)
        if (series->runs[i].verdict.formula)
            return series->runs[i].verdict;
    return (struct duet__verdict){.formula = NULL};
}

struct duet__verdict duet__report_verdict(const struct duet__report *report)
{
    struct duet__verdict verdict = {.formula = NULL};

    for (size_t i = 0; i < report->series_count && !verdict.formula; i++)
        verdict = duet__series_verdict(&report->series[i]);
    return verdict;
}

char *duet__report_problem(const struct duet__report *report)
{
    const struct duet__problem *problem = &report->request->problem;
    const struct duet_config *config = &report->request->config;
    g_autofree char *settings = duet__request_settings(report->request);
    uint64_t tasks = report->series_count ? report->series[0].runs[0].stats.tasks : 0;

    g_autofree char *interval = duet__report_interval(report);
    g_autofree char *size =
        problem->graph || report->request->workload->program
            ? g_strdup("")
            : g_strdup_printf(", n %" PRIu64 ", tile %" PRIu64 ", %s precision", problem->n,
                              problem->tile, problem->precision == 's' ? "single" : "double");

    return g_strdup_printf("%s%s, %" PRIu64 " tasks%s%s%s%s%s%s%s%s%s%s%s",
                           report->request->workload->name, size, tasks, *settings ? ", " : "",
                           settings, config->set_arch ? ", set-arch" : "",
                           config->hold ? ", held" : "", config->priorities ? ", priorities " : "",
                           config->priorities ? config->priorities : "",
                           *interval ? ", interval of " : "", interval,
                           config->noise && !config->interval ? ", noise" : "",
                           config->without ? ", without " : "",
                           config->without ? config->without : "");
}

char *duet__report_interval(const struct duet__report *report)
{
    const char *text = report->request->config.interval;

    if (!text)
        return g_strdup("");
    if (!g_str_has_prefix(text, "median:"))
        return g_strdup("one run");
    return g_strdup_printf("the median of %s runs", text + strlen("median:"));
}

char *duet__report_choice(const struct duet__series *series)
{
    static const double as_good = 0.005; /* trials that differ by less are equal */
    const struct duet_choice *choice = &series->runs[0].choice;
    double behind = choice->runner_up_s / choice->predicted_s - 1;
    GString *text;

    if (!*choice->policy)
        return NULL;
    text = g_string_new(series->policy);
    g_string_append_printf(text, " took %s", choice->policy);
    if (*choice->why)
        g_string_append_printf(text, ": %s", choice->why);
    else
        g_string_append_printf(text, ", %.*f s expected of %zu task%s",
                               duet__decimals(choice->predicted_s, 5), choice->predicted_s,
                               choice->tasks, choice->tasks == 1 ? "" : "s");
    if (*choice->runner_up && behind > as_good)
        g_string_append_printf(text, "; then %s, %+.2f %%", choice->runner_up, 100 * behind);
    else if (*choice->runner_up)
        g_string_append_printf(text, "; %s is as good", choice->runner_up);
    return g_string_free(text, FALSE);
}
