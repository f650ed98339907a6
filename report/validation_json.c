/* SPDX-License-Identifier: Apache-2.0 */
/* Writes a comparison for programs: JSON (schema 1) and CSV. */
#include "validate/validation.h"

#include <inttypes.h>
#include <math.h>

#include <glib.h>

#include "base/fields.h"
#include "report/report.h"

/* Names of reasons in both formats. */
static const char *const reasons[] = {
    [DUET_REASON_KERNEL] = "kernel",       [DUET_REASON_SCHEDULE] = "schedule",
    [DUET_REASON_TO_DEVICE] = "to_device", [DUET_REASON_TO_HOST] = "to_host",
    [DUET_REASON_MESSAGE] = "message",     [DUET_REASON_BETWEEN] = "between",
    [DUET_REASON_OVERHEAD] = "overhead",   [DUET_REASON_IDLE] = "idle",
    [DUET_REASON_SPREAD] = "spread",
};

static double known(bool is_known, double value)
{
    return is_known ? value : NAN;
}

static void put_side(struct duet__json_writer *json, const char *name,
                     const struct duet__side *side)
{
    const struct duet__summary *summary = &side->summary;
    duet__json_print(json, "\n     %s: {", name);
    DUET__ARRAY_WRITE(json, "makespans_s", DUET__NUMBER, side->makespans_s, side->count);
    duet__json_print(json, "\n      median_s: %g, ci95_low_s: %g, ci95_high_s: %g, mean_s: %g",
                     known(summary->count, summary->median),
                     known(duet__spreads(summary), summary->median_low),
                     known(duet__spreads(summary), summary->median_high),
                     known(summary->count, summary->mean));
    if (duet__spreads(summary))
        duet__json_print(json, "ci95_holds: %d", summary->holds);
    else
        duet__json_print(json, "ci95_holds: null");
    if (side->round_count)
        DUET__ARRAY_WRITE(json, "rounds", DUET__INTEGER, side->rounds, side->round_count);
    else
        duet__json_print(json, "rounds: null");
    duet__json_print(json, "}");
}

static void write_explanation(struct duet__json_writer *json,
                              const struct duet__validation *validation,
                              const struct duet__explanation *explanation)
{
    g_autofree char *text = duet__culprit_text(validation, explanation);
    if (!explanation->count) {
        duet__json_print(json, "\n     explanation: null");
        return;
    }
    duet__json_print(json,
                     "\n     explanation: {first_s: %g, second_s: %g, whole_s: %g, moved_share: %g"
                     "\n      largest_cause: {name: %s, text: %s}"
                     "\n      parts: [",
                     explanation->first_s, explanation->second_s, explanation->whole_s,
                     explanation->moved_share, duet__difference_name(duet__culprit(explanation)),
                     text);
    for (size_t i = 0; i < explanation->count; i++) {
        const struct duet__difference *part = &explanation->differences[i];
        duet__json_print(json,
                         "\n       {reason: %s, what: %s, name: %s, seconds: %g, first: %g,"
                         " second: %g}",
                         reasons[part->reason], part->what, duet__difference_name(part),
                         part->seconds, part->first, part->second);
    }
    duet__json_print(json, "]}");
}

/* Writes the problem of a case, in both formats. */
static void put_problem(struct duet__json_writer *writer, const struct duet__case *the)
{
    const char precision[] = {the->precision, 0};
    duet__json_print(writer,
                     "workload: %s, settings: %s, n: %" PRIu64 ", tile: %" PRIu64 ", precision: %s"
                     "\n     platform: %s, cpus: %u, gpus: %u, policy: %s, set_arch: %d, hold: %d,"
                     " priorities: %s",
                     the->workload, the->settings, the->n, the->tile, precision, the->platform,
                     the->cpus, the->gpus, the->policy, the->set_arch, the->hold, the->priorities);
}

static void put_result(struct duet__json_writer *writer, const struct duet__case *the)
{
    duet__json_print(writer, "speed: %g, disturbed: %d, failure: %s",
                     known(the->speed > 0, the->speed), the->disturbed, the->failure);
}

static void put_error(struct duet__json_writer *writer, const struct duet__case *the)
{
    bool interval = duet__spreads(&the->measured.summary);
    duet__json_print(writer, "\n     error: %g, error_low: %g, error_high: %g, noise: %g",
                     the->error, known(interval, the->error_low), known(interval, the->error_high),
                     the->noise);
    duet__json_print(writer, "low_s: %g, high_s: %g", known(the->high_s > 0, the->low_s),
                     known(the->high_s > 0, the->high_s));
}

static void put_case(struct duet__json_writer *json, const struct duet__validation *validation,
                     const struct duet__case *the)
{
    g_autofree char *name = duet__case_name(the);
    duet__json_print(json, "\n    {name: %s", name);
    put_problem(json, the);
    put_result(json, the);
    put_side(json, "predicted", &the->predicted);
    put_side(json, "measured", &the->measured);
    put_error(json, the);
    write_explanation(json, validation, &the->explanation);
    duet__json_print(json, "}");
}

/* The explanation of all cases together; null where none is explained. */
static void put_causes(struct duet__json_writer *json, const struct duet__validation *validation)
{
    struct duet__causes causes = duet__causes_of(validation);
    if (causes.cases)
        duet__json_print(json, "\n causes: {cases: %zu, whole: %g, parts: [", causes.cases,
                         causes.whole);
    for (size_t i = 0; i < causes.count; i++)
        duet__json_print(json, "\n  {reason: %s, name: %s, share: %g}",
                         reasons[causes.parts[i].reason], causes.parts[i].name,
                         causes.parts[i].share);
    duet__json_print(json, causes.cases ? "]}" : "\n causes: null");
    g_free(causes.parts);
}

void duet__validation_write_json(FILE *stream, const struct duet__validation *validation)
{
    struct duet__json_writer json = {.stream = stream};
    duet__json_print(&json,
                     "{schema: 1\n command: %s\n title: %s\n first_name: %s\n second_name: %s"
                     "\n machine: %s\n calibration: %s\n date: %s\n fail_over: %g",
                     validation->command, validation->title, validation->first_name,
                     validation->second_name, validation->machine, validation->calibration,
                     validation->date, known(validation->fail_over > 0, validation->fail_over));
    DUET__ARRAY_WRITE(&json, "disturbed_rounds", DUET__INTEGER, validation->disturbed_rounds,
                      validation->disturbed_count);
    duet__json_print(&json,
                     "left_out_runs: %zu"
                     "\n summary: {cases: %zu, known: %zu, median: %g, p95: %g, worst: %g, bias: %g"
                     "\n  within_noise: %zu, noise: %g, intervals: %zu, inside: %zu, verdict: %s, "
                     "groups: %zu, best_right: %zu,"
                     " pairs: %zu, pairs_right: %zu, failed: %zu, unsettled: %zu, refused: %zu}",
                     validation->left_out, validation->case_count, validation->known,
                     validation->median, validation->p95, validation->worst, validation->bias,
                     validation->within_noise, validation->noise, validation->intervals,
                     validation->inside, validation->verdict, validation->groups,
                     validation->best_right, validation->pairs, validation->pairs_right,
                     validation->failed, validation->unsettled, validation->refused);
    put_causes(&json, validation);
    duet__json_print(&json, "\n cases: [");
    for (size_t i = 0; i < validation->case_count; i++)
        put_case(&json, validation, &validation->cases[i]);
    duet__json_print(&json, "\n ]}");
    putc('\n', stream);
}

/* ------------------------------------------------------------------------------------------- */
/* CSV                                                                                          */

static void put_side_cells(struct duet__json_writer *csv, const char *side,
                           const struct duet__summary *summary)
{
    g_autofree char *runs = g_strconcat(side, "_runs", NULL);
    g_autofree char *median = g_strconcat(side, "_s", NULL);
    g_autofree char *low = g_strconcat(side, "_low_s", NULL);
    g_autofree char *high = g_strconcat(side, "_high_s", NULL);
    duet__json_print(csv, "%s: %zu, %s: %g, %s: %g, %s: %g", runs, summary->count, median,
                     known(summary->count, summary->median), low,
                     known(duet__spreads(summary), summary->median_low), high,
                     known(duet__spreads(summary), summary->median_high));
}

static void put_explanation_cells(struct duet__json_writer *csv,
                                  const struct duet__explanation *explanation)
{
    double sums[G_N_ELEMENTS(reasons)] = {0};
    bool has = explanation->count > 0;
    for (size_t i = 0; i < explanation->count; i++)
        sums[explanation->differences[i].reason] += explanation->differences[i].seconds;
    duet__json_print(csv, "whole_s: %g", known(has, explanation->whole_s));
    for (size_t i = 0; i < G_N_ELEMENTS(reasons); i++) {
        g_autofree char *name = g_strconcat(reasons[i], "_s", NULL);
        duet__json_put_number(csv, name, known(has, sums[i]));
    }
    duet__json_print(csv, "moved_share: %g", known(has, explanation->moved_share));
}

static void put_line(struct duet__json_writer *csv, const struct duet__case *the)
{
    put_problem(csv, the);
    put_side_cells(csv, "predicted", &the->predicted.summary);
    put_side_cells(csv, "measured", &the->measured.summary);
    put_error(csv, the);
    put_result(csv, the);
    put_explanation_cells(csv, &the->explanation);
    duet__csv_end(csv);
}

void duet__validation_write_csv(FILE *stream, const struct duet__validation *validation)
{
    static const struct duet__case nothing = {0};
    struct duet__json_writer csv = {.stream = stream, .csv = DUET__CSV_HEADING};
    put_line(&csv, &nothing);
    for (size_t i = 0; i < validation->case_count; i++)
        put_line(&csv, &validation->cases[i]);
}
