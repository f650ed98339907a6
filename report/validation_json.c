/* SPDX-License-Identifier: Apache-2.0 */
/* A comparison for programs: JSON (schema 1) and CSV. */
#include "validate/validation.h"

#include <math.h>

#include <glib.h>

#include "platforms/json.h"
#include "report/validation_parts.h"

enum {
    CASE = 5,
    PART = 6
}; /* columns from which on lines of a case, and of what is in it, begin */

/* How reasons are called in both formats. */
static const char *const reasons[] = {
    [DUET_REASON_KERNEL] = "kernel",       [DUET_REASON_SCHEDULE] = "schedule",
    [DUET_REASON_TO_DEVICE] = "to_device", [DUET_REASON_TO_HOST] = "to_host",
    [DUET_REASON_BETWEEN] = "between",     [DUET_REASON_OVERHEAD] = "overhead",
    [DUET_REASON_IDLE] = "idle",           [DUET_REASON_SPREAD] = "spread",
};

static double known(bool is_known, double value)
{
    return is_known ? value : NAN;
}

/* Whether there are enough runs for an interval. */
static bool enough(const struct duet_summary *summary)
{
    return summary->count >= DUET_INTERVAL_RUNS;
}

static void put_side(struct duet__json_writer *json, const char *name, const struct duet_side *side)
{
    const struct duet_summary *summary = &side->summary;

    duet__json_break(json, CASE);
    duet__json_begin(json, name, '{');
    duet__json_begin(json, "makespans_s", '[');
    for (size_t i = 0; i < side->count; i++)
        duet__json_put_number(json, NULL, side->makespans_s[i]);
    duet__json_end(json, ']');
    duet__json_break(json, PART);
    duet__json_put_number(json, "median_s", known(summary->count, summary->median));
    duet__json_put_number(json, "ci95_low_s", known(enough(summary), summary->median_low));
    duet__json_put_number(json, "ci95_high_s", known(enough(summary), summary->median_high));
    duet__json_put_number(json, "mean_s", known(summary->count, summary->mean));
    if (side->round_count) {
        duet__json_begin(json, "rounds", '[');
        for (size_t i = 0; i < side->round_count; i++)
            duet__json_put_integer(json, NULL, side->rounds[i]);
        duet__json_end(json, ']');
    } else {
        duet__json_put_string(json, "rounds", NULL);
    }
    duet__json_end(json, '}');
}

/* What the difference is put down to: a part's name, and a sentence about it. */
static void put_culprit(struct duet__json_writer *json, const struct duet_validation *validation,
                        const struct duet_explanation *explanation)
{
    char *text = duet__culprit_text(validation, explanation);

    duet__json_break(json, PART);
    duet__json_begin(json, "largest_cause", '{');
    duet__json_put_string(json, "name", duet__difference_name(duet__culprit(explanation)));
    duet__json_put_string(json, "text", text);
    duet__json_end(json, '}');
    g_free(text);
}

static void put_explanation(struct duet__json_writer *json,
                            const struct duet_validation *validation,
                            const struct duet_explanation *explanation)
{
    duet__json_break(json, CASE);
    if (!explanation->count) {
        duet__json_put_string(json, "explanation", NULL);
        return;
    }
    duet__json_begin(json, "explanation", '{');
    duet__json_put_number(json, "first_s", explanation->first_s);
    duet__json_put_number(json, "second_s", explanation->second_s);
    duet__json_put_number(json, "whole_s", explanation->whole_s);
    duet__json_put_number(json, "moved_share", explanation->moved_share);
    put_culprit(json, validation, explanation);
    duet__json_break(json, PART);
    duet__json_begin(json, "parts", '[');
    for (size_t i = 0; i < explanation->count; i++) {
        const struct duet_difference *part = &explanation->differences[i];

        duet__json_break(json, PART + 1);
        duet__json_begin(json, NULL, '{');
        duet__json_put_string(json, "reason", reasons[part->reason]);
        duet__json_put_string(json, "what", part->what);
        duet__json_put_string(json, "name", duet__difference_name(part));
        duet__json_put_number(json, "seconds", part->seconds);
        duet__json_put_number(json, "first", part->first);
        duet__json_put_number(json, "second", part->second);
        duet__json_end(json, '}');
    }
    duet__json_end(json, ']');
    duet__json_end(json, '}');
}

static void put_case(struct duet__json_writer *json, const struct duet_validation *validation,
                     const struct duet_case *the)
{
    const char precision[] = {the->precision, 0};
    bool interval = enough(&the->measured.summary);
    char *name = duet__case_name(the);

    duet__json_break(json, CASE - 1);
    duet__json_begin(json, NULL, '{');
    duet__json_put_string(json, "name", name);
    duet__json_put_string(json, "workload", the->workload);
    duet__json_put_string(json, "settings", the->settings);
    duet__json_put_integer(json, "n", the->n);
    duet__json_put_integer(json, "tile", the->tile);
    duet__json_put_string(json, "precision", precision);
    duet__json_break(json, CASE);
    duet__json_put_string(json, "platform", the->platform);
    duet__json_put_integer(json, "cpus", the->cpus);
    duet__json_put_integer(json, "gpus", the->gpus);
    duet__json_put_string(json, "policy", the->policy);
    duet__json_put_boolean(json, "set_arch", the->set_arch);
    duet__json_put_number(json, "speed", known(the->speed > 0, the->speed));
    duet__json_put_string(json, "failure", the->failure);
    put_side(json, "predicted", &the->predicted);
    put_side(json, "measured", &the->measured);
    duet__json_break(json, CASE);
    duet__json_put_number(json, "error", the->error);
    duet__json_put_number(json, "error_low", known(interval, the->error_low));
    duet__json_put_number(json, "error_high", known(interval, the->error_high));
    duet__json_put_number(json, "noise", the->noise);
    put_explanation(json, validation, &the->explanation);
    duet__json_end(json, '}');
    g_free(name);
}

static void put_summary(struct duet__json_writer *json, const struct duet_validation *validation)
{
    duet__json_break(json, 1);
    duet__json_begin(json, "summary", '{');
    duet__json_put_integer(json, "cases", validation->case_count);
    duet__json_put_integer(json, "known", validation->known);
    duet__json_put_number(json, "median", validation->median);
    duet__json_put_number(json, "p95", validation->p95);
    duet__json_put_number(json, "worst", validation->worst);
    duet__json_put_number(json, "bias", validation->bias);
    duet__json_break(json, 2);
    duet__json_put_integer(json, "within_noise", validation->within_noise);
    duet__json_put_integer(json, "groups", validation->groups);
    duet__json_put_integer(json, "best_right", validation->best_right);
    duet__json_put_integer(json, "pairs", validation->pairs);
    duet__json_put_integer(json, "pairs_right", validation->pairs_right);
    duet__json_put_integer(json, "failed", validation->failed);
    duet__json_put_integer(json, "refused", validation->refused);
    duet__json_end(json, '}');
}

/* The explanation of all cases together; null where none is explained. */
static void put_causes(struct duet__json_writer *json, const struct duet_validation *validation)
{
    struct duet__causes causes = duet__causes_of(validation);

    duet__json_break(json, 1);
    if (causes.cases) {
        duet__json_begin(json, "causes", '{');
        duet__json_put_integer(json, "cases", causes.cases);
        duet__json_put_number(json, "whole", causes.whole);
        duet__json_begin(json, "parts", '[');
        for (size_t i = 0; i < causes.count; i++) {
            duet__json_break(json, 2);
            duet__json_begin(json, NULL, '{');
            duet__json_put_string(json, "reason", reasons[causes.parts[i].reason]);
            duet__json_put_string(json, "name", causes.parts[i].name);
            duet__json_put_number(json, "share", causes.parts[i].share);
            duet__json_end(json, '}');
        }
        duet__json_end(json, ']');
        duet__json_end(json, '}');
    } else {
        duet__json_put_string(json, "causes", NULL);
    }
    g_free(causes.parts);
}

void duet_validation_write_json(FILE *stream, const struct duet_validation *validation)
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
    struct duet__json_writer json = {.stream = stream};

    duet__json_begin(&json, NULL, '{');
    duet__json_put_integer(&json, "schema", 1);
    for (size_t i = 0; i < G_N_ELEMENTS(lines); i++) {
        duet__json_break(&json, 1);
        duet__json_put_string(&json, lines[i].name, lines[i].text);
    }
    duet__json_break(&json, 1);
    duet__json_put_number(&json, "fail_over",
                          known(validation->fail_over > 0, validation->fail_over));
    duet__json_begin(&json, "disturbed_rounds", '[');
    for (size_t i = 0; i < validation->disturbed_count; i++)
        duet__json_put_integer(&json, NULL, validation->disturbed_rounds[i]);
    duet__json_end(&json, ']');
    duet__json_put_integer(&json, "left_out_runs", validation->left_out);
    put_summary(&json, validation);
    put_causes(&json, validation);
    duet__json_break(&json, 1);
    duet__json_begin(&json, "cases", '[');
    for (size_t i = 0; i < validation->case_count; i++)
        put_case(&json, validation, &validation->cases[i]);
    duet__json_break(&json, 1);
    duet__json_end(&json, ']');
    duet__json_end(&json, '}');
    putc('\n', stream);
}

/* ------------------------------------------------------------------------------------------- */
/* CSV                                                                                          */

static void put_side_cells(struct duet__json_writer *csv, const char *side,
                           const struct duet_summary *summary)
{
    const struct {
        const char *end;
        double value;
    } cells[] = {
        {"s", known(summary->count, summary->median)},
        {"low_s", known(enough(summary), summary->median_low)},
        {"high_s", known(enough(summary), summary->median_high)},
    };
    char name[32];

    g_snprintf(name, sizeof(name), "%s_runs", side);
    duet__json_put_integer(csv, name, summary->count);
    for (size_t i = 0; i < G_N_ELEMENTS(cells); i++) {
        g_snprintf(name, sizeof(name), "%s_%s", side, cells[i].end);
        duet__json_put_number(csv, name, cells[i].value);
    }
}

static void put_explanation_cells(struct duet__json_writer *csv,
                                  const struct duet_explanation *explanation)
{
    double sums[G_N_ELEMENTS(reasons)] = {0};
    bool has = explanation->count > 0;
    char name[32];

    for (size_t i = 0; i < explanation->count; i++)
        sums[explanation->differences[i].reason] += explanation->differences[i].seconds;
    duet__json_put_number(csv, "whole_s", known(has, explanation->whole_s));
    for (size_t i = 0; i < G_N_ELEMENTS(reasons); i++) {
        g_snprintf(name, sizeof(name), "%s_s", reasons[i]);
        duet__json_put_number(csv, name, known(has, sums[i]));
    }
    duet__json_put_number(csv, "moved_share", known(has, explanation->moved_share));
}

static void put_line(struct duet__json_writer *csv, const struct duet_case *the)
{
    const char precision[] = {the->precision, 0};
    bool interval = enough(&the->measured.summary);

    duet__json_put_string(csv, "workload", the->workload);
    duet__json_put_string(csv, "settings", the->settings);
    duet__json_put_integer(csv, "n", the->n);
    duet__json_put_integer(csv, "tile", the->tile);
    duet__json_put_string(csv, "precision", precision);
    duet__json_put_string(csv, "platform", the->platform);
    duet__json_put_integer(csv, "cpus", the->cpus);
    duet__json_put_integer(csv, "gpus", the->gpus);
    duet__json_put_string(csv, "policy", the->policy);
    duet__json_put_boolean(csv, "set_arch", the->set_arch);
    put_side_cells(csv, "predicted", &the->predicted.summary);
    put_side_cells(csv, "measured", &the->measured.summary);
    duet__json_put_number(csv, "error", the->error);
    duet__json_put_number(csv, "error_low", known(interval, the->error_low));
    duet__json_put_number(csv, "error_high", known(interval, the->error_high));
    duet__json_put_number(csv, "noise", the->noise);
    duet__json_put_number(csv, "speed", known(the->speed > 0, the->speed));
    duet__json_put_string(csv, "failure", the->failure);
    put_explanation_cells(csv, &the->explanation);
    duet__csv_end(csv);
}

void duet_validation_write_csv(FILE *stream, const struct duet_validation *validation)
{
    static const struct duet_case nothing = {0};
    struct duet__json_writer csv = {.stream = stream, .csv = DUET__CSV_HEADING};

    put_line(&csv, &nothing);
    for (size_t i = 0; i < validation->case_count; i++)
        put_line(&csv, &validation->cases[i]);
}
