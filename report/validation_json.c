/* SPDX-License-Identifier: Apache-2.0 */
/* A comparison for programs: JSON (schema 1) and CSV. */
#include "validate/validation.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "report/output.h"
#include "report/validation_parts.h"

/* How reasons are called in both formats. */
static const char *const reasons[] = {
    [DUET_REASON_KERNEL] = "kernel",       [DUET_REASON_SCHEDULE] = "schedule",
    [DUET_REASON_TO_DEVICE] = "to_device", [DUET_REASON_TO_HOST] = "to_host",
    [DUET_REASON_BETWEEN] = "between",     [DUET_REASON_OVERHEAD] = "overhead",
    [DUET_REASON_IDLE] = "idle",           [DUET_REASON_SPREAD] = "spread",
};

enum { REASONS = sizeof(reasons) / sizeof(*reasons) };

static void put_number(FILE *stream, const char *name, double value)
{
    fprintf(stream, "\"%s\": ", name);
    duet_write_json_number(stream, value);
}

/* NULL becomes null. */
static void put_string(FILE *stream, const char *name, const char *value)
{
    fprintf(stream, "\"%s\": ", name);
    if (value)
        duet_write_json_string(stream, value);
    else
        fputs("null", stream);
}

/* One of the numbers of a list, with what separates it from the next. */
static void put_more(FILE *stream, const char *name, double value)
{
    fputs(", ", stream);
    put_number(stream, name, value);
}

static double known(size_t count, double value)
{
    return count ? value : NAN;
}

/* How many runs each round has. */
static void put_rounds(FILE *stream, const struct duet_side *side)
{
    fputs(", \"rounds\": ", stream);
    if (!side->round_count) {
        fputs("null", stream);
        return;
    }
    for (size_t i = 0; i < side->round_count; i++)
        fprintf(stream, "%s%zu", i ? ", " : "[", side->rounds[i]);
    putc(']', stream);
}

static void put_side(FILE *stream, const char *name, const struct duet_side *side,
                     const struct duet_summary *summary)
{
    size_t count = summary->count;

    fprintf(stream, ",\n     \"%s\": {\"makespans_s\": [", name);
    for (size_t i = 0; i < side->count; i++) {
        if (i)
            fputs(", ", stream);
        duet_write_json_number(stream, side->makespans_s[i]);
    }
    fputs("],\n      ", stream);
    put_number(stream, "median_s", known(count, summary->median));
    put_more(stream, "ci95_low_s", known(count, summary->median_low));
    put_more(stream, "ci95_high_s", known(count, summary->median_high));
    put_more(stream, "mean_s", known(count, summary->mean));
    put_rounds(stream, side);
    putc('}', stream);
}

/* What the difference is put down to: a part's name, and a sentence about it. */
static void put_culprit(FILE *stream, const struct duet_validation *validation,
                        const struct duet_explanation *explanation)
{
    char *text = duet__culprit_text(validation, explanation);

    fputs(",\n      \"largest_cause\": {", stream);
    put_string(stream, "name", duet__difference_name(duet__culprit(explanation)));
    fputs(", ", stream);
    put_string(stream, "text", text);
    putc('}', stream);
    g_free(text);
}

static void put_explanation(FILE *stream, const struct duet_validation *validation,
                            const struct duet_explanation *explanation)
{
    fputs(",\n     \"explanation\": ", stream);
    if (!explanation->count) {
        fputs("null", stream);
        return;
    }
    putc('{', stream);
    put_number(stream, "first_s", explanation->first_s);
    put_more(stream, "second_s", explanation->second_s);
    put_more(stream, "whole_s", explanation->whole_s);
    put_more(stream, "moved_share", explanation->moved_share);
    put_culprit(stream, validation, explanation);
    fputs(",\n      \"parts\": [", stream);
    for (size_t i = 0; i < explanation->count; i++) {
        const struct duet_difference *part = &explanation->differences[i];

        fprintf(stream, "%s\n       {\"reason\": \"%s\", ", i ? "," : "", reasons[part->reason]);
        put_string(stream, "what", part->what);
        fputs(", ", stream);
        put_string(stream, "name", duet__difference_name(part));
        put_more(stream, "seconds", part->seconds);
        put_more(stream, "first", part->first);
        put_more(stream, "second", part->second);
        putc('}', stream);
    }
    fputs("]}", stream);
}

static void put_case(FILE *stream, const struct duet_validation *validation,
                     const struct duet_case *the, const struct duet_case_figures *figures)
{
    const char precision[] = {the->precision, 0};

    putc('{', stream);
    put_string(stream, "workload", the->workload);
    fputs(", ", stream);
    put_string(stream, "settings", the->settings);
    fprintf(stream, ", \"n\": %" PRIu64 ", \"tile\": %" PRIu64 ", ", the->n, the->tile);
    put_string(stream, "precision", precision);
    fputs(",\n     ", stream);
    put_string(stream, "platform", the->platform);
    fprintf(stream, ", \"cpus\": %u, \"gpus\": %u, ", the->cpus, the->gpus);
    put_string(stream, "policy", the->policy);
    fprintf(stream, ", \"set_arch\": %s, ", the->set_arch ? "true" : "false");
    put_number(stream, "speed", the->speed > 0 ? the->speed : NAN);
    fputs(", ", stream);
    put_string(stream, "failure", the->failure);
    put_side(stream, "predicted", &the->predicted, &figures->predicted);
    put_side(stream, "measured", &the->measured, &figures->measured);
    fputs(",\n     ", stream);
    put_number(stream, "error", figures->error);
    put_more(stream, "error_low", figures->error_low);
    put_more(stream, "error_high", figures->error_high);
    put_more(stream, "noise", figures->noise);
    put_explanation(stream, validation, &figures->explanation);
    putc('}', stream);
}

static void put_summary(FILE *stream, const struct duet_validation *validation,
                        const struct duet_validation_figures *figures)
{
    fprintf(stream, "{\"cases\": %zu, \"known\": %zu", validation->case_count, figures->known);
    put_more(stream, "median", figures->median);
    put_more(stream, "p95", figures->p95);
    put_more(stream, "worst", figures->worst);
    put_more(stream, "bias", figures->bias);
    fprintf(stream,
            ",\n  \"within_noise\": %zu, \"groups\": %zu, \"best_right\": %zu, \"pairs\": %zu, "
            "\"pairs_right\": %zu, \"failed\": %zu, \"refused\": %zu}",
            figures->within_noise, figures->groups, figures->best_right, figures->pairs,
            figures->pairs_right, figures->failed, figures->refused);
}

/* The explanation of all cases together; null where none is explained. */
static void put_causes(FILE *stream, const struct duet_validation *validation,
                       const struct duet_validation_figures *figures)
{
    struct duet__causes causes = duet__causes_of(validation, figures);

    fputs(",\n \"causes\": ", stream);
    if (causes.cases) {
        fprintf(stream, "{\"cases\": %zu", causes.cases);
        put_more(stream, "whole", causes.whole);
        fputs(", \"parts\": [", stream);
        for (size_t i = 0; i < causes.count; i++) {
            fprintf(stream, "%s\n  {\"reason\": \"%s\", ", i ? "," : "",
                    reasons[causes.parts[i].reason]);
            put_string(stream, "name", causes.parts[i].name);
            put_more(stream, "share", causes.parts[i].share);
            putc('}', stream);
        }
        fputs("]}", stream);
    } else {
        fputs("null", stream);
    }
    g_free(causes.parts);
}

void duet_validation_write_json(FILE *stream, const struct duet_validation *validation,
                                const struct duet_validation_figures *figures)
{
    const struct {
        const char *name, *text;
    } lines[] = {
        {"command", validation->command},
        {"title", validation->title},
        {"first_name", validation->first_name},
        {"second_name", validation->second_name},
        {"machine", validation->machine},
        {"calibration", validation->calibration},
        {"date", validation->date},
    };

    fputs("{\"schema\": 1", stream);
    for (size_t i = 0; i < sizeof(lines) / sizeof(*lines); i++) {
        fputs(",\n ", stream);
        put_string(stream, lines[i].name, lines[i].text);
    }
    fputs(",\n ", stream);
    put_number(stream, "fail_over", validation->fail_over > 0 ? validation->fail_over : NAN);
    fputs(",\n \"summary\": ", stream);
    put_summary(stream, validation, figures);
    put_causes(stream, validation, figures);
    fputs(",\n \"cases\": [", stream);
    for (size_t i = 0; i < validation->case_count; i++) {
        fputs(i ? ",\n    " : "\n    ", stream);
        put_case(stream, validation, &validation->cases[i], &figures->cases[i]);
    }
    fputs("\n ]}\n", stream);
}

/* ------------------------------------------------------------------------------------------- */
/* CSV                                                                                          */

/* A text cell: quoted where it has to be (RFC 4180). */
static void put_text(FILE *stream, const char *text)
{
    if (!text[strcspn(text, ",\"\r\n")]) {
        fputs(text, stream);
        return;
    }
    putc('"', stream);
    for (const char *at = text; *at; at++) {
        if (*at == '"')
            putc('"', stream);
        putc(*at, stream);
    }
    putc('"', stream);
}

/* A number cell after a comma; empty where there is no number. */
static void put_value(FILE *stream, double value)
{
    putc(',', stream);
    if (isfinite(value))
        duet_write_json_number(stream, value);
}

static void put_side_cells(FILE *stream, const struct duet_summary *summary)
{
    size_t count = summary->count;

    fprintf(stream, ",%zu", count);
    put_value(stream, known(count, summary->median));
    put_value(stream, known(count, summary->median_low));
    put_value(stream, known(count, summary->median_high));
}

static void put_explanation_cells(FILE *stream, const struct duet_explanation *explanation)
{
    double sums[REASONS] = {0};
    bool has = explanation->count > 0;

    for (size_t i = 0; i < explanation->count; i++)
        sums[explanation->differences[i].reason] += explanation->differences[i].seconds;
    put_value(stream, has ? explanation->whole_s : NAN);
    for (size_t i = 0; i < REASONS; i++)
        put_value(stream, has ? sums[i] : NAN);
    put_value(stream, has ? explanation->moved_share : NAN);
}

static void put_line(FILE *stream, const struct duet_case *the,
                     const struct duet_case_figures *figures)
{
    put_text(stream, the->workload);
    putc(',', stream);
    put_text(stream, the->settings);
    fprintf(stream, ",%" PRIu64 ",%" PRIu64 ",%c,", the->n, the->tile, the->precision);
    put_text(stream, the->platform);
    fprintf(stream, ",%u,%u,", the->cpus, the->gpus);
    put_text(stream, the->policy);
    fprintf(stream, ",%s", the->set_arch ? "true" : "false");
    put_side_cells(stream, &figures->predicted);
    put_side_cells(stream, &figures->measured);
    put_value(stream, figures->error);
    put_value(stream, figures->error_low);
    put_value(stream, figures->error_high);
    put_value(stream, figures->noise);
    put_value(stream, the->speed > 0 ? the->speed : NAN);
    putc(',', stream);
    put_text(stream, the->failure ? the->failure : "");
    put_explanation_cells(stream, &figures->explanation);
    putc('\n', stream);
}

void duet_validation_write_csv(FILE *stream, const struct duet_validation *validation,
                               const struct duet_validation_figures *figures)
{
    static const char *const sides[] = {"predicted", "measured"};

    fputs("workload,settings,n,tile,precision,platform,cpus,gpus,policy,set_arch", stream);
    for (int i = 0; i < 2; i++)
        fprintf(stream, ",%s_runs,%s_s,%s_low_s,%s_high_s", sides[i], sides[i], sides[i], sides[i]);
    fputs(",error,error_low,error_high,noise,speed,failure,whole_s", stream);
    for (size_t i = 0; i < REASONS; i++)
        fprintf(stream, ",%s_s", reasons[i]);
    fputs(",moved_share\n", stream);
    for (size_t i = 0; i < validation->case_count; i++)
        put_line(stream, &validation->cases[i], &figures->cases[i]);
}
