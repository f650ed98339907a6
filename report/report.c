/* SPDX-License-Identifier: Apache-2.0 */
/* Summarises the runs of a policy, and describes where they were made; the table of a report. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include <glib.h>

#include "base/stats.h"
#include "base/table.h"
#include "report/metrics.h"

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
    g_autofree char *interval = duet__report_interval(report->request->config.interval);
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

char *duet__report_interval(const char *interval)
{
    if (!interval)
        return g_strdup("");
    if (!g_str_has_prefix(interval, "median:"))
        return g_strdup("one run");
    return g_strdup_printf("the median of %s runs", interval + strlen("median:"));
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

/* ------------------------------------------------------------------------------------------- */
/* The table for a terminal, at most 100 columns where names are not too long                   */

/* Digits after the point of a metric's column. */
static int digits_of(const struct duet__report *report, const struct duet__metric *metric)
{
    double most = 0;
    if (metric->digits >= 0)
        return metric->digits;
    for (size_t i = 0; i < report->series_count; i++)
        for (const struct duet__metric *other = duet__metrics;
             other < duet__metrics + DUET__METRICS; other++)
            if (other == metric || (metric->group && metric->group == other->group))
                most = fmax(most, duet__metric_median(other, report, &report->series[i], 0));
    return MIN(duet__decimals(metric->unit > 0 ? most / metric->unit : most, 5), -metric->digits);
}

static char *cell_of(const struct duet__report *report, const struct duet__metric *metric,
                     const struct duet__series *series, int arch)
{
    const struct duet__policy_summary summary = duet__report_summarise(series);
    int digits = digits_of(report, metric);
    double value;
    if (metric == &duet__metrics[DUET__RESIDUAL])
        return g_strdup_printf("%.3g", summary.residual);
    if (metric == &duet__metrics[DUET__INTERVAL]) {
        double low_s = summary.ci95_low_s, high_s = summary.ci95_high_s;
        if (report->request->config.interval)
            duet__interval_find(series, &low_s, &high_s);
        if (isnan(low_s))
            return g_strdup("-");
        digits = digits_of(report, &duet__metrics[DUET__MAKESPAN]);
        return g_strdup_printf("%.*f-%.*f", digits, low_s, digits, high_s);
    }
    value = duet__metric_median(metric, report, series, arch);
    if (metric->bound)
        value = value > 0 && summary.makespan_s > 0 ? value / summary.makespan_s : NAN;
    if (metric->unit > 0)
        value /= metric->unit;
    return isnan(value) ? g_strdup("-") : g_strdup_printf("%.*f", digits, value);
}

/* Returns the first column of a metric, from number `column` on, that the table has; -1: none. */
static int next_column(const struct duet__report *report, const struct duet__metric *metric,
                       int column)
{
    if (!metric->heads[0] || (metric->known && !metric->known(report)) ||
        (metric->tabled && !metric->tabled(report)))
        return -1;
    return duet__metric_next(metric, report, column);
}

/* A row of the table; -2 and -1 are its headings. */
static void add_row(struct duet__table *table, const struct duet__report *report, int row)
{
    const struct duet__series *series = row < 0 ? NULL : &report->series[row];
    duet__table_say(table, series ? series->policy : row == -2 ? "policy" : "");
    for (const struct duet__metric *metric = duet__metrics; metric < duet__metrics + DUET__METRICS;
         metric++)
        for (int i = 0; (i = next_column(report, metric, i)) >= 0; i++)
            if (series)
                duet__table_add(table, cell_of(report, metric, series, i));
            else if (row == -1 && metric->by_arch)
                duet__table_say(table, report->request->machine.archs[i].name);
            else if (metric == &duet__metrics[DUET__INTERVAL] && row == -2 &&
                     report->request->config.interval)
                duet__table_say(table, "90% of later");
            else
                duet__table_say(table, metric->heads[row + 2]);
}

static void put_table(FILE *stream, const struct duet__report *report)
{
    g_autoptr(GString) sides = g_string_new("l");
    struct duet__table table;
    for (size_t m = 0; m < DUET__METRICS; m++)
        for (int i = 0; (i = next_column(report, &duet__metrics[m], i)) >= 0; i++)
            g_string_append_c(sides, 'r');
    duet__table_init(&table, sides->str);
    table.page = DUET__PAGE;
    for (int row = -2; row < (int)report->series_count; row++)
        add_row(&table, report, row);
    duet__table_put(&table, stream, 0);
}

/* Writes the number of measured runs of each policy, if not all were made. */
static void put_interrupted(FILE *stream, const struct duet__report *report)
{
    fprintf(stream, "interrupted: of %zu run%s a policy,", report->request->reps,
            report->request->reps == 1 ? "" : "s");
    for (size_t i = 0; i < report->series_count; i++)
        fprintf(stream, "%s %s has %zu", i ? "," : "", report->series[i].policy,
                report->series[i].count);
    fputs(report->series_count ? "\n" : " none is finished\n", stream);
}

/* Writes ", 5 runs a policy", or "3 to 5" if their numbers differ. */
static void put_counts(FILE *stream, const struct duet__report *report)
{
    size_t least = report->series[0].count, most = least;
    for (size_t i = 1; i < report->series_count; i++) {
        least = MIN(least, report->series[i].count);
        most = MAX(most, report->series[i].count);
    }
    if (least < most)
        fprintf(stream, ", %zu to %zu runs a policy", least, most);
    else if (most > 1 || !duet__report_simulated(report))
        fprintf(stream, ", %zu run%s a policy", most, most == 1 ? "" : "s");
}

static void put_head(FILE *stream, const struct duet__report *report)
{
    const struct duet__request *request = report->request;
    g_autofree char *resources = duet__report_resources(&request->machine);
    g_autofree char *problem = duet__report_problem(report),
                    *place = duet__request_place(report->request);
    bool simulated = duet__report_simulated(report);
    fprintf(stream, "%s on %s: %s%s\n%s", simulated ? "simulated" : "run", place, resources,
            duet__request_nodes(request) > 1 ? " a node" : "", problem);
    put_counts(stream, report);
    if (!simulated)
        fprintf(stream, " after %zu warm-up%s, %u core%s", request->warmups,
                request->warmups == 1 ? "" : "s", report->cores, report->cores == 1 ? "" : "s");
    if (request->config.lose)
        fprintf(stream, "\nlost on purpose: %s", request->config.lose);
    if (request->estimated)
        fprintf(stream, "\nestimated, not measured: times of %s%s", request->estimated,
                request->problem.graph ? "" : " (duet list kernels)");
    fputs("\n\n", stream);
}

static double bound_of(const struct duet__report *report, unsigned metric)
{
    return duet__metric_median(&duet__metrics[metric], report, &report->series[0], 0);
}

/* "critical path 1.5 s" */
static void put_bound(FILE *stream, const char *name, double bound_s)
{
    if (bound_s > 0)
        fprintf(stream, "%s %.*f s", name, duet__decimals(bound_s, 5), bound_s);
    else
        fprintf(stream, "%s not known", name);
}

static void put_bounds(FILE *stream, const struct duet__report *report)
{
    bool simulated = duet__report_simulated(report);
    const struct duet__bounds bounds = {.critical_path_s = bound_of(report, DUET__PATH),
                                        .area_s = bound_of(report, DUET__AREA),
                                        .mixed_s = bound_of(report, DUET__MIXED),
                                        .links_s = bound_of(report, DUET__LINKS)};
    double best_s;
    const char *best = duet__bounds_best(&bounds, &best_s);
    fputs("\nlower bounds", stream);
    if (!simulated && report->series_count > 1) /* measured times are each policy's own */
        fprintf(stream, " of %s", report->series[0].policy);
    fputs(": ", stream);
    put_bound(stream, "critical path", bounds.critical_path_s);
    fputs(", ", stream);
    put_bound(stream, "area", bounds.area_s);
    if (best_s > fmax(bounds.critical_path_s, bounds.area_s)) {
        fputs(", ", stream);
        put_bound(stream, best, best_s);
    }
    fputs(" (bound: best by makespan)\n", stream);
    if (!simulated)
        fprintf(stream, "by the mean times %s\n",
                duet__request_paced(report->request) ? "of the platform"
                                                     : "measured in these runs");
}

/* Writes how idle the nodes are, in one line a policy, as they may be many. */
static void put_nodes(FILE *stream, const struct duet__report *report)
{
    static const struct duet__metric *const metrics = duet__metrics;
    for (size_t i = 0; i < report->series_count && duet__request_nodes(report->request) > 1; i++) {
        const struct duet__series *series = &report->series[i];
        fprintf(stream, "%s: a node is idle %.1f %% (least), %.1f %% (median), %.1f %% (most)\n",
                series->policy,
                100 * duet__metric_median(&metrics[DUET__NODE_LEAST], report, series, 0),
                100 * duet__metric_median(&metrics[DUET__NODE_MEDIAN], report, series, 0),
                100 * duet__metric_median(&metrics[DUET__NODE_MOST], report, series, 0));
    }
}

/* Writes what the kernels' times rest on, and what the intervals are of. */
static void put_interval(FILE *stream, const struct duet__report *report)
{
    const char *interval = report->request->config.interval, *words = "";
    if (!interval)
        return;
    if (duet__metrics[DUET__BASIS].known(report)) {
        fprintf(stream, "\nkernel times of %s:", report->series[0].policy);
        for (size_t i = 0; i < DUET__BASES; i++) {
            const struct duet__metric *metric = &duet__metrics[DUET__BASIS + i];
            const double share = duet__metric_median(metric, report, &report->series[0], 0);
            if (share >= 0.0005)
                fprintf(stream, "%s %.1f %% %s", words, 100 * share, metric->key);
            words = share >= 0.0005 ? "," : words;
        }
    }
    putc('\n', stream);
    for (size_t i = 0; i < report->series_count; i++) {
        g_autofree char *advice = duet__interval_advice(report->request, &report->series[i]),
                        *text = NULL;
        if (!advice)
            continue;
        text = g_strdup_printf("interval of %s: %s", report->series[i].policy, advice);
        duet__put_wrapped(stream, text, 4);
    }
}

static void put_verification(FILE *stream, const struct duet__report *report)
{
    const struct duet__verdict verdict = duet__report_verdict(report);
    size_t runs = 0, failed = 0;
    if (!verdict.formula)
        return;
    for (size_t i = 0; i < report->series_count; i++) {
        const struct duet__policy_summary summary = duet__report_summarise(&report->series[i]);
        runs += summary.judged;
        failed += summary.failed;
    }
    fprintf(stream, "verification: residual %s, to be below %g: ", verdict.formula,
            verdict.threshold);
    if (failed)
        fprintf(stream, "FAILED in %zu of %zu runs\n", failed, runs);
    else
        fprintf(stream, "passed in %s%zu run%s\n", runs > 1 ? "all " : "", runs,
                runs > 1 ? "s" : "");
}

void duet__report_write_table(FILE *stream, const struct duet__report *report)
{
    if (report->interrupted)
        put_interrupted(stream, report);
    if (report->series_count == 0)
        return;
    put_head(stream, report);
    put_table(stream, report);
    if (duet__request_nodes(report->request) > 1)
        putc('\n', stream);
    put_nodes(stream, report);
    put_bounds(stream, report);
    put_interval(stream, report);
    for (size_t i = 0; i < report->series_count; i++) {
        g_autofree char *choice = duet__report_choice(&report->series[i]);
        if (choice)
            fprintf(stream, "%s\n", choice);
    }
    if (*report->series->runs->barred)
        duet__put_wrapped(stream, report->series->runs->barred, 0);
    put_verification(stream, report);
}
