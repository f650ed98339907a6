/* SPDX-License-Identifier: Apache-2.0 */
/* The report as a table for a terminal, at most 100 columns where names are not too long. */
#include "report/report.h"

#include <math.h>
#include <string.h>

#include <glib.h>

enum {
    POLICY,
    MAKESPAN,
    INTERVAL,
    UNSCALED,
    RATE,
    TO_DEVICE,
    TO_HOST,
    BETWEEN,
    HITS,
    IDLE,
    PATH,
    AREA,
    WALL,
    RESIDUAL,
    COLUMNS,
};

enum { PAGE = 100 }; /* columns of a terminal that should be enough */

/* Two heading lines: what, and in which unit. */
static const char *const headings[COLUMNS][2] = {
    [POLICY] = {"policy", ""},
    [MAKESPAN] = {"makespan", "s"},
    [INTERVAL] = {"95% of mean", "s"},
    [UNSCALED] = {"at scale 1", "s"},
    [RATE] = {"rate", "GFlop/s"},
    [TO_DEVICE] = {"to GPU", "GB"},
    [TO_HOST] = {"to host", "GB"},
    [BETWEEN] = {"GPU-GPU", "GB"},
    [HITS] = {"hits", "%"},
    [IDLE] = {"idle", "%"},
    [PATH] = {"path", "%"},
    [AREA] = {"area", "%"},
    [WALL] = {"wall", "s"},
    [RESIDUAL] = {"residual", "scaled"},
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

/* Factor of time of a paced emulation, else 1. */
static double scale_of(const struct duet_report *report)
{
    const struct duet_report_real *real = report->real;

    return real && real->emulation == DUET_EMULATION_PACED ? real->scale : 1;
}

static char *gigabytes(uint64_t bytes, const struct digits *digits)
{
    return g_strdup_printf("%.*f", digits->bytes, (double)bytes / 1e9);
}

/* A bound by the makespan; one of 0 is not known. */
static char *bound(double bound_s, double makespan_s)
{
    return percent(makespan_s > 0 && bound_s > 0 ? bound_s / makespan_s : NAN);
}

/* Fills one row; the caller frees the cells. */
static void fill_row(const struct duet_report *report, const struct duet_policy_runs *policy,
                     const struct duet_policy_summary *summary, const struct digits *digits,
                     char **cells)
{
    double makespan = summary->makespan_s, unscaled = makespan / scale_of(report);
    int places = digits->makespan;

    cells[POLICY] = g_strdup(policy->policy);
    cells[MAKESPAN] = g_strdup_printf("%.*f", places, makespan);
    cells[INTERVAL] = policy->run_count > 1
                          ? g_strdup_printf("%.*f-%.*f", places, summary->ci95_low_s, places,
                                            summary->ci95_high_s)
                          : g_strdup("");
    cells[UNSCALED] = g_strdup_printf("%.*f", digits_of(unscaled), unscaled);
    cells[RATE] = isnan(summary->gflops) ? g_strdup("-")
                                         : g_strdup_printf("%.*f", digits->rate, summary->gflops);
    cells[TO_DEVICE] = gigabytes(summary->bytes_to_device, digits);
    cells[TO_HOST] = gigabytes(summary->bytes_to_host, digits);
    cells[BETWEEN] = gigabytes(summary->bytes_between, digits);
    cells[HITS] = percent(summary->hit_ratio);
    cells[IDLE] = percent(summary->idle_share);
    cells[PATH] = bound(summary->critical_path_s, makespan);
    cells[AREA] = bound(summary->area_s, makespan);
    cells[WALL] = g_strdup_printf("%.3f", summary->wall_s);
    cells[RESIDUAL] = g_strdup_printf("%.3g", summary->residual);
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
        shown[column] = column != INTERVAL;
    shown[WALL] = report->show_wall;
    shown[UNSCALED] = scale_of(report) < 1 || scale_of(report) > 1;
    shown[RESIDUAL] = report->real && report->real->formula;
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
        fill_row(report, &report->policies[i], &summaries[i], &digits, cells + i * COLUMNS);
    put_rows(stream, cells, count, shown);
    for (size_t i = 0; i < count * COLUMNS; i++)
        g_free(cells[i]);
    g_free(cells);
}

/* How many measured runs there are of each policy, when not all were made. */
static void put_interrupted(FILE *stream, const struct duet_report *report)
{
    fprintf(stream, "interrupted: of %zu runs a policy,", report->real->reps);
    for (size_t i = 0; i < report->policy_count; i++)
        fprintf(stream, "%s %s has %zu", i ? "," : "", report->policies[i].policy,
                report->policies[i].run_count);
    fputs(report->policy_count ? "\n" : " none is finished\n", stream);
}

static void put_real_head(FILE *stream, const struct duet_report_real *real)
{
    fprintf(stream, ", %zu run%s a policy after %zu warm-up%s, %u core%s", real->reps,
            real->reps == 1 ? "" : "s", real->warmups, real->warmups == 1 ? "" : "s", real->cores,
            real->cores == 1 ? "" : "s");
    if (real->lose)
        fprintf(stream, "\nlost on purpose: %s", real->lose);
}

static void put_head(FILE *stream, const struct duet_report *report)
{
    char *resources = duet_report_resources(report->machine);
    char *problem = duet_report_problem(report), *place = duet_report_place(report);
    size_t runs = report->policies[0].run_count;

    fprintf(stream, "%s on %s: %s\n%s", report->real ? "run" : report->world, place, resources,
            problem);
    if (report->real)
        put_real_head(stream, report->real);
    else if (runs > 1)
        fprintf(stream, ", %zu runs a policy", runs);
    fputs("\n\n", stream);
    g_free(place);
    g_free(resources);
    g_free(problem);
}

static void put_bound(FILE *stream, const char *name, double bound_s, const char *after)
{
    if (bound_s > 0)
        fprintf(stream, "%s %.*f s%s", name, digits_of(bound_s), bound_s, after);
    else
        fprintf(stream, "%s not known%s", name, after);
}

static void put_foot(FILE *stream, const struct duet_report *report,
                     const struct duet_policy_summary *summary)
{
    /* measured times are each policy's own */
    if (report->real && report->policy_count > 1)
        fprintf(stream, "\nlower bounds of %s: ", report->policies[0].policy);
    else
        fputs("\nlower bounds: ", stream);
    put_bound(stream, "critical path", summary->critical_path_s, ", ");
    put_bound(stream, "area", summary->area_s, " (path, area: their share of the makespan)\n");
    if (report->real)
        fprintf(stream, "by the mean times %s\n",
                report->real->emulation == DUET_EMULATION_PACED ? "of the platform"
                                                                : "measured in these runs");
}

static void put_verification(FILE *stream, const struct duet_report *report,
                             const struct duet_policy_summary *summaries)
{
    size_t runs = 0, failed = 0;

    for (size_t i = 0; i < report->policy_count; i++) {
        runs += report->policies[i].run_count;
        failed += summaries[i].failed;
    }
    fprintf(stream, "verification: residual %s, to be below %g: ", report->real->formula,
            report->real->threshold);
    if (failed)
        fprintf(stream, "FAILED in %zu of %zu runs\n", failed, runs);
    else
        fprintf(stream, "passed in %s%zu run%s\n", runs > 1 ? "all " : "", runs,
                runs > 1 ? "s" : "");
}

int duet_report_write_table(FILE *stream, const struct duet_report *report,
                            struct duet_message *message)
{
    size_t count = report->policy_count;
    struct duet_policy_summary *summaries = g_new0(struct duet_policy_summary, count + 1);
    int result = 0;

    for (size_t i = 0; i < count && !result; i++)
        result = duet_report_summarise(report, &report->policies[i], &summaries[i], message);
    if (!result && report->real && report->real->interrupted)
        put_interrupted(stream, report);
    if (!result && count > 0) {
        put_head(stream, report);
        put_table(stream, report, summaries);
        put_foot(stream, report, &summaries[0]);
        if (report->real && report->real->formula)
            put_verification(stream, report, summaries);
    }
    g_free(summaries);
    return result;
}
