/* SPDX-License-Identifier: Apache-2.0 */
/* The report as a table for a terminal, at most 100 columns where names are not too long. */
#include "validate/report.h"

#include <math.h>
#include <string.h>

#include <glib.h>

enum {
    POLICY,
    MAKESPAN,
    INTERVAL,
    RATE,
    TO_DEVICE,
    TO_HOST,
    BETWEEN,
    HITS,
    IDLE,
    PATH,
    AREA,
    WALL,
    COLUMNS,
};

enum { PAGE = 100 }; /* columns of a terminal that should be enough */

/* Two heading lines: what, and in which unit. */
static const char *const headings[COLUMNS][2] = {
    [POLICY] = {"policy", ""},
    [MAKESPAN] = {"makespan", "s"},
    [INTERVAL] = {"95% of mean", "s"},
    [RATE] = {"rate", "GFlop/s"},
    [TO_DEVICE] = {"to GPU", "GB"},
    [TO_HOST] = {"to host", "GB"},
    [BETWEEN] = {"GPU-GPU", "GB"},
    [HITS] = {"hits", "%"},
    [IDLE] = {"idle", "%"},
    [PATH] = {"path", "%"},
    [AREA] = {"area", "%"},
    [WALL] = {"wall", "s"},
};

/* Digits after the point that make five significant ones of `value`. */
static int digits_of(double value)
{
    int digits = value > 0 ? 4 - (int)floor(log10(value)) : 0;

    return CLAMP(digits, 0, 9);
}

static char *percent(double share)
{
    return isfinite(share) ? g_strdup_printf("%.1f", share * 100) : g_strdup("-");
}

/* Digits after the point, the same in all rows of a column. */
struct digits {
    int makespan, rate, bytes;
};

static char *gigabytes(uint64_t bytes, const struct digits *digits)
{
    return g_strdup_printf("%.*f", digits->bytes, (double)bytes / 1e9);
}

/* Fills one row; the caller frees the cells. */
static void fill_row(const struct duet_policy_runs *policy,
                     const struct duet_policy_summary *summary, const struct digits *digits,
                     char **cells)
{
    double makespan = summary->makespan_s;
    int places = digits->makespan;

    cells[POLICY] = g_strdup(policy->policy);
    cells[MAKESPAN] = g_strdup_printf("%.*f", places, makespan);
    cells[INTERVAL] = policy->run_count > 1
                          ? g_strdup_printf("%.*f-%.*f", places, summary->ci95_low_s, places,
                                            summary->ci95_high_s)
                          : g_strdup("");
    cells[RATE] = g_strdup_printf("%.*f", digits->rate, summary->gflops);
    cells[TO_DEVICE] = gigabytes(summary->bytes_to_device, digits);
    cells[TO_HOST] = gigabytes(summary->bytes_to_host, digits);
    cells[BETWEEN] = gigabytes(summary->bytes_between, digits);
    cells[HITS] = percent(summary->hit_ratio);
    cells[IDLE] = percent(summary->idle_share);
    cells[PATH] = percent(makespan > 0 ? summary->critical_path_s / makespan : NAN);
    cells[AREA] = percent(makespan > 0 ? summary->area_s / makespan : NAN);
    cells[WALL] = g_strdup_printf("%.3f", summary->wall_s);
}

static void put_rows(FILE *stream, char **cells, size_t rows, const bool *shown)
{
    size_t widths[COLUMNS] = {0}, whole = 0;
    const char *space;

    for (int column = 0; column < COLUMNS; column++) {
        for (int line = 0; line < 2; line++)
            widths[column] = MAX(widths[column], strlen(headings[column][line]));
        for (size_t row = 0; row < rows; row++)
            widths[column] = MAX(widths[column], strlen(cells[row * COLUMNS + (size_t)column]));
        if (shown[column])
            whole += widths[column] + (column ? 2 : 0);
    }
    space = whole > PAGE ? " " : "  ";
    for (size_t row = 0; row < rows + 2; row++) {
        for (int column = 0; column < COLUMNS; column++) {
            const char *text =
                row < 2 ? headings[column][row] : cells[(row - 2) * COLUMNS + (size_t)column];

            if (column == POLICY)
                fprintf(stream, "%-*s", (int)widths[column], text);
            else if (shown[column])
                fprintf(stream, "%s%*s", space, (int)widths[column], text);
        }
        putc('\n', stream);
    }
}

/* Rows of all policies, from their summaries. */
static void put_table(FILE *stream, const struct duet_report *report,
                      const struct duet_policy_summary *summaries)
{
    size_t count = report->policy_count;
    char **cells = g_new0(char *, count *COLUMNS + 1);
    double makespan = 0, rate = 0, bytes = 0;
    bool shown[COLUMNS];
    struct digits digits;

    for (int column = 0; column < COLUMNS; column++)
        shown[column] = column != INTERVAL && column != WALL;
    shown[WALL] = report->show_wall;
    for (size_t i = 0; i < count; i++) {
        const struct duet_policy_summary *s = &summaries[i];

        makespan = fmax(makespan, s->makespan_s);
        rate = fmax(rate, s->gflops);
        bytes = fmax(bytes, (double)MAX(s->bytes_to_device, s->bytes_to_host));
        bytes = fmax(bytes, (double)s->bytes_between);
        shown[INTERVAL] = shown[INTERVAL] || report->policies[i].run_count > 1;
    }
    digits = (struct digits){.makespan = digits_of(makespan),
                             .rate = MIN(digits_of(rate), 3),
                             .bytes = MIN(digits_of(bytes / 1e9), 6)};
    for (size_t i = 0; i < count; i++)
        fill_row(&report->policies[i], &summaries[i], &digits, cells + i * COLUMNS);
    put_rows(stream, cells, count, shown);
    for (size_t i = 0; i < count * COLUMNS; i++)
        g_free(cells[i]);
    g_free(cells);
}

static void put_head(FILE *stream, const struct duet_report *report)
{
    char *resources = duet_report_resources(report->machine);
    char *problem = duet_report_problem(report);
    size_t runs = report->policies[0].run_count;

    fprintf(stream, "%s on %s: %s\n%s", report->world, report->platform, resources, problem);
    if (runs > 1)
        fprintf(stream, ", %zu runs a policy", runs);
    fputs("\n\n", stream);
    g_free(resources);
    g_free(problem);
}

static void put_foot(FILE *stream, const struct duet_policy_summary *summary)
{
    fprintf(stream,
            "\nlower bounds: critical path %.*f s, area %.*f s (path, area: their share of the "
            "makespan)\n",
            digits_of(summary->critical_path_s), summary->critical_path_s,
            digits_of(summary->area_s), summary->area_s);
}

int duet_report_write_table(FILE *stream, const struct duet_report *report,
                            struct duet_message *message)
{
    size_t count = report->policy_count;
    struct duet_policy_summary *summaries = g_new0(struct duet_policy_summary, count + 1);
    int result = 0;

    for (size_t i = 0; i < count && !result; i++)
        result = duet_report_summarise(report, &report->policies[i], &summaries[i], message);
    if (!result && count > 0) {
        put_head(stream, report);
        put_table(stream, report, summaries);
        put_foot(stream, &summaries[0]);
    }
    g_free(summaries);
    return result;
}
