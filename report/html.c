/* SPDX-License-Identifier: Apache-2.0 */
/* The HTML page of a report: what stands where. */
#include "report/html.h"

#include <inttypes.h>
#include <math.h>

#include <glib.h>

#include "report/gantt.h"
#include "report/html_parts.h"
#include "report/output.h"

enum { DIGITS = 8 }; /* of the timelines' dates, behind the first */

static void put_lines(FILE *stream, const char *const *lines)
{
    for (; *lines; lines++)
        fputs(*lines, stream);
}

static void put_text(FILE *stream, const char *before, const char *text, const char *after)
{
    fputs(before, stream);
    duet_write_xml_text(stream, text);
    fputs(after, stream);
}

static void put_fact(FILE *stream, const char *name, const char *format, ...) G_GNUC_PRINTF(3, 4);

static void put_fact(FILE *stream, const char *name, const char *format, ...)
{
    va_list args;
    char *text;

    va_start(args, format);
    text = g_strdup_vprintf(format, args);
    va_end(args);
    put_text(stream, "<div><dt>", name, "</dt><dd>");
    put_text(stream, "", text, "</dd></div>\n");
    g_free(text);
}

static void put_real_facts(FILE *stream, const struct duet_report *report)
{
    const struct duet_report_real *real = report->real;
    double worst = 0;
    size_t failed = 0;

    put_fact(stream, "Warm-up runs", "%zu", real->warmups);
    put_fact(stream, "Cores", "%u", real->cores);
    if (real->lose)
        put_fact(stream, "Lost on purpose", "%s", real->lose);
    if (real->interrupted)
        put_fact(stream, "Interrupted", "not all of %zu runs a policy are there", real->reps);
    put_fact(stream, "Bounds from", "%s",
             real->emulation == DUET_EMULATION_PACED ? "the platform's mean times"
                                                     : "the mean times measured");
    for (size_t i = 0; real->formula && i < report->policy_count; i++) {
        for (size_t k = 0; k < report->policies[i].run_count; k++) {
            double residual = report->policies[i].runs[k].residual;

            failed += !duet_report_passes(report, residual);
            worst = fmax(worst, isnan(residual) ? INFINITY : residual);
        }
    }
    if (real->formula)
        put_fact(stream, "Verification", "%s: %s = %.3g at most, to be below %g",
                 failed ? "FAILED" : "passed", real->formula, worst, real->threshold);
}

static void put_facts(FILE *stream, const struct duet_report *report)
{
    const struct duet_policy_runs *first = report->policies;
    char *resources = duet_report_resources(report->machine);

    fputs("<dl>\n", stream);
    put_fact(stream, "Platform", "%s", report->platform);
    put_fact(stream, "Resources", "%s", resources);
    put_fact(stream, "Size", "%" PRIu64 ", tile %" PRIu64, report->n, report->tile);
    put_fact(stream, "Precision", "%s", report->precision == 's' ? "single" : "double");
    put_fact(stream, "Tasks", "%" PRIu64, first->runs[0].stats.tasks);
    put_fact(stream, "Runs a policy", "%zu, seed%s %" PRIu64 "%s", first->run_count,
             first->run_count > 1 && !report->real ? "s from" : "", first->runs[0].seed,
             report->noise ? ", with noise" : "");
    if (report->set_arch)
        put_fact(stream, "Restriction", "set-arch");
    if (report->settings[0])
        put_fact(stream, "Parameters", "%s", report->settings);
    if (report->real)
        put_real_facts(stream, report);
    fputs("</dl>\n", stream);
    g_free(resources);
}

static void put_top(FILE *stream, const struct duet_report *report)
{
    char *place = duet_report_place(report);

    fputs("<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
          "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>",
          stream);
    put_text(stream, "", report->workload, " on ");
    put_text(stream, "", place, "</title>\n<style>\n");
    put_lines(stream, duet__html_style);
    put_text(stream, "</style>\n</head>\n<body>\n<main>\n<header>\n<h1>", report->workload, " on ");
    put_text(stream, "", place, "</h1>\n<p class=\"lead\">");
    put_text(stream, "", report->real ? "run" : report->world, " with duet</p>\n");
    put_facts(stream, report);
    put_text(stream, "<pre>", report->command, "</pre>\n</header>\n");
    g_free(place);
}

/* A number cell: what is sorted by, and what is shown. */
static void put_cell(FILE *stream, double value, double shown, int digits)
{
    fputs("<td data-value=\"", stream);
    if (!isnan(value))
        duet_write_json_number(stream, value);
    fputs("\">", stream);
    if (isnan(value))
        fputs("\xe2\x80\x93", stream);
    else
        duet_write_fixed(stream, shown, digits);
    fputs("</td>", stream);
}

/* Digits after the point that make five significant ones. */
static int digits_of(double value)
{
    return value > 0 ? CLAMP(4 - (int)floor(log10(value)), 0, 9) : 0;
}

static void put_row(FILE *stream, const struct duet_policy_runs *policy,
                    const struct duet_policy_summary *s, bool best, int digits)
{
    double share = s->makespan_s > 0 ? 100 / s->makespan_s : 0;

    put_text(stream, best ? "<tr class=\"best\"><td data-value=\"" : "<tr><td data-value=\"",
             policy->policy, "\">");
    put_text(stream, "", policy->policy, "</td>");
    put_cell(stream, s->makespan_s, s->makespan_s, digits);
    if (!isnan(s->ci95_low_s)) {
        fputs("<td data-value=\"", stream);
        duet_write_json_number(stream, s->ci95_high_s - s->ci95_low_s);
        fputs("\">", stream);
        duet_write_fixed(stream, s->ci95_low_s, digits);
        fputs(" \xe2\x80\x93 ", stream);
        duet_write_fixed(stream, s->ci95_high_s, digits);
        fputs("</td>", stream);
    } else {
        fputs("<td data-value=\"\">\xe2\x80\x93</td>", stream);
    }
    put_cell(stream, s->gflops, s->gflops, 1);
    put_cell(stream, (double)s->bytes_to_device, (double)s->bytes_to_device / 1e9, 3);
    put_cell(stream, (double)s->bytes_to_host, (double)s->bytes_to_host / 1e9, 3);
    put_cell(stream, (double)s->bytes_between, (double)s->bytes_between / 1e9, 3);
    put_cell(stream, s->hit_ratio, s->hit_ratio * 100, 1);
    put_cell(stream, s->idle_share, s->idle_share * 100, 1);
    put_cell(stream, s->critical_path_s * share, s->critical_path_s * share, 1);
    put_cell(stream, s->area_s * share, s->area_s * share, 1);
    fputs("</tr>\n", stream);
}

static void put_table(FILE *stream, const struct duet_report *report,
                      const struct duet_policy_summary *summaries)
{
    static const char *const heads[] = {"policy",
                                        "makespan<br>s",
                                        "95 % interval<br>of the mean, s",
                                        "rate<br>GFlop/s",
                                        "host\xe2\x86\x92GPU<br>GB",
                                        "GPU\xe2\x86\x92host<br>GB",
                                        "GPU\xe2\x86\x92GPU<br>GB",
                                        "cache hits<br>%",
                                        "idle<br>%",
                                        "critical<br>path, %",
                                        "area<br>bound, %"};
    double best = INFINITY, longest = 0;

    for (size_t i = 0; i < report->policy_count; i++) {
        best = fmin(best, summaries[i].makespan_s);
        longest = fmax(longest, summaries[i].makespan_s);
    }
    fputs("<section>\n<h2>Policies</h2>\n<div class=\"scroll\"><table class=\"sortable\">"
          "<thead><tr>",
          stream);
    for (size_t i = 0; i < G_N_ELEMENTS(heads); i++)
        fprintf(stream, "<th><button>%s</button></th>", heads[i]);
    fputs("</tr></thead><tbody>\n", stream);
    for (size_t i = 0; i < report->policy_count; i++)
        put_row(stream, &report->policies[i], &summaries[i],
                report->policy_count > 1 && summaries[i].makespan_s <= best, digits_of(longest));
    fputs("</tbody></table></div>\n<h4>Makespan and lower bounds</h4>\n", stream);
    duet__html_makespans(stream, report, summaries);
    fputs("</section>\n", stream);
}

/* Whether any recorded run has a task of this kernel. */
static bool is_used(const struct duet_report *report, size_t kernel)
{
    for (size_t i = 0; i < report->policy_count; i++) {
        const struct duet_recording *recording = report->policies[i].recording;

        for (size_t k = 0; recording && k < recording->event_count; k++)
            if (recording->events[k].kind == DUET_EVENT_TASK &&
                recording->events[k].kernel == kernel)
                return true;
    }
    return false;
}

static void put_legend(FILE *stream, const struct duet_report *report,
                       const struct duet_recording *recording)
{
    fputs("<ul class=\"legend\">", stream);
    for (size_t i = 0; i < recording->kernel_count; i++) {
        if (!is_used(report, i))
            continue;
        fprintf(stream, "<li><i style=\"background:%s\"></i>", duet_gantt_kernel_colour(i));
        put_text(stream, "", recording->kernels[i], "</li>");
    }
    for (int i = 0; i < DUET_GANTT_COPIES; i++)
        fprintf(stream, "<li><i class=\"thin\" style=\"background:%s\"></i>%s</li>",
                duet_gantt_copy_colour((enum duet_gantt_copy)i),
                duet_gantt_copy_name((enum duet_gantt_copy)i));
    fputs("</ul>\n", stream);
}

static int put_timelines(FILE *stream, const struct duet_report *report,
                         const struct duet_recording *recording, struct duet_message *message)
{
    const struct duet_recording **recordings =
        g_new0(const struct duet_recording *, report->policy_count + 1);
    size_t number = 0;
    int result;

    fputs("<section>\n<h2>Timelines</h2>\n<div class=\"tools\"><span>"
          "<button id=\"zoom-in\">Zoom in</button> <button id=\"zoom-out\">Zoom out</button> "
          "<button id=\"zoom-all\">Whole run</button></span><span class=\"hint\">Drag to move, "
          "double-click or Ctrl + wheel to zoom; all timelines share one time axis. Below a "
          "GPU's kernels: copies in, copies out.</span></div>\n",
          stream);
    put_legend(stream, report, recording);
    for (size_t i = 0; i < report->policy_count; i++) {
        const struct duet_policy_runs *policy = &report->policies[i];

        if (!policy->recording)
            continue;
        put_text(stream, "<figure><figcaption><b>", policy->policy, "</b><span class=\"soft\">");
        duet_write_fixed(stream, policy->recording->makespan_s, 4);
        fprintf(stream, " s, seed %" PRIu64 "</span></figcaption>", policy->runs[0].seed);
        fprintf(stream, "<canvas id=\"timeline-%zu\" tabindex=\"0\" role=\"img\" aria-label=\"",
                number);
        recordings[number++] = policy->recording;
        put_text(stream, "Timeline of ", policy->policy, "\"></canvas></figure>\n");
    }
    fputs("<noscript>The timelines need JavaScript.</noscript>\n</section>\n"
          "<script type=\"application/json\" id=\"timelines\">",
          stream);
    result = duet__html_timelines(stream, recordings, number, DUET_HTML_BARS, DIGITS, message);
    fputs("</script>\n", stream);
    g_free(recordings);
    return result;
}

static void put_direction(FILE *stream, const char *name, uint64_t bytes, uint64_t copies,
                          uint64_t most)
{
    fprintf(stream, "<tr><td>%s</td><td>", name);
    duet_write_fixed(stream, (double)bytes / 1e9, 3);
    fprintf(stream,
            "</td><td>%" PRIu64 "</td><td class=\"wide\"><div class=\"track\">"
            "<div style=\"width:",
            copies);
    duet_write_fixed(stream, most ? (double)bytes / (double)most * 100 : 0, 2);
    fputs("%\"></div></div></td></tr>\n", stream);
}

/* Bytes moved in one direction by any policy's first run at most: the length of the longest bar. */
static uint64_t most_bytes(const struct duet_report *report)
{
    uint64_t most = 0;

    for (size_t i = 0; i < report->policy_count; i++) {
        const struct duet_stats *stats = &report->policies[i].runs[0].stats;

        most = MAX(most, stats->bytes_to_device);
        most = MAX(most, stats->bytes_to_host);
        most = MAX(most, stats->bytes_between);
    }
    return most;
}

static void put_details(FILE *stream, const struct duet_report *report,
                        const struct duet_policy_runs *policy)
{
    const struct duet_stats *stats = &policy->runs[0].stats;
    uint64_t most = most_bytes(report);

    put_text(stream, "<section>\n<h3>", policy->policy, "</h3>\n<div class=\"columns\"><div>\n");
    fputs("<h4>Kernels</h4>\n", stream);
    duet__html_kernels(stream, policy->recording);
    fputs("<h4>Bytes moved</h4>\n<div class=\"scroll\"><table><thead><tr><th>direction</th>"
          "<th>GB</th><th>copies</th><th></th></tr></thead><tbody>\n",
          stream);
    put_direction(stream, "host \xe2\x86\x92 GPU", stats->bytes_to_device, stats->copies_to_device,
                  most);
    put_direction(stream, "GPU \xe2\x86\x92 host", stats->bytes_to_host, stats->copies_to_host,
                  most);
    put_direction(stream, "GPU \xe2\x86\x92 GPU", stats->bytes_between, stats->copies_between,
                  most);
    fprintf(stream,
            "</tbody></table></div>\n<p class=\"soft\">%" PRIu64 " evictions, %" PRIu64
            " of them with a write-back; %" PRIu64 " steals in %" PRIu64 " attempts</p>\n"
            "</div><div>\n<h4>Workers: share of the makespan spent in kernels</h4>\n",
            stats->evictions, stats->write_backs, stats->steals, stats->steal_attempts);
    duet__html_workers(stream, policy->recording);
    fputs("</div></div>\n</section>\n", stream);
}

static int put_recorded(FILE *stream, const struct duet_report *report,
                        struct duet_message *message)
{
    const struct duet_recording *first = NULL;
    int result;

    for (size_t i = report->policy_count; i-- > 0;)
        if (report->policies[i].recording)
            first = report->policies[i].recording;
    if (!first)
        return 0;
    result = put_timelines(stream, report, first, message);
    for (size_t i = 0; i < report->policy_count; i++)
        if (report->policies[i].recording)
            put_details(stream, report, &report->policies[i]);
    return result;
}

int duet_html_write(FILE *stream, const struct duet_report *report, struct duet_message *message)
{
    struct duet_policy_summary *summaries;
    int result = 0;

    if (report->policy_count == 0)
        return duet_fail(message, DUET_EINVAL, "no policy to report");
    summaries = g_new0(struct duet_policy_summary, report->policy_count);
    for (size_t i = 0; i < report->policy_count && !result; i++)
        result = duet_report_summarise(report, &report->policies[i], &summaries[i], message);
    if (!result) {
        put_top(stream, report);
        put_table(stream, report, summaries);
        result = put_recorded(stream, report, message);
        fputs("<footer>All on this page is in this one file.</footer>\n</main>\n"
              "<div id=\"tip\"></div>\n<script>\n",
              stream);
        put_lines(stream, duet__html_script_tables);
        put_lines(stream, duet__html_script_timelines);
        put_lines(stream, duet__html_script_end);
        fputs("</script>\n</body>\n</html>\n", stream);
    }
    g_free(summaries);
    return result;
}
