/* SPDX-License-Identifier: Apache-2.0 */
/* The report as a table for a terminal, at most 100 columns where names are not too long. */
#include "report/report.h"

#include <math.h>

#include <glib.h>

#include "report/figures.h"
#include "report/table.h"

/* Digits after the point, the same in all rows of a column. */
struct digits {
    int makespan, rate, bytes;
};

static void add_share(struct duet__table *table, double share)
{
    if (isfinite(share))
        duet__table_print(table, "%.1f", share * 100);
    else
        duet__table_say(table, "-");
}

static void add_interval(struct duet__table *table, const struct duet_policy_summary *summary,
                         int digits)
{
    if (isnan(summary->ci95_low_s))
        duet__table_say(table, "-");
    else
        duet__table_print(table, "%.*f-%.*f", digits, summary->ci95_low_s, digits,
                          summary->ci95_high_s);
}

/* Adds the cell of a figure that is `value`, its median over the runs. */
static void add_cell(struct duet__table *table, enum duet__unit unit, double value,
                     const struct duet_policy_summary *summary, const struct digits *digits)
{
    switch (unit) {
    case DUET__SECONDS:
        duet__table_print(table, "%.*f", digits->makespan, value);
        break;
    case DUET__OWN_SECONDS:
        duet__table_print(table, "%.*f", duet__decimals(value, 5), value);
        break;
    case DUET__WALL:
        duet__table_print(table, "%.3f", value);
        break;
    case DUET__INTERVAL:
        add_interval(table, summary, digits->makespan);
        break;
    case DUET__RATE:
        if (isnan(value))
            duet__table_say(table, "-");
        else
            duet__table_print(table, "%.*f", digits->rate, value);
        break;
    case DUET__BYTES:
        duet__table_print(table, "%.*f", digits->bytes, round(value) / 1e9);
        break;
    case DUET__SHARE:
        add_share(table, value);
        break;
    case DUET__BOUND:
        add_share(table, value > 0 && summary->makespan_s > 0 ? value / summary->makespan_s : NAN);
        break;
    case DUET__RESIDUAL:
        duet__table_print(table, "%.3g", summary->residual);
        break;
    case DUET__NOTHING:
        break;
    }
}

/* The first column of a figure from number `column` on that the table has, -1: none. */
static int next_column(const struct duet__figure *figure, const struct duet_report *report,
                       int column)
{
    if (figure->unit == DUET__NOTHING || (figure->tabled && !figure->tabled(report)))
        return -1;
    return duet__figure_column(figure, report, column);
}

/* The first or second line of the headings. */
static void add_heads(struct duet__table *table, const struct duet_report *report, int line)
{
    duet__table_say(table, line ? "" : "policy");
    for (size_t i = 0; i < DUET__FIGURES; i++) {
        const struct duet__figure *figure = &duet__figures[i];

        for (int k = 0; (k = next_column(figure, report, k)) >= 0; k++)
            duet__table_say(table, line && figure->of_arch ? report->request->machine.archs[k].name
                                                           : figure->heads[line]);
    }
}

static void add_row(struct duet__table *table, const struct duet_report *report,
                    const struct duet_series *series, const struct duet_policy_summary *summary,
                    const struct digits *digits)
{
    duet__table_say(table, series->policy);
    for (size_t i = 0; i < DUET__FIGURES; i++) {
        const struct duet__figure *figure = &duet__figures[i];
        bool has = figure->of || figure->of_arch;

        for (int k = 0; (k = next_column(figure, report, k)) >= 0; k++)
            add_cell(table, figure->unit,
                     has ? duet__figure_median(figure, report, series, (unsigned)k) : NAN, summary,
                     digits);
    }
}

/* The largest of the policies' medians of a figure. */
static double largest(const struct duet_report *report, unsigned figure)
{
    double most = 0;

    for (size_t i = 0; i < report->series_count; i++)
        most =
            fmax(most, duet__figure_median(&duet__figures[figure], report, &report->series[i], 0));
    return most;
}

static struct digits find_digits(const struct duet_report *report)
{
    double bytes = fmax(fmax(largest(report, DUET__TO_DEVICE), largest(report, DUET__TO_HOST)),
                        largest(report, DUET__BETWEEN));

    return (struct digits){.makespan = duet__decimals(largest(report, DUET__MAKESPAN), 5),
                           .rate = MIN(duet__decimals(largest(report, DUET__GFLOPS), 5), 3),
                           .bytes = MIN(duet__decimals(round(bytes) / 1e9, 5), 6)};
}

/* Rows of all policies, from their summaries. */
static void put_table(FILE *stream, const struct duet_report *report,
                      const struct duet_policy_summary *summaries)
{
    struct digits digits = find_digits(report);
    GString *sides = g_string_new("l");
    struct duet__table table;

    for (size_t i = 0; i < DUET__FIGURES; i++)
        for (int k = 0; (k = next_column(&duet__figures[i], report, k)) >= 0; k++)
            g_string_append_c(sides, 'r');
    duet__table_init(&table, sides->str);
    table.page = DUET__PAGE;
    add_heads(&table, report, 0);
    add_heads(&table, report, 1);
    for (size_t i = 0; i < report->series_count; i++)
        add_row(&table, report, &report->series[i], &summaries[i], &digits);
    duet__table_put(&table, stream, 0);
    g_string_free(sides, TRUE);
}

/* How many measured runs there are of each policy, when not all were made. */
static void put_interrupted(FILE *stream, const struct duet_report *report)
{
    fprintf(stream, "interrupted: of %zu run%s a policy,", report->request->reps,
            report->request->reps == 1 ? "" : "s");
    for (size_t i = 0; i < report->series_count; i++)
        fprintf(stream, "%s %s has %zu", i ? "," : "", report->series[i].policy,
                report->series[i].count);
    fputs(report->series_count ? "\n" : " none is finished\n", stream);
}

/* ", 5 runs a policy", or "3 to 5" where not all have as many. */
static void put_counts(FILE *stream, const struct duet_report *report)
{
    size_t least = report->series[0].count, most = least;

    for (size_t i = 1; i < report->series_count; i++) {
        least = MIN(least, report->series[i].count);
        most = MAX(most, report->series[i].count);
    }
    if (least < most)
        fprintf(stream, ", %zu to %zu runs a policy", least, most);
    else if (most > 1 || !duet_report_simulated(report))
        fprintf(stream, ", %zu run%s a policy", most, most == 1 ? "" : "s");
}

static void put_head(FILE *stream, const struct duet_report *report)
{
    const struct duet_request *request = report->request;
    g_autofree char *resources = duet_report_resources(&request->machine);
    g_autofree char *problem = duet_report_problem(report), *place = duet_report_place(report);
    bool simulated = duet_report_simulated(report);

    fprintf(stream, "%s on %s: %s\n%s", simulated ? "simulated" : "run", place, resources, problem);
    put_counts(stream, report);
    if (!simulated)
        fprintf(stream, " after %zu warm-up%s, %u core%s", request->warmups,
                request->warmups == 1 ? "" : "s", report->cores, report->cores == 1 ? "" : "s");
    if (request->config.lose)
        fprintf(stream, "\nlost on purpose: %s", request->config.lose);
    fputs("\n\n", stream);
}

static void put_bound(FILE *stream, const char *name, double bound_s, const char *after)
{
    if (bound_s > 0)
        fprintf(stream, "%s %.*f s%s", name, duet__decimals(bound_s, 5), bound_s, after);
    else
        fprintf(stream, "%s not known%s", name, after);
}

static void put_foot(FILE *stream, const struct duet_report *report)
{
    const struct duet_series *first = &report->series[0];

    /* measured times are each policy's own */
    if (!duet_report_simulated(report) && report->series_count > 1)
        fprintf(stream, "\nlower bounds of %s: ", first->policy);
    else
        fputs("\nlower bounds: ", stream);
    put_bound(stream, "critical path",
              duet__figure_median(&duet__figures[DUET__PATH], report, first, 0), ", ");
    put_bound(stream, "area", duet__figure_median(&duet__figures[DUET__AREA], report, first, 0),
              " (path, area: their share of the makespan)\n");
    if (!duet_report_simulated(report))
        fprintf(stream, "by the mean times %s\n",
                duet_request_paced(report->request) ? "of the platform" : "measured in these runs");
}

static void put_verification(FILE *stream, const struct duet_report *report,
                             const struct duet_policy_summary *summaries)
{
    const struct duet_verdict verdict = duet_report_verdict(report);
    size_t runs = 0, failed = 0;

    for (size_t i = 0; i < report->series_count; i++) {
        runs += report->series[i].count;
        failed += summaries[i].failed;
    }
    fprintf(stream, "verification: residual %s, to be below %g: ", verdict.formula,
            verdict.threshold);
    if (failed)
        fprintf(stream, "FAILED in %zu of %zu runs\n", failed, runs);
    else
        fprintf(stream, "passed in %s%zu run%s\n", runs > 1 ? "all " : "", runs,
                runs > 1 ? "s" : "");
}

int duet_report_write_table(FILE *stream, const struct duet_report *report,
                            struct duet_message *message)
{
    size_t count = report->series_count;
    struct duet_policy_summary *summaries = g_new0(struct duet_policy_summary, count + 1);
    int result = 0;

    for (size_t i = 0; i < count && !result; i++)
        result = duet_report_summarise(&report->series[i], &summaries[i], message);
    if (!result && report->interrupted)
        put_interrupted(stream, report);
    if (!result && count > 0) {
        put_head(stream, report);
        put_table(stream, report, summaries);
        put_foot(stream, report);
        if (duet_report_verdict(report).formula)
            put_verification(stream, report, summaries);
    }
    g_free(summaries);
    return result;
}
