/* SPDX-License-Identifier: Apache-2.0 */
/* The report for programs: JSON (schema 1) and CSV. */
#include "report/report.h"

#include <math.h>

#include <glib.h>

#include "platforms/json.h"
#include "report/csv.h"
#include "report/figures.h"

enum { RUN = 5, PART = 6 }; /* columns from which on lines of a run, and of what is in it, begin */

static void put_problem(struct duet__json_writer *json, const struct duet_report *report,
                        const struct duet_series *series)
{
    const struct duet_request *request = report->request;
    const char precision[] = {request->problem.precision, 0};
    g_autofree char *settings = duet_report_settings(report);

    duet__json_put_string(json, "world", duet_report_world(report));
    duet__json_put_string(json, "workload", request->workload->name);
    duet__json_put_integer(json, "n", request->problem.n);
    duet__json_put_integer(json, "tile", request->problem.tile);
    duet__json_put_string(json, "precision", precision);
    duet__json_put_string(json, "settings", settings);
    duet__json_break(json, RUN);
    duet__json_put_string(json, "platform", request->platform_name);
    duet__json_put_integer(json, "cpus", duet_report_cpus(&request->machine));
    duet__json_put_integer(json, "gpus", duet_report_gpus(&request->machine));
    duet__json_put_string(json, "policy", series->policy);
    duet__json_put_boolean(json, "set_arch", request->config.set_arch);
}

static void put_makespan(struct duet__json_writer *json, const struct duet_series *series,
                         const struct duet_policy_summary *summary)
{
    duet__json_break(json, RUN);
    duet__json_begin(json, "makespan_s", '{');
    duet__json_put_number(json, "median", summary->makespan_s);
    duet__json_put_number(json, "mean", summary->mean_s);
    duet__json_put_number(json, "ci95_low", summary->ci95_low_s);
    duet__json_put_number(json, "ci95_high", summary->ci95_high_s);
    duet__json_break(json, PART);
    duet__json_begin(json, "values", '[');
    for (size_t i = 0; i < series->count; i++)
        duet__json_put_number(json, NULL, series->runs[i].stats.makespan_s);
    duet__json_end(json, ']');
    duet__json_end(json, '}');
}

static void put_median(struct duet__json_writer *json, const struct duet__figure *figure,
                       const struct duet_report *report, const struct duet_series *series)
{
    double median;

    if (figure->of_arch) {
        duet__json_begin(json, figure->key, '{');
        for (int arch = 0; (arch = duet__figure_column(figure, report, arch)) >= 0; arch++)
            duet__json_put_number(json, report->request->machine.archs[arch].name,
                                  duet__figure_median(figure, report, series, (unsigned)arch));
        duet__json_end(json, '}');
        return;
    }
    median = duet__figure_median(figure, report, series, 0);
    if (figure->counts)
        duet__json_put_integer(json, figure->key, (uint64_t)llround(median));
    else
        duet__json_put_number(json, figure->key,
                              !figure->known || figure->known(report) ? median : NAN);
}

static void put_figures(struct duet__json_writer *json, const struct duet_report *report,
                        const struct duet_series *series, const struct duet_policy_summary *summary)
{
    for (size_t i = 0; i < DUET__FIGURES; i++) {
        const struct duet__figure *figure = &duet__figures[i];

        if (i == DUET__MAKESPAN)
            put_makespan(json, series, summary);
        if (!figure->key)
            continue;
        if (figure->line)
            duet__json_break(json, RUN);
        if (figure->group && g_strcmp0(figure->group, duet__figures[i - 1].group) != 0)
            duet__json_begin(json, figure->group, '{');
        put_median(json, figure, report, series);
        if (figure->group && g_strcmp0(figure->group, duet__figures[i + 1].group) != 0)
            duet__json_end(json, '}');
    }
}

/* What only runs on this machine have. */
static void put_real(struct duet__json_writer *json, const struct duet_report *report)
{
    const struct duet_request *request = report->request;
    bool paced = duet_request_paced(request);

    duet__json_break(json, RUN);
    if (!request->config.emulate) {
        duet__json_put_string(json, "emulation", NULL);
    } else {
        duet__json_begin(json, "emulation", '{');
        duet__json_put_string(json, "kind", paced ? "paced" : "free");
        if (paced)
            duet__json_put_number(json, "scale", duet_report_scale(report));
        duet__json_end(json, '}');
    }
    duet__json_put_string(json, "lose", request->config.lose);
    duet__json_break(json, RUN);
    duet__json_put_integer(json, "cores", report->cores);
    duet__json_put_integer(json, "warmups", request->warmups);
    duet__json_put_integer(json, "reps_wanted", request->reps);
    duet__json_put_string(json, "bounds_from", paced ? "platform" : "measured");
}

static void put_verification(struct duet__json_writer *json, const struct duet_series *series,
                             const struct duet_policy_summary *summary)
{
    const struct duet_verdict *verdict = &series->runs[0].verdict;

    duet__json_break(json, RUN);
    if (!verdict->formula) {
        duet__json_put_string(json, "verification", NULL);
        return;
    }
    duet__json_begin(json, "verification", '{');
    duet__json_put_string(json, "formula", verdict->formula);
    duet__json_put_number(json, "threshold", verdict->threshold);
    duet__json_put_boolean(json, "passed", !summary->failed);
    duet__json_break(json, PART);
    duet__json_begin(json, "residuals", '[');
    for (size_t i = 0; i < series->count; i++)
        duet__json_put_number(json, NULL, series->runs[i].verdict.residual);
    duet__json_end(json, ']');
    duet__json_end(json, '}');
}

static int put_policy(struct duet__json_writer *json, const struct duet_report *report,
                      const struct duet_series *series, struct duet_message *message)
{
    struct duet_policy_summary summary;
    int result = duet_report_summarise(series, &summary, message);

    if (result)
        return result;
    duet__json_break(json, RUN - 1);
    duet__json_begin(json, NULL, '{');
    put_problem(json, report, series);
    put_figures(json, report, series, &summary);
    if (duet_report_simulated(report)) {
        duet__json_put_string(json, "without", report->request->config.without);
    } else {
        put_real(json, report);
        put_verification(json, series, &summary);
    }
    duet__json_end(json, '}');
    return 0;
}

int duet_report_write_json(FILE *stream, const struct duet_report *report,
                           struct duet_message *message)
{
    struct duet__json_writer json = {.stream = stream};
    int result = 0;

    duet__json_begin(&json, NULL, '{');
    duet__json_put_integer(&json, "schema", 1);
    duet__json_break(&json, 1);
    duet__json_put_string(&json, "command", report->command);
    duet__json_break(&json, 1);
    if (report->interrupted || !duet_report_simulated(report)) {
        duet__json_put_boolean(&json, "interrupted", report->interrupted);
        duet__json_break(&json, 1);
    }
    duet__json_begin(&json, "runs", '[');
    for (size_t i = 0; i < report->series_count && !result; i++)
        result = put_policy(&json, report, &report->series[i], message);
    duet__json_break(&json, 1);
    duet__json_end(&json, ']');
    duet__json_end(&json, '}');
    putc('\n', stream);
    return result;
}

/* ------------------------------------------------------------------------------------------- */
/* CSV                                                                                          */

static void put_cells(struct duet__csv *csv, const struct duet__figure *figure,
                      const struct duet_report *report, const struct duet_run *run)
{
    for (int i = 0; (i = duet__figure_column(figure, report, i)) >= 0; i++) {
        char *name =
            g_strconcat(figure->csv, figure->of_arch ? report->request->machine.archs[i].name : "",
                        NULL);
        double value = csv->heading ? 0 : duet__figure(figure, report, run, (unsigned)i);

        if (figure->counts)
            duet__csv_count(csv, name, (uint64_t)value);
        else
            duet__csv_number(csv, name, value);
        g_free(name);
    }
}

static void put_real_cells(struct duet__csv *csv, const struct duet_report *report,
                           const struct duet_run *run)
{
    const struct duet_request *request = report->request;
    const char *emulate = request->config.emulate;
    const struct duet_verdict verdict = run ? run->verdict : (struct duet_verdict){0};
    bool paced = duet_request_paced(request);

    duet__csv_text(csv, "emulation", paced ? "paced" : emulate ? "free" : "");
    duet__csv_number(csv, "scale", paced ? duet_report_scale(report) : NAN);
    duet__csv_text(csv, "lose", request->config.lose);
    duet__csv_count(csv, "cores", report->cores);
    duet__csv_count(csv, "warmups", request->warmups);
    duet__csv_flag(csv, "interrupted", report->interrupted);
    if (verdict.formula && !isfinite(verdict.residual))
        duet__csv_text(csv, "residual", "inf"); /* an empty cell is a run that was not verified */
    else
        duet__csv_number(csv, "residual", verdict.formula ? verdict.residual : NAN);
    duet__csv_number(csv, "threshold", verdict.formula ? verdict.threshold : NAN);
}

/* A line; of the heading without a series and a run. */
static void put_line(struct duet__csv *csv, const struct duet_report *report,
                     const struct duet_series *series, size_t rep)
{
    const struct duet_request *request = report->request;
    const struct duet_run *run = series ? &series->runs[rep] : NULL;
    const char precision[] = {request->problem.precision, 0};

    duet__csv_text(csv, "world", duet_report_world(report));
    duet__csv_text(csv, "workload", request->workload->name);
    duet__csv_count(csv, "n", request->problem.n);
    duet__csv_count(csv, "tile", request->problem.tile);
    duet__csv_text(csv, "precision", precision);
    duet__csv_text(csv, "platform", request->platform_name);
    duet__csv_count(csv, "cpus", duet_report_cpus(&request->machine));
    duet__csv_count(csv, "gpus", duet_report_gpus(&request->machine));
    duet__csv_text(csv, "policy", series ? series->policy : NULL);
    duet__csv_flag(csv, "set_arch", request->config.set_arch);
    duet__csv_count(csv, "rep", rep);
    duet__csv_count(csv, "seed", run ? run->seed : 0);
    for (size_t i = 0; i < DUET__FIGURES; i++) {
        const struct duet__figure *figure = &duet__figures[i];

        if (figure->csv && figure->of && (!figure->known || figure->known(report)))
            put_cells(csv, figure, report, run);
    }
    if (!duet_report_simulated(report))
        put_real_cells(csv, report, run);
    for (size_t i = 0; i < DUET__FIGURES; i++) /* as many as architectures: behind all others */
        if (duet__figures[i].of_arch)
            put_cells(csv, &duet__figures[i], report, run);
    duet__csv_end(csv);
}

int duet_report_write_csv(FILE *stream, const struct duet_report *report,
                          struct duet_message *message)
{
    struct duet__csv csv = {.stream = stream, .heading = true};

    (void)message;
    put_line(&csv, report, NULL, 0);
    for (size_t i = 0; i < report->series_count; i++)
        for (size_t rep = 0; rep < report->series[i].count; rep++)
            put_line(&csv, report, &report->series[i], rep);
    return 0;
}
