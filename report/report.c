/* SPDX-License-Identifier: Apache-2.0 */
/* Figures of a report: from single runs to one summary a policy. */
#include "report/report.h"

#include <inttypes.h>
#include <math.h>

#include <glib.h>

#include "validate/stats.h"

unsigned duet_report_cpus(const struct duet_machine *machine)
{
    unsigned count = 0;

    for (unsigned i = 0; i < machine->worker_count; i++)
        count += machine->workers[i].node == DUET_HOST;
    return count;
}

unsigned duet_report_gpus(const struct duet_machine *machine)
{
    return machine->worker_count - duet_report_cpus(machine);
}

/* Makespan and the interval of its mean. */
static int summarise_makespan(const struct duet_policy_runs *policy, double *values,
                              struct duet_policy_summary *summary, struct duet_message *message)
{
    struct duet_summary makespans;
    int result;

    for (size_t i = 0; i < policy->run_count; i++)
        values[i] = policy->runs[i].stats.makespan_s;
    result = duet_summarise(values, policy->run_count, &makespans, message);
    if (result)
        return result;
    summary->makespan_s = makespans.median;
    summary->mean_s = makespans.mean;
    summary->ci95_low_s = summary->ci95_high_s = NAN;
    if (policy->run_count >= DUET_INTERVAL_RUNS) {
        summary->ci95_low_s = fmax(makespans.mean_low, 0); /* it may say less than that */
        summary->ci95_high_s = makespans.mean_high;
    }
    return 0;
}

bool duet_report_passes(const struct duet_report *report, double residual)
{
    return residual < report->real->threshold;
}

/* The worst of the residuals, and how many do not pass. */
static void judge(const struct duet_report *report, const struct duet_policy_runs *policy,
                  struct duet_policy_summary *summary)
{
    for (size_t i = 0; report->real && report->real->formula && i < policy->run_count; i++) {
        double residual = policy->runs[i].residual;

        summary->failed += !duet_report_passes(report, residual);
        summary->residual = fmax(summary->residual, isnan(residual) ? INFINITY : residual);
    }
}

int duet_report_summarise(const struct duet_report *report, const struct duet_policy_runs *policy,
                          struct duet_policy_summary *summary, struct duet_message *message)
{
    double *values;
    int result;

    if (policy->run_count == 0)
        return duet_fail(message, DUET_EINVAL, "policy %s has no run to report", policy->policy);
    *summary = (struct duet_policy_summary){0};
    values = g_new(double, policy->run_count);
    result = summarise_makespan(policy, values, summary, message);
    g_free(values);
    judge(report, policy, summary);
    return result;
}

/* "4 CPUs (x5650)": the workers that are (or are not) on the host, and their architectures. */
static void append_workers(GString *text, const struct duet_machine *machine, bool host,
                           const char *name)
{
    GString *archs = g_string_new(NULL);
    unsigned count = 0;

    for (unsigned arch = 0; arch < machine->arch_count; arch++) {
        unsigned here = 0;

        for (unsigned i = 0; i < machine->worker_count; i++)
            here +=
                machine->workers[i].arch == arch && (machine->workers[i].node == DUET_HOST) == host;
        if (here)
            g_string_append_printf(archs, "%s%s", archs->len ? ", " : "",
                                   machine->archs[arch].name);
        count += here;
    }
    if (count)
        g_string_append_printf(text, "%s%u %s%s (%s)", text->len ? " + " : "", count, name,
                               count == 1 ? "" : "s", archs->str);
    g_string_free(archs, TRUE);
}

char *duet_report_resources(const struct duet_machine *machine)
{
    GString *text = g_string_new(NULL);

    append_workers(text, machine, true, "CPU");
    append_workers(text, machine, false, "GPU");
    return g_string_free(text, FALSE);
}

char *duet_report_place(const struct duet_report *report)
{
    const struct duet_report_real *real = report->real;

    if (real && real->emulation == DUET_EMULATION_FREE)
        return g_strdup_printf("%s with emulated GPUs", report->platform);
    if (real && real->emulation == DUET_EMULATION_PACED)
        return g_strdup_printf("an emulated %s (times x %g, nothing computed)", report->platform,
                               real->scale);
    return g_strdup(report->platform);
}

char *duet_report_problem(const struct duet_report *report)
{
    uint64_t count = report->policy_count && report->policies[0].run_count
                         ? report->policies[0].runs[0].stats.tasks
                         : 0;

    return g_strdup_printf("%s, n %" PRIu64 ", tile %" PRIu64 ", %s precision, %" PRIu64
                           " tasks%s%s%s%s%s%s",
                           report->workload, report->n, report->tile,
                           report->precision == 's' ? "single" : "double", count,
                           report->settings[0] ? ", " : "", report->settings,
                           report->set_arch ? ", set-arch" : "", report->noise ? ", noise" : "",
                           report->without ? ", without " : "",
                           report->without ? report->without : "");
}
