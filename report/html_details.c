/* SPDX-License-Identifier: Apache-2.0 */
/* The cases of a comparison's page: explanation as bars that add up, and timelines. */
#include "report/html_cases.h"

#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "report/gantt.h"
#include "report/html_parts.h"
#include "report/validation_parts.h"

enum {
    DIGITS = 5,  /* of the timelines' dates, behind the first */
    CAUSES = 9,  /* lines of the explanation of all cases */
    VALUES = 12, /* makespans that are shown of a side */
};

/* ------------------------------------------------------------------------------------------- */
/* Bars                                                                                         */

/* What bars reach, zero included. */
struct reach {
    double low, high;
};

static void extend(struct reach *reach, double value)
{
    reach->low = fmin(reach->low, value);
    reach->high = fmax(reach->high, value);
}

static double percent_of(const struct reach *reach, double value)
{
    return reach->high > reach->low ? (value - reach->low) / (reach->high - reach->low) * 100 : 0;
}

/* A cell with a bar between two values, and a line at zero. */
static void put_bar(FILE *stream, const struct reach *reach, double from, double to, bool whole)
{
    const char *class = whole ? "whole" : to < from ? "less" : "more";

    fputs("<td class=\"flow\"><div><b style=\"left:", stream);
    duet_write_fixed(stream, percent_of(reach, 0), 2);
    fprintf(stream, "%%\"></b><i class=\"%s\" style=\"left:", class);
    duet_write_fixed(stream, percent_of(reach, fmin(from, to)), 2);
    fputs("%;width:", stream);
    duet_write_fixed(stream, percent_of(reach, fmax(from, to)) - percent_of(reach, fmin(from, to)),
                     2);
    fputs("%\"></i></div></td>", stream);
}

static void put_cause(FILE *stream, const struct reach *reach, const char *name, double share)
{
    duet__html_text(stream, "<tr><td>", name, "</td>");
    put_bar(stream, reach, 0, share, false);
    duet__html_own(stream, "<td>", duet__percent_text(share), "</td></tr>\n");
}

void duet__html_causes(FILE *stream, const struct duet_validation *validation,
                       const struct duet_validation_figures *figures)
{
    struct duet__causes causes = duet__causes_of(validation, figures);
    struct reach reach = {0, 0};
    size_t shown = causes.count > CAUSES ? CAUSES - 1 : causes.count;
    double rest = 0;

    if (causes.cases) {
        extend(&reach, causes.whole);
        for (size_t i = 0; i < causes.count; i++) {
            extend(&reach, causes.parts[i].share);
            rest += i < shown ? 0 : causes.parts[i].share;
        }
        extend(&reach, rest);
        fprintf(stream, "<h4>Where the %s comes from: mean of %zu case%s, of the makespan ",
                duet__error_word(validation), causes.cases, causes.cases == 1 ? "" : "s");
        duet__html_text(stream, "", validation->second_name,
                        "</h4>\n<div class=\"scroll\"><table class=\"parts\"><tbody>\n");
        for (size_t i = 0; i < shown; i++)
            put_cause(stream, &reach, causes.parts[i].name, causes.parts[i].share);
        if (shown < causes.count)
            put_cause(stream, &reach, "all others", rest);
        fputs("<tr class=\"sum\"><td>sum</td>", stream);
        put_bar(stream, &reach, 0, causes.whole, true);
        duet__html_own(stream, "<td>", duet__percent_text(causes.whole),
                       "</td></tr>\n</tbody></table></div>\n");
    }
    g_free(causes.parts);
}

/* Seconds in the unit and with the digits of `whole_s`, so that they can be added up. */
static char *part_text(double seconds, double whole_s)
{
    double scale;
    const char *unit = duet_gantt_unit(whole_s, &scale);
    int digits = whole_s > 0 ? CLAMP(4 - (int)floor(log10(whole_s * scale)), 0, 9) : 0;

    return g_strdup_printf("%+.*f %s", digits, seconds * scale, unit);
}

static void put_figures(FILE *stream, double first, double second)
{
    if (fabs(first) > 0 || fabs(second) > 0) {
        duet__html_own(stream, "<td class=\"spare\">", duet__time_text(first, false), "</td>");
        duet__html_own(stream, "<td class=\"spare\">", duet__time_text(second, false), "</td>");
    } else {
        fputs("<td class=\"spare\"></td><td class=\"spare\"></td>", stream);
    }
}

static void put_part(FILE *stream, const struct duet_explanation *explanation,
                     const struct duet_difference *part)
{
    duet__html_own(stream, "<td>", part_text(part->seconds, explanation->second_s), "</td>");
    duet__html_own(stream, "<td>", duet__percent_text(part->seconds / explanation->second_s),
                   "</td>");
    put_figures(stream, part->first, part->second);
    fprintf(stream, "<td class=\"spare\">%s</td></tr>\n",
            part->reason == DUET_REASON_KERNEL ? "a task" : "");
}

/* Each bar begins where the one above it ended, so that the last of them ends at the sum. */
static void put_parts(FILE *stream, const struct duet_validation *validation,
                      const struct duet_explanation *explanation)
{
    struct reach reach = {0, 0};
    double at = 0;

    for (size_t i = 0; i < explanation->count; i++) {
        at += explanation->differences[i].seconds;
        extend(&reach, at);
    }
    extend(&reach, explanation->whole_s);
    duet__html_text(stream,
                    "<div class=\"scroll\"><table class=\"parts\"><thead><tr><th>part</th>"
                    "<th></th><th>time</th><th>share</th><th class=\"spare\">",
                    validation->first_name, "</th>");
    duet__html_text(stream, "<th class=\"spare\">", validation->second_name,
                    "</th><th class=\"spare\"></th></tr></thead><tbody>\n");
    at = 0;
    for (size_t i = 0; i < explanation->count; i++) {
        const struct duet_difference *part = &explanation->differences[i];

        duet__html_text(stream, "<tr><td>", duet__difference_name(part), "</td>");
        put_bar(stream, &reach, at, at + part->seconds, false);
        put_part(stream, explanation, part);
        at += part->seconds;
    }
    fputs("<tr class=\"sum\"><td>sum</td>", stream);
    put_bar(stream, &reach, 0, explanation->whole_s, true);
    duet__html_own(stream, "<td>", part_text(explanation->whole_s, explanation->second_s), "</td>");
    duet__html_own(stream, "<td>", duet__percent_text(explanation->whole_s / explanation->second_s),
                   "</td>");
    put_figures(stream, explanation->first_s, explanation->second_s);
    fputs("<td class=\"spare\">makespan</td></tr>\n</tbody></table></div>\n", stream);
}

/* ------------------------------------------------------------------------------------------- */
/* Timelines                                                                                    */

static bool has_recording(const struct duet_case *the)
{
    return the->predicted.recording || the->measured.recording;
}

/*
 * Marks the cases that get timelines: the worst ones first, but so many less than allowed that
 * each workload can have one; those that are left over go to the next worst.
 */
static void choose(const struct duet_validation *validation,
                   const struct duet_validation_figures *figures, bool *chosen)
{
    size_t *order = duet__worst_first(validation, figures), count = validation->case_count;
    struct duet__marks marks = duet__marks_of(validation);
    size_t left = DUET__HTML_PAIRS;
    size_t kept = MIN(marks.workloads->len, left); /* for workloads without one */
    bool *seen = g_new0(bool, marks.workloads->len + 1);

    for (int pass = 0; pass < 3; pass++) {
        for (size_t i = 0; i < count && left > (pass ? 0 : kept); i++) {
            const struct duet_case *the = &validation->cases[order[i]];
            guint workload = 0;

            while (strcmp(g_ptr_array_index(marks.workloads, workload), the->workload) != 0)
                workload++;
            if (chosen[order[i]] || !has_recording(the) || (pass == 1 && seen[workload]))
                continue;
            chosen[order[i]] = seen[workload] = true;
            left--;
        }
    }
    g_free(seen);
    g_free(order);
    duet__marks_fini(&marks);
}

/* Kernels by the colour that they have in both timelines: the place of their name, see
 * duet__html_timelines. */
static void put_legend(FILE *stream, const struct duet_recording *const *recordings, size_t count)
{
    GPtrArray *names = g_ptr_array_new();

    fputs("<ul class=\"legend\">", stream);
    for (size_t i = 0; i < count; i++) {
        for (size_t k = 0; k < recordings[i]->kernel_count; k++) {
            guint at = 0;

            while (i > 0 && at < names->len &&
                   strcmp(g_ptr_array_index(names, at), recordings[i]->kernels[k]) != 0)
                at++;
            if (i > 0 && at < names->len)
                continue;
            fprintf(stream, "<li><i style=\"background:%s\"></i>",
                    duet_gantt_kernel_colour(names->len));
            duet__html_text(stream, "", recordings[i]->kernels[k], "</li>");
            g_ptr_array_add(names, (gpointer)(uintptr_t)recordings[i]->kernels[k]);
        }
    }
    for (int i = 0; count > 0 && recordings[0]->machine->node_count > 1 && i < DUET_GANTT_COPIES;
         i++)
        fprintf(stream, "<li><i class=\"thin\" style=\"background:%s\"></i>%s</li>",
                duet_gantt_copy_colour((enum duet_gantt_copy)i),
                duet_gantt_copy_name((enum duet_gantt_copy)i));
    fputs("</ul>\n", stream);
    g_ptr_array_free(names, TRUE);
}

static int put_timelines(FILE *stream, const struct duet_validation *validation,
                         const struct duet_case *the, struct duet_message *message)
{
    const struct duet_side *sides[] = {&the->predicted, &the->measured};
    const char *names[] = {validation->first_name, validation->second_name};
    const struct duet_recording *recordings[2];
    size_t count = 0;
    int result;

    fputs("<h4>Timelines of the runs nearest to the medians</h4>\n<div class=\"tools\"><span>"
          "<button data-zoom=\"2\">Zoom in</button> <button data-zoom=\"0.5\">Zoom out</button> "
          "<button data-zoom=\"0\">Whole run</button></span><span class=\"hint\">Drag to move, "
          "double-click or Ctrl + wheel to zoom; one time axis for both.</span></div>\n",
          stream);
    for (int i = 0; i < 2; i++)
        if (sides[i]->recording)
            recordings[count++] = sides[i]->recording;
    put_legend(stream, recordings, count);
    for (int i = 0; i < 2; i++) {
        if (!sides[i]->recording)
            continue;
        duet__html_text(stream, "<figure><figcaption><b>", names[i], "</b><span class=\"soft\">");
        duet__html_own(stream, "", duet__time_text(sides[i]->recording->makespan_s, false),
                       "</span></figcaption>");
        duet__html_text(stream, "<canvas tabindex=\"0\" role=\"img\" aria-label=\"Timeline, ",
                        names[i], "\"></canvas></figure>\n");
    }
    fputs("<noscript>The timelines need JavaScript.</noscript>\n"
          "<script type=\"application/json\" class=\"timelines\">",
          stream);
    result = duet__html_timelines(stream, recordings, count, DUET__HTML_PAIR_BARS, DIGITS, message);
    fputs("</script>\n", stream);
    return result;
}

/* ------------------------------------------------------------------------------------------- */
/* Cases                                                                                        */

static void put_fact(FILE *stream, const char *name, const char *what, char *text)
{
    duet__html_text(stream, "<div><dt>", name, "");
    fprintf(stream, "%s</dt>", what);
    duet__html_own(stream, "<dd>", text, "</dd></div>\n");
}

/* The makespans of a side, as many as have room. */
static char *values_text(const struct duet_side *side)
{
    GString *text = g_string_new(NULL);

    for (size_t i = 0; i < MIN(side->count, VALUES); i++) {
        char *value = duet__time_text(side->makespans_s[i], false);

        g_string_append_printf(text, "%s%s", i ? ", " : "", value);
        g_free(value);
    }
    if (side->count > VALUES)
        g_string_append_printf(text, ", and %zu more", side->count - VALUES);
    return g_string_free(text, FALSE);
}

static char *interval_text(const struct duet_case_figures *figures)
{
    char *low = duet__percent_text(figures->error_low);
    char *high = duet__percent_text(figures->error_high);
    char *text = g_strdup_printf("%s to %s", low, high);

    g_free(low);
    g_free(high);
    return text;
}

static void put_facts(FILE *stream, const struct duet_validation *validation, size_t index,
                      const struct duet_case_figures *figures)
{
    const struct duet_case *the = &validation->cases[index];

    fputs("<dl>\n", stream);
    if (the->predicted.count)
        put_fact(stream, validation->first_name, ", runs", values_text(&the->predicted));
    if (the->measured.count)
        put_fact(stream, validation->second_name, ", runs", values_text(&the->measured));
    if (!isnan(figures->error) && figures->predicted.count + figures->measured.count > 2)
        put_fact(stream, duet__error_word(validation), ", 95 % interval", interval_text(figures));
    if (!isnan(figures->noise))
        put_fact(stream, "noise", "", g_strdup_printf("\xc2\xb1%.2f %%", figures->noise * 100));
    if (the->speed > 0)
        put_fact(stream, "speed of the machine", "", g_strdup_printf("%.1f %%", the->speed * 100));
    if (figures->explanation.count)
        put_fact(stream, "ran on another architecture", "",
                 g_strdup_printf("%.1f %% of the time", figures->explanation.moved_share * 100));
    fputs("</dl>\n", stream);
}

static void put_summary(FILE *stream, const struct duet_validation *validation,
                        const struct duet_validation_figures *figures, size_t index, bool timelines)
{
    const struct duet_case_figures *f = &figures->cases[index];
    bool fails = duet__case_fails(validation, index, figures);

    fprintf(stream, "<details class=\"case\" data-case=\"%zu\"%s><summary>", index,
            validation->case_count == 1 ? " open" : "");
    duet__html_own(stream, "<b>", duet__case_name(&validation->cases[index]), "</b>");
    if (validation->cases[index].failure)
        fputs(" <span class=\"bad\">failed</span>", stream);
    else
        duet__html_own(stream,
                       fails                       ? " <span class=\"bad\">"
                       : validation->fail_over > 0 ? " <span class=\"good\">"
                                                   : " <span>",
                       duet__percent_text(f->error), "</span>");
    fprintf(stream, "%s</summary>\n<div class=\"body\" id=\"case-%zu\">\n",
            timelines ? " <span class=\"soft\">with timelines</span>" : "", index);
}

static int put_case(FILE *stream, const struct duet_validation *validation,
                    const struct duet_validation_figures *figures, size_t index, bool timelines,
                    struct duet_message *message)
{
    const struct duet_case *the = &validation->cases[index];
    const struct duet_case_figures *f = &figures->cases[index];
    int result = 0;

    put_summary(stream, validation, figures, index, timelines);
    if (the->failure)
        duet__html_text(stream, "<p class=\"bad\">", the->failure, "</p>\n");
    put_facts(stream, validation, index, f);
    if (f->explanation.count) {
        fprintf(stream, "<h4>Where the %s comes from</h4>\n", duet__error_word(validation));
        duet__html_own(stream,
                       "<p>Largest cause: ", duet__culprit_text(validation, &f->explanation),
                       "</p>\n");
        put_parts(stream, validation, &f->explanation);
    }
    if (timelines)
        result = put_timelines(stream, validation, the, message);
    fputs("</div></details>\n", stream);
    return result;
}

int duet__html_details(FILE *stream, const struct duet_validation *validation,
                       const struct duet_validation_figures *figures, struct duet_message *message)
{
    bool *chosen = g_new0(bool, validation->case_count + 1);
    int result = 0;

    choose(validation, figures, chosen);
    fputs("<section>\n<h2>Cases</h2>\n", stream);
    for (size_t i = 0; i < validation->case_count && !result; i++)
        result = put_case(stream, validation, figures, i, chosen[i], message);
    fputs("</section>\n", stream);
    g_free(chosen);
    return result;
}
