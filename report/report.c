/* SPDX-License-Identifier: Apache-2.0 */
/* Figures of a report: from single runs to one summary a policy. */
#include "report/report.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

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

double duet_run_gflops(const struct duet_report *report, const struct duet_run *run)
{
    double flops = report->flops > 0 ? report->flops : run->stats.flops;

    if (report->real && report->real->emulation == DUET_EMULATION_PACED)
        return NAN;
    return run->stats.makespan_s > 0 ? flops / run->stats.makespan_s / 1e9 : 0;
}

double duet_run_hit_ratio(const struct duet_run *run)
{
    if (run->stats.reads_on_device == 0)
        return NAN;
    return (double)run->stats.read_hits / (double)run->stats.reads_on_device;
}

double duet_run_idle_share(const struct duet_report *report, const struct duet_run *run)
{
    double room = run->stats.makespan_s * report->machine->worker_count;

    return room > 0 ? 1 - run->stats.busy_s / room : 0;
}

/* One figure of a run. */
typedef double (*figure_fn)(const struct duet_report *report, const struct duet_run *run);

static double hit_ratio(const struct duet_report *report, const struct duet_run *run)
{
    (void)report;
    return duet_run_hit_ratio(run);
}

static double flops(const struct duet_report *report, const struct duet_run *run)
{
    return report->flops > 0 ? report->flops : run->stats.flops;
}

static double tasks(const struct duet_report *report, const struct duet_run *run)
{
    (void)report;
    return (double)run->stats.tasks;
}

static double bytes_to_device(const struct duet_report *report, const struct duet_run *run)
{
    (void)report;
    return (double)run->stats.bytes_to_device;
}

static double bytes_to_host(const struct duet_report *report, const struct duet_run *run)
{
    (void)report;
    return (double)run->stats.bytes_to_host;
}

static double bytes_between(const struct duet_report *report, const struct duet_run *run)
{
    (void)report;
    return (double)run->stats.bytes_between;
}

static double critical_path(const struct duet_report *report, const struct duet_run *run)
{
    (void)report;
    return run->critical_path_s;
}

static double area(const struct duet_report *report, const struct duet_run *run)
{
    (void)report;
    return run->area_s;
}

static double wall(const struct duet_report *report, const struct duet_run *run)
{
    (void)report;
    return run->wall_s;
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* Median of a figure over the runs, NaN if one is; `values` has room for all of them. */
static double median_of(const struct duet_report *report, const struct duet_policy_runs *policy,
                        figure_fn figure, double *values)
{
    for (size_t i = 0; i < policy->run_count; i++) {
        values[i] = figure(report, &policy->runs[i]);
        if (isnan(values[i]))
            return NAN;
    }
    qsort(values, policy->run_count, sizeof(*values), ascending);
    return duet_quantile(values, policy->run_count, 0.5);
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
    summary->ci95_low_s = fmax(makespans.mean_low, 0); /* of few runs, it may say less than that */
    summary->ci95_high_s = makespans.mean_high;
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
    values = g_new(double, policy->run_count);
    *summary = (struct duet_policy_summary){
        .tasks = (uint64_t)median_of(report, policy, tasks, values),
        .bytes_to_device = (uint64_t)llround(median_of(report, policy, bytes_to_device, values)),
        .bytes_to_host = (uint64_t)llround(median_of(report, policy, bytes_to_host, values)),
        .bytes_between = (uint64_t)llround(median_of(report, policy, bytes_between, values)),
        .hit_ratio = median_of(report, policy, hit_ratio, values),
        .idle_share = median_of(report, policy, duet_run_idle_share, values),
        .critical_path_s = median_of(report, policy, critical_path, values),
        .area_s = median_of(report, policy, area, values),
        .wall_s = median_of(report, policy, wall, values),
    };
    result = summarise_makespan(policy, values, summary, message);
    if (!result && report->real && report->real->emulation == DUET_EMULATION_PACED)
        summary->gflops = NAN;
    else if (!result && summary->makespan_s > 0)
        summary->gflops = median_of(report, policy, flops, values) / summary->makespan_s / 1e9;
    judge(report, policy, summary);
    g_free(values);
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
