/* SPDX-License-Identifier: Apache-2.0 */
/* The HTML page of a comparison: what stands where, the headline figures and the table. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "report/html_cases.h"
#include "report/html_parts.h"
#include "report/validation_parts.h"

static const char dash[] = "\xe2\x80\x93";

static void put_lines(FILE *stream, const char *const *lines)
{
    for (; *lines; lines++)
        fputs(*lines, stream);
}

/* A name and what belongs to it, which is freed. */
static void put_fact(FILE *stream, const char *name, char *text)
{
    duet__html_text(stream, "<div><dt>", name, "</dt>");
    duet__html_own(stream, "<dd>", text, "</dd></div>\n");
}

static char *percent(double share, int digits, bool sign)
{
    if (!isfinite(share))
        return g_strdup(dash);
    return g_strdup_printf(sign ? "%+.*f %%" : "%.*f %%", digits, share * 100);
}

static void put_facts(FILE *stream, const struct duet_validation *validation,
                      const struct duet_validation_figures *figures)
{
    size_t runs[2] = {0, 0};

    for (size_t i = 0; i < validation->case_count; i++) {
        runs[0] += figures->cases[i].predicted.count;
        runs[1] += figures->cases[i].measured.count;
    }
    fputs("<dl>\n", stream);
    put_fact(stream, "Machine", g_strdup(validation->machine));
    if (validation->calibration[0])
        put_fact(stream, "Calibration", g_strdup(validation->calibration));
    put_fact(stream, "Date", g_strdup(validation->date));
    put_fact(stream, "Cases", g_strdup_printf("%zu", validation->case_count));
    put_fact(stream, "Runs",
             g_strdup_printf("%zu %s, %zu %s", runs[0], validation->first_name, runs[1],
                             validation->second_name));
    fputs("</dl>\n", stream);
}

/* Headline figures. */
static void put_cards(FILE *stream, const struct duet_validation *validation,
                      const struct duet_validation_figures *figures)
{
    bool predicted = strcmp(validation->first_name, "predicted") == 0, noise = false;
    const char *word = duet__error_word(validation);

    for (size_t i = 0; i < validation->case_count; i++)
        noise |= !isnan(figures->cases[i].noise);
    fputs("<section>\n<dl class=\"cards\">\n", stream);
    put_fact(stream, predicted ? "median error" : "median difference",
             percent(figures->median, 1, false));
    put_fact(stream, "95 % of the cases below", percent(figures->p95, 1, false));
    put_fact(stream, "worst", percent(figures->worst, 1, false));
    put_fact(stream, "bias", percent(figures->bias, 1, true));
    if (noise)
        put_fact(stream, "within the noise of measuring",
                 g_strdup_printf("%zu of %zu", figures->within_noise, figures->known));
    if (figures->groups)
        put_fact(stream, predicted ? "fastest policy predicted right" : "fastest policy the same",
                 g_strdup_printf("%zu of %zu", figures->best_right, figures->groups));
    if (figures->pairs)
        put_fact(stream, "pairs of policies in order",
                 g_strdup_printf("%zu of %zu", figures->pairs_right, figures->pairs));
    if (figures->refused)
        put_fact(stream, "without a result", g_strdup_printf("%zu", figures->refused));
    if (validation->fail_over > 0) {
        char *name = g_strdup_printf("failed (%s over %g %%)", word, validation->fail_over * 100);

        put_fact(stream, name, g_strdup_printf("%zu", figures->failed));
        g_free(name);
    }
    fputs("</dl>\n</section>\n", stream);
}

static void put_plots(FILE *stream, const struct duet_validation *validation,
                      const struct duet_validation_figures *figures,
                      const struct duet__marks *marks)
{
    if (!figures->known)
        return;
    fputs("<section class=\"plots\">\n", stream);
    duet__html_marks_legend(stream, marks);
    duet__html_text(stream, "<div class=\"columns\"><div>\n<h4>Makespans: ", validation->first_name,
                    " against ");
    duet__html_text(stream, "", validation->second_name,
                    "; the band is \xc2\xb1"
                    "5 %</h4>\n");
    duet__html_scatter(stream, validation, figures, marks);
    fprintf(stream, "</div><div>\n<h4>%s by workload</h4>\n",
            strcmp(duet__error_word(validation), "error") == 0 ? "Errors" : "Differences");
    duet__html_strip(stream, validation, figures, marks);
    duet__html_causes(stream, validation, figures);
    fputs("</div></div>\n</section>\n", stream);
}

/* ------------------------------------------------------------------------------------------- */
/* Table                                                                                        */

/* A number cell: what is sorted by, and what is shown, which is freed. */
static void put_number(FILE *stream, double value, char *shown)
{
    fputs("<td data-value=\"", stream);
    if (isfinite(value))
        duet_write_json_number(stream, value);
    duet__html_own(stream, "\">", shown, "</td>");
}

static void put_word(FILE *stream, const char *text)
{
    duet__html_text(stream, "<td class=\"word\" data-value=\"", text, "\">");
    duet__html_text(stream, "", text, "</td>");
}

static void put_time(FILE *stream, const struct duet_summary *summary)
{
    put_number(stream, summary->count ? summary->median : NAN,
               summary->count ? duet__time_text(summary->median, false) : g_strdup(dash));
}

static void put_problem(FILE *stream, const struct duet__marks *marks, size_t index,
                        const struct duet_case *the)
{
    char *workload = duet__case_workload(the);

    duet__html_text(stream, "<td data-value=\"", workload, "\">");
    fprintf(stream, "<a href=\"#case-%zu\">", index);
    duet__html_mark(stream, marks, the);
    duet__html_text(stream, "", workload, "</a></td>");
    put_number(stream, (double)the->n,
               the->n ? g_strdup_printf("%" PRIu64, the->n) : g_strdup(dash));
    put_number(stream, (double)the->tile,
               the->tile ? g_strdup_printf("%" PRIu64, the->tile) : g_strdup(dash));
    put_word(stream, the->policy);
    put_number(stream, the->cpus, g_strdup_printf("%u", the->cpus));
    put_number(stream, the->gpus, g_strdup_printf("%u", the->gpus));
    g_free(workload);
}

/* What a case's error is put down to, or why there is none. */
static const char *remark_of(const struct duet_case *the, const struct duet_case_figures *figures)
{
    if (the->failure)
        return the->failure;
    if (figures->explanation.count)
        return duet__difference_name(duet__culprit(&figures->explanation));
    return "";
}

static void put_row(FILE *stream, const struct duet_validation *validation,
                    const struct duet_validation_figures *figures, const struct duet__marks *marks,
                    size_t index)
{
    const struct duet_case *the = &validation->cases[index];
    const struct duet_case_figures *f = &figures->cases[index];
    bool several = f->predicted.count + f->measured.count > 2;

    /* what has no result is marked, too */
    fprintf(stream, "<tr%s data-case=\"%zu\" data-name=\"",
            the->failure || duet__case_fails(validation, index, figures) ? " class=\"fails\"" : "",
            index);
    duet__html_own(stream, "", duet__case_name(the), "\">");
    put_problem(stream, marks, index, the);
    put_time(stream, &f->predicted);
    put_time(stream, &f->measured);
    put_number(stream, fabs(f->error), percent(f->error, 2, true)); /* sorted by its size */
    if (several && isfinite(f->error_low))
        put_number(stream, f->error_high - f->error_low,
                   g_strdup_printf("%+.1f to %+.1f", f->error_low * 100, f->error_high * 100));
    else
        put_number(stream, NAN, g_strdup(dash));
    put_number(stream, f->noise, percent(f->noise, 2, false));
    put_word(stream, remark_of(the, f));
    fputs("</tr>\n", stream);
}

static void put_head(FILE *stream, const char *before, const char *text, bool number)
{
    fprintf(stream, "<th%s><button>", number ? " data-number" : " class=\"word\"");
    duet__html_text(stream, before, text, "</button></th>");
}

static void put_table(FILE *stream, const struct duet_validation *validation,
                      const struct duet_validation_figures *figures,
                      const struct duet__marks *marks)
{
    char *labels[] = {duet__side_label(validation->first_name),
                      duet__side_label(validation->second_name)};
    const char *word = duet__error_word(validation);

    fputs("<section>\n<h2>Table</h2>\n<div class=\"tools\" hidden><input type=\"search\" "
          "id=\"filter\" placeholder=\"Filter: words that a case has to have\" "
          "aria-label=\"Filter\"><span class=\"hint\" id=\"filtered\"></span></div>\n"
          "<div class=\"scroll\"><table class=\"sortable cases\"><thead><tr>",
          stream);
    put_head(stream, "", "workload", false);
    put_head(stream, "", "n", true);
    put_head(stream, "", "tile", true);
    put_head(stream, "", "policy", false);
    put_head(stream, "", "CPUs", true);
    put_head(stream, "", "GPUs", true);
    put_head(stream, "", labels[0], true);
    put_head(stream, "", labels[1], true);
    put_head(stream, "", word, true);
    put_head(stream, "95 % interval<br>of it, ", "%", true);
    put_head(stream, "noise<br>", "\xc2\xb1", true);
    put_head(stream, "", "largest cause", false);
    fputs("</tr></thead><tbody>\n", stream);
    for (size_t i = 0; i < validation->case_count; i++)
        put_row(stream, validation, figures, marks, i);
    fputs("</tbody></table></div>\n</section>\n", stream);
    g_free(labels[0]);
    g_free(labels[1]);
}

/* ------------------------------------------------------------------------------------------- */
/* Page                                                                                         */

static void put_top(FILE *stream, const struct duet_validation *validation,
                    const struct duet_validation_figures *figures)
{
    fputs("<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
          "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n",
          stream);
    duet__html_text(stream, "<title>", validation->title, "</title>\n<style>\n");
    put_lines(stream, duet__html_style);
    put_lines(stream, duet__html_cases_style);
    duet__html_text(stream, "</style>\n</head>\n<body>\n<main>\n<header>\n<h1>", validation->title,
                    "</h1>\n");
    duet__html_text(stream, "<p class=\"lead\">", validation->first_name, " against ");
    duet__html_text(stream, "", validation->second_name, ", by duet</p>\n");
    put_facts(stream, validation, figures);
    duet__html_text(stream, "<pre>", validation->command, "</pre>\n</header>\n");
}

int duet_validation_write_html(FILE *stream, const struct duet_validation *validation,
                               const struct duet_validation_figures *figures,
                               struct duet_message *message)
{
    struct duet__marks marks = duet__marks_of(validation);
    int result = 0;

    put_top(stream, validation, figures);
    put_cards(stream, validation, figures);
    put_plots(stream, validation, figures, &marks);
    if (validation->case_count) {
        put_table(stream, validation, figures, &marks);
        result = duet__html_details(stream, validation, figures, message);
    }
    fputs("<footer>All on this page is in this one file.</footer>\n</main>\n"
          "<div id=\"tip\"></div>\n<script>\n",
          stream);
    put_lines(stream, duet__html_cases_script);
    put_lines(stream, duet__html_script_timelines);
    put_lines(stream, duet__html_cases_script_end);
    fputs("</script>\n</body>\n</html>\n", stream);
    duet__marks_fini(&marks);
    return result;
}
