/* SPDX-License-Identifier: Apache-2.0 */
/* The report for programs: JSON (schema 1) and CSV. */
#include <inttypes.h>
#include <math.h>

#include <glib.h>

#include "base/fields.h"
#include "report/metrics.h"
#include "runs/interval.h"
#include "trace/trace.h"

/* Writes the problem; in CSV without its parameters. */
static void put_problem(struct duet__json_writer *writer, const struct duet__report *report,
                        const char *policy)
{
    const struct duet__request *request = report->request;
    const char precision[] = {request->problem.precision, 0};
    g_autofree char *settings = duet__request_facts(request);
    duet__json_print(writer,
                     "world: %s, workload: %s, n: %" PRIu64 ", tile: %" PRIu64 ", precision: %s",
                     duet__report_world(report), request->workload->name, request->problem.n,
                     request->problem.tile, precision);
    if (!writer->csv)
        duet__json_put_string(writer, "settings", settings);
    if (writer->depth > 1) /* a series of runs has several lines of JSON */
        duet__json_break(writer, 5);
    duet__json_print(writer, "platform: %s, cpus: %u, gpus: %u, policy: %s, set_arch: %d",
                     request->platform_name, duet__report_cpus(&request->machine),
                     duet__report_gpus(&request->machine), policy, request->config.set_arch);
    if (!writer->csv)
        duet__json_print(writer, "hold: %d, priorities: %s, estimated: %s", request->config.hold,
                         duet__request_priorities(request), request->estimated);
}

static void put_makespan(struct duet__json_writer *json, const struct duet__series *series,
                         const struct duet__policy_summary *summary,
                         const struct duet_config *config)
{
    double low_s = NAN, high_s = NAN;
    if (config->interval)
        duet__interval_find(series, &low_s, &high_s);
    duet__json_print(json,
                     "\n     makespan_s: {median: %g, mean: %g, ci95_low: %g, ci95_high: %g, "
                     "interval: %s, low: %g, high: %g\n      ",
                     summary->makespan_s, summary->mean_s, summary->ci95_low_s,
                     summary->ci95_high_s, config->interval, low_s, high_s);
    duet__values_write(json, "values", DUET__NUMBER, &series->runs->stats.makespan_s, series->count,
                       sizeof *series->runs);
    duet__json_end(json, '}');
}

/* A value of a metric, as a member or a cell. */
static void put_value(struct duet__json_writer *writer, const struct duet__metric *metric,
                      const char *key, double value)
{
    if (metric->counts)
        duet__json_put_integer(writer, key, (uint64_t)llround(value));
    else
        duet__json_put_number(writer, key, value);
}

static void put_median(struct duet__json_writer *json, const struct duet__metric *metric,
                       const struct duet__report *report, const struct duet__series *series)
{
    if (metric->by_arch)
        duet__json_begin(json, metric->key, '{');
    for (int i = 0; (i = duet__metric_next(metric, report, i)) >= 0; i++)
        put_value(json, metric,
                  metric->by_arch ? report->request->machine.archs[i].name : metric->key,
                  !metric->known || metric->known(report)
                      ? duet__metric_median(metric, report, series, i)
                      : NAN);
    if (metric->by_arch)
        duet__json_end(json, '}');
}

static void put_metrics(struct duet__json_writer *json, const struct duet__report *report,
                        const struct duet__series *series,
                        const struct duet__policy_summary *summary)
{
    for (size_t i = 0; i < DUET__METRICS; i++) {
        const struct duet__metric *metric = &duet__metrics[i];
        if (i == DUET__MAKESPAN)
            put_makespan(json, series, summary, &report->request->config);
        if (!metric->key)
            continue;
        if (metric->line)
            duet__json_print(json, "\n     ");
        if (metric->group && g_strcmp0(metric->group, metric[-1].group) != 0)
            duet__json_begin(json, metric->group, '{');
        put_median(json, metric, report, series);
        if (metric->group && g_strcmp0(metric->group, metric[1].group) != 0)
            duet__json_end(json, '}');
    }
}

/* Writes the median of a metric that only the table has otherwise. */
static void put_one(struct duet__json_writer *json, const struct duet__report *report,
                    const struct duet__series *series, const char *key, unsigned metric)
{
    put_value(json, &duet__metrics[metric], key,
              duet__metric_median(&duet__metrics[metric], report, series, 0));
}

/* Writes messages between nodes, and the nodes' differences, if there are several. */
static void write_nodes(struct duet__json_writer *json, const struct duet__report *report,
                        const struct duet__series *series)
{
    const struct duet__request *request = report->request;
    if (duet__request_nodes(request) < 2)
        return;
    duet__json_print(json, "\n     nodes: {count: %u, grid: %s, network: %s",
                     duet__request_nodes(request), request->config.nodes, request->config.network);
    put_one(json, report, series, "messages", DUET__MESSAGES);
    put_one(json, report, series, "bytes", DUET__MESSAGE_BYTES);
    duet__json_begin(json, "idle_share", '{');
    put_one(json, report, series, "least", DUET__NODE_LEAST);
    put_one(json, report, series, "median", DUET__NODE_MEDIAN);
    put_one(json, report, series, "most", DUET__NODE_MOST);
    duet__json_print(json, "}}");
}

/* Writes the choice of a policy that chooses among others in its first run. */
static void put_choice(struct duet__json_writer *json, const struct duet_choice *choice)
{
    if (!*choice->policy)
        return;
    duet__json_print(json, "\n     choice: {");
    duet__fields_write(json, duet__choice_fields, choice, choice);
    duet__json_end(json, '}');
}

/* Writes members that only runs on this machine have. */
static void put_real(struct duet__json_writer *json, const struct duet__report *report,
                     const struct duet__series *series, const struct duet__policy_summary *summary)
{
    const struct duet__request *request = report->request;
    const struct duet__verdict verdict = duet__series_verdict(series);
    bool paced = duet__request_paced(request);
    if (paced)
        duet__json_print(json, "\n     emulation: {kind: %s, scale: %g}", "paced",
                         duet__request_scale(report->request));
    else if (request->config.emulate)
        duet__json_print(json, "\n     emulation: {kind: %s}", "free");
    else
        duet__json_print(json, "\n     emulation: null");
    duet__json_print(json,
                     "lose: %s\n     cores: %u, warmups: %zu, reps_wanted: %zu, bounds_from: %s"
                     "\n     ",
                     request->config.lose, report->cores, request->warmups, request->reps,
                     paced ? "platform" : "measured");
    if (!verdict.formula) {
        duet__json_print(json, "verification: null");
        return;
    }
    duet__json_print(json,
                     "verification: {formula: %s, threshold: %g, passed: %d\n      residuals: [",
                     verdict.formula, verdict.threshold, !summary->failed);
    for (size_t i = 0; i < series->count; i++)
        if (series->runs[i].verdict.formula)
            duet__json_put_number(json, NULL, series->runs[i].verdict.residual);
    duet__json_print(json, "]}");
}

static void put_series(struct duet__json_writer *json, const struct duet__report *report,
                       const struct duet__series *series)
{
    const struct duet__policy_summary summary = duet__report_summarise(series);
    duet__json_print(json, "\n    {");
    put_problem(json, report, series->policy);
    put_metrics(json, report, series, &summary);
    write_nodes(json, report, series);
    put_choice(json, &series->runs[0].choice);
    if (duet__report_simulated(report))
        duet__json_print(json, "without: %s", report->request->config.without);
    else
        put_real(json, report, series, &summary);
    duet__json_end(json, '}');
}

void duet__report_write_json(FILE *stream, const struct duet__report *report)
{
    struct duet__json_writer json = {.stream = stream};
    duet__json_print(&json, "{schema: 1\n command: %s\n ", report->command);
    if (report->interrupted || !duet__report_simulated(report))
        duet__json_print(&json, "interrupted: %d\n ", report->interrupted);
    duet__json_print(&json, "runs: [");
    for (size_t i = 0; i < report->series_count; i++)
        put_series(&json, report, &report->series[i]);
    duet__json_print(&json, "\n ]}");
    putc('\n', stream);
}

/* ------------------------------------------------------------------------------------------- */
/* CSV                                                                                          */

static void put_cells(struct duet__json_writer *csv, const struct duet__metric *metric,
                      const struct duet__report *report, const struct duet__run *run)
{
    for (int i = 0; (i = duet__metric_next(metric, report, i)) >= 0; i++) {
        const char *arch = metric->by_arch ? report->request->machine.archs[i].name : "";
        g_autofree char *name = g_strconcat(metric->csv, arch, NULL);
        put_value(csv, metric, name, duet__metric(metric, report, run, i));
    }
}

static void put_real_cells(struct duet__json_writer *csv, const struct duet__report *report,
                           const struct duet__run *run)
{
    const struct duet__request *request = report->request;
    const char *emulate = request->config.emulate;
    const struct duet__verdict *verdict = &run->verdict;
    bool paced = duet__request_paced(request);
    duet__json_print(csv,
                     "emulation: %s, scale: %g, lose: %s, cores: %u, warmups: %zu, interrupted: %d",
                     paced     ? "paced"
                     : emulate ? "free"
                               : "",
                     paced ? duet__request_scale(report->request) : NAN, request->config.lose,
                     report->cores, request->warmups, report->interrupted);
    if (verdict->formula && !isfinite(verdict->residual))
        duet__json_print(csv, "residual: inf"); /* an empty cell is a run that was not verified */
    else
        duet__json_print(csv, "residual: %g", verdict->formula ? verdict->residual : NAN);
    duet__json_print(csv, "threshold: %g", verdict->formula ? verdict->threshold : NAN);
}

static void put_node_cells(struct duet__json_writer *csv, const struct duet__report *report,
                           const struct duet__run *run)
{
    const struct duet_config *config = &report->request->config;
    const struct duet__over_nodes *over = &run->over;
    const bool several = over->nodes > 1;
    duet__json_print(csv,
                     "nodes: %u, network: %s, messages: %" PRIu64 ", message_bytes: %" PRIu64
                     ", node_idle_least: %g, node_idle_median: %g, node_idle_most: %g",
                     duet__request_nodes(report->request), config->network, over->messages,
                     over->bytes, several ? over->idle_least : NAN,
                     several ? over->idle_median : NAN, several ? over->idle_most : NAN);
}

static void put_line(struct duet__json_writer *csv, const struct duet__report *report,
                     const char *policy, const struct duet__run *run, size_t rep)
{
    put_problem(csv, report, policy);
    duet__json_print(csv, "rep: %zu, seed: %" PRIu64, rep, run->seed);
    for (const struct duet__metric *metric = duet__metrics; metric < duet__metrics + DUET__METRICS;
         metric++)
        if (metric->csv && !metric->by_arch && (!metric->known || metric->known(report)))
            put_cells(csv, metric, report, run);
    if (!duet__report_simulated(report))
        put_real_cells(csv, report, run);
    if (report->request->config.nodes) /* also for one node, as in tables of several */
        put_node_cells(csv, report, run);
    /* last, as there are as many as architectures */
    put_cells(csv, &duet__metrics[DUET__ARCH_IDLE], report, run);
}

void duet__report_write_csv(FILE *stream, const struct duet__report *report)
{
    static const struct duet__run nothing = {0};
    struct duet__json_writer csv = {.stream = stream, .csv = DUET__CSV_HEADING};
    put_line(&csv, report, NULL, &nothing, 0);
    duet__csv_end(&csv);
    for (size_t i = 0; i < report->series_count; i++)
        for (size_t rep = 0; rep < report->series[i].count; rep++) {
            put_line(&csv, report, report->series[i].policy, &report->series[i].runs[rep], rep);
            duet__csv_end(&csv);
        }
}

void duet__report_write_rows(FILE *stream, const struct duet__report *report)
{
    for (size_t i = 0; i < report->series_count; i++)
        for (size_t rep = 0; rep < report->series[i].count; rep++) {
            struct duet__json_writer row = {.stream = stream};
            duet__json_begin(&row, NULL, '{');
            put_line(&row, report, report->series[i].policy, &report->series[i].runs[rep], rep);
            duet__json_end(&row, '}');
            putc('\n', stream);
        }
}
