/* SPDX-License-Identifier: Apache-2.0 */
/* Writes a comparison for terminals: the files, a row a case, and the summary. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/table.h"
#include "report/gantt.h"
#include "report/report.h"
#include "validate/validation.h"

/* ------------------------------------------------------------------------------------------- */
/* Names and sums shared by all texts made from a comparison                                    */

/* Part of the largest one from which a part that causes others is named first. The workers that
 * wait for a kernel on the critical path are idle, so that its own part is smaller. */
static const double cause_share = 1.0 / 3;

/* Returns "error", or, if nothing was predicted, "difference". */
static const char *error_word(const struct duet__validation *validation)
{
    return strcmp(validation->first_name, "predicted") == 0 ? "error" : "difference";
}

const char *duet__difference_name(const struct duet__difference *difference)
{
    return difference->what[0] ? difference->what : duet__reason_name(difference->reason);
}

/* A time with four significant digits and its unit: "15.20 ms". The caller frees it with g_free. */
static char *time_text(double seconds)
{
    double scale;
    const char *unit = duet__gantt_unit(fabs(seconds), &scale);
    if (!(fabs(seconds) >= 1e-9)) /* less than a clock tells */
        return g_strdup("0 s");
    return g_strdup_printf("%.*f %s", duet__decimals(fabs(seconds) * scale, 4), seconds * scale,
                           unit);
}

/* A share in percent, always with a sign: "+5.2 %"; "-" if not known. The caller frees it with
 * g_free. */
static char *percent_text(double share)
{
    if (!isfinite(share))
        return g_strdup("-");
    if (fabs(share) < 5e-5) /* without a sign what is written as 0 */
        return g_strdup("0.00 %");
    return g_strdup_printf("%+.*f %%", fabs(share) < 0.1 ? 2 : 1, share * 100);
}

/* True if a part mostly follows from others, or tells nothing of the kernels that ran. */
static bool follows(enum duet__reason reason)
{
    return reason == DUET_REASON_IDLE || reason == DUET_REASON_OVERHEAD ||
           reason == DUET_REASON_SPREAD;
}

const struct duet__difference *duet__culprit(const struct duet__explanation *explanation)
{
    const struct duet__difference *most = explanation->differences;
    for (size_t i = 0; i < explanation->count; i++) {
        const struct duet__difference *part = &explanation->differences[i];
        /* a part of the opposite sign has not caused the largest */
        if (!follows(part->reason) && part->seconds * most->seconds > 0 &&
            fabs(part->seconds) >= cause_share * fabs(most->seconds))
            return part;
    }
    return explanation->count ? most : NULL;
}

char *duet__culprit_text(const struct duet__validation *validation,
                         const struct duet__explanation *explanation)
{
    const struct duet__difference *most = duet__culprit(explanation);
    g_autofree char *first = NULL, *second = NULL, *change = NULL;
    if (!most)
        return NULL;
    first = time_text(most->first);
    second = time_text(most->second);
    change = most->second > 0 ? percent_text(most->first / most->second - 1) : NULL;
    return g_strdup_printf("%s%s %s %s, %s %s%s%s%s", duet__difference_name(most),
                           most->reason == DUET_REASON_KERNEL ? " takes" : ":", first,
                           validation->labels[0], second, validation->labels[1], change ? " (" : "",
                           change ? change : "", change ? ")" : "");
}

static int compare_causes(const void *left, const void *right)
{
    const struct duet__mean_part *a = left, *b = right;
    double x = fabs(a->share), y = fabs(b->share);
    return x > y || x < y ? (x > y ? -1 : 1) : strcmp(a->name, b->name);
}

static struct duet__mean_part *find_cause(GArray *parts, const struct duet__difference *difference)
{
    struct duet__mean_part part = {.reason = difference->reason};
    g_strlcpy(part.name, duet__difference_name(difference), sizeof(part.name));
    for (guint i = 0; i < parts->len; i++) {
        struct duet__mean_part *known = &g_array_index(parts, struct duet__mean_part, i);
        if (known->reason == part.reason && strcmp(known->name, part.name) == 0)
            return known;
    }
    g_array_append_val(parts, part);
    return &g_array_index(parts, struct duet__mean_part, parts->len - 1);
}

struct duet__causes duet__causes_of(const struct duet__validation *validation)
{
    GArray *parts = g_array_new(FALSE, FALSE, sizeof(struct duet__mean_part));
    struct duet__causes causes = {0};
    for (size_t i = 0; i < validation->case_count; i++) {
        const struct duet__explanation *explanation = &validation->cases[i].explanation;
        if (!explanation->count || !(explanation->second_s > 0))
            continue;
        causes.cases++;
        causes.whole += explanation->whole_s / explanation->second_s;
        for (size_t k = 0; k < explanation->count; k++)
            find_cause(parts, &explanation->differences[k])->share +=
                explanation->differences[k].seconds / explanation->second_s;
    }
    causes.count = parts->len;
    causes.parts = (struct duet__mean_part *)(void *)g_array_free(parts, FALSE);
    for (size_t i = 0; i < causes.count; i++)
        causes.parts[i].share /= (double)causes.cases;
    if (causes.cases) {
        causes.whole /= (double)causes.cases;
        qsort(causes.parts, causes.count, sizeof(*causes.parts), compare_causes);
    }
    return causes;
}

/* ------------------------------------------------------------------------------------------- */
/* The text                                                                                     */

enum {
    WORKLOAD,
    SETTINGS,
    PLATFORM,
    PRECISION,
    SIZE,
    TILE,
    POLICY,
    SET_ARCH,
    HELD,
    PRIORITIES,
    CPUS,
    GPUS,
    FIRST, /* column of figures */
    FIRST_INTERVAL,
    SECOND,
    SECOND_INTERVAL,
    ERROR,
    NOISE,
    SPEED,
    COLUMNS,
};

/* Columns that are shown only if the cases differ in them. */
static const int of_differing[] = {SETTINGS, PLATFORM, PRECISION, SET_ARCH, HELD, PRIORITIES};

/* Returns the digits after the point of a share in percent. */
static int digits_of(double share)
{
    return fabs(share) < 10 ? 1 : 0;
}

/* Adds a side's median and its interval: that of a median of later runs, if `high_s` is not 0. */
static void add_side(struct duet__table *table, const struct duet__summary *summary, double low_s,
                     double high_s, double scale)
{
    int digits = duet__decimals(summary->median * scale, 4);
    duet__table_print(table, "%.*f", digits, summary->count ? summary->median * scale : NAN);
    if (high_s > 0)
        duet__table_print(table, "%.*f-%.*f", digits, low_s * scale, digits, high_s * scale);
    else if (duet__spreads(summary))
        duet__table_print(table, "%.*f-%.*f%s", digits, summary->median_low * scale, digits,
                          summary->median_high * scale, summary->holds ? "" : "*");
    else
        duet__table_say(table, summary->count > 1 ? "-" : "");
}

/* Adds the row of a case; `scale`: units of time a second. */
static void add_row(struct duet__table *table, const struct duet__case *the, double scale)
{
    duet__table_say(table, the->workload);
    duet__table_say(table, the->settings);
    duet__table_say(table, the->platform);
    duet__table_print(table, "%s\t%.0f\t%.0f",
                      the->precision == 's'   ? "single"
                      : the->precision == 'd' ? "double"
                                              : "-",
                      the->n ? (double)the->n : NAN, the->tile ? (double)the->tile : NAN);
    duet__table_say(table, the->policy);
    duet__table_print(table, "%s\t%s", the->set_arch ? "yes" : "no", the->hold ? "yes" : "no");
    duet__table_say(table, the->priorities);
    duet__table_print(table, "%u\t%u", the->cpus, the->gpus);
    if (the->failure) {
        duet__table_remark(table, the->failure);
        return;
    }
    add_side(table, &the->predicted.summary, the->low_s, the->high_s, scale);
    add_side(table, &the->measured.summary, 0, 0, scale);
    duet__table_print(table, "%+.*f\t%.*f\t%.*f", digits_of(the->error), the->error * 100,
                      digits_of(the->noise), the->noise * 100, digits_of(the->speed),
                      the->speed > 0 ? the->speed * 100 : NAN);
}

/* True if intervals of later runs stand beside predictions. */
static bool has_intervals(const struct duet__validation *validation)
{
    for (size_t i = 0; i < validation->case_count; i++)
        if (validation->cases[i].high_s > 0)
            return true;
    return false;
}

/* The two lines of headings. */
static void add_heads(struct duet__table *table, const struct duet__validation *validation,
                      const char *unit)
{
    const char *word = strcmp(error_word(validation), "error") == 0 ? "error" : "diff.";
    const bool any = has_intervals(validation);
    const char *later = any ? "90% of" : "95% of";
    const char *const heads[2][COLUMNS] = {
        {"workload", "settings", "platform", "precision", "n", "tile", "policy", "set-", "held",
         "priorities", "CPUs", "GPUs", validation->labels[0], later, validation->labels[1],
         "95% of", word, "noise", "speed"},
        {"", "", "", "", "", "", "", "arch", "", "", "", "", unit, any ? "later" : "median", unit,
         "median", "%", "+-%", "%"},
    };
    for (int line = 0; line < 2; line++)
        for (int column = 0; column < COLUMNS; column++)
            duet__table_say(table, heads[line][column]);
}

/* True if any two rows differ in a column. */
static bool is_mixed(const struct duet__table *table, size_t rows, int column)
{
    for (size_t row = 1; row < rows; row++)
        if (strcmp(duet__table_cell(table, row + 2, (size_t)column),
                   duet__table_cell(table, 2, (size_t)column)) != 0)
            return true;
    return false;
}

static void choose_columns(struct duet__table *table, const struct duet__validation *validation)
{
    bool repeated[2] = {false, false}, speed = false;
    for (size_t i = 0; i < validation->case_count; i++) {
        repeated[0] |= validation->cases[i].predicted.count > 1;
        repeated[1] |= validation->cases[i].measured.count > 1;
        speed |= validation->cases[i].speed > 0;
    }
    table->columns[PLATFORM].spare = 2;
    table->columns[FIRST_INTERVAL].spare = 4;
    table->columns[SECOND_INTERVAL].spare = 3;
    table->columns[SPEED].spare = 1;
    table->columns[FIRST_INTERVAL].hidden = !repeated[0];
    table->columns[SECOND_INTERVAL].hidden = table->columns[NOISE].hidden = !repeated[1];
    table->columns[SPEED].hidden = !speed;
    for (size_t i = 0; i < G_N_ELEMENTS(of_differing); i++)
        table->columns[of_differing[i]].hidden =
            !is_mixed(table, validation->case_count, of_differing[i]);
}

/* Returns the unit of all times: that of the shortest median, but at least milliseconds. */
static const char *unit_of(const struct duet__validation *validation, double *scale)
{
    double least = INFINITY;
    for (size_t i = 0; i < validation->case_count; i++) {
        const struct duet__case *the = &validation->cases[i];
        if (the->predicted.count)
            least = fmin(least, the->predicted.summary.median);
        if (the->measured.count)
            least = fmin(least, the->measured.summary.median);
    }
    *scale = least < 0.1 ? 1e3 : 1;
    return least < 0.1 ? "ms" : "s";
}

/* Writes the values that all cases share, whose columns are left out. */
static void put_common(FILE *stream, const struct duet__case *the, const struct duet__table *table)
{
    if (table->columns[SETTINGS].hidden && the->settings[0])
        fprintf(stream, "all with %s\n", the->settings);
    if (table->columns[PRECISION].hidden && the->precision == 's')
        fputs("all in single precision\n", stream);
    if (table->columns[SET_ARCH].hidden && the->set_arch)
        fputs("all with set-arch\n", stream);
    if (table->columns[HELD].hidden && the->hold)
        fputs("all held until everything is submitted\n", stream);
    if (table->columns[PRIORITIES].hidden && strcmp(the->priorities, "workload") != 0)
        fprintf(stream, "all with priorities %s\n", the->priorities);
}

static bool is_marked(const struct duet__summary *summary)
{
    return duet__spreads(summary) && !summary->holds;
}

/* Writes the meaning of the mark at some intervals. */
static void put_mark(FILE *stream, const struct duet__validation *validation)
{
    bool any = false;
    for (size_t i = 0; i < validation->case_count; i++)
        any |= is_marked(&validation->cases[i].predicted.summary) ||
               is_marked(&validation->cases[i].measured.summary);
    if (any)
        fprintf(stream, "* of fewer than %d rounds, or of fewer runs: has less than 95 %%\n",
                DUET_INTERVAL_HOLDS);
}

static void put_cases(FILE *stream, const struct duet__validation *validation)
{
    const char *const names[] = {validation->first_name, validation->second_name};
    struct duet__table table;
    double scale;
    const char *unit = unit_of(validation, &scale);
    duet__table_init(&table, "ttttrrtrrtrrrrrrrrr");
    table.page = DUET__WIDE_PAGE;
    add_heads(&table, validation, unit);
    for (size_t i = 0; i < validation->case_count; i++)
        add_row(&table, &validation->cases[i], scale);
    choose_columns(&table, validation);
    for (int side = 0; side < 2; side++)
        if (strcmp(names[side], validation->labels[side]) !=
            0) /* the headings have only a part of it */
            duet__put_wrapped(stream, names[side], 4);
    put_common(stream, &validation->cases[0], &table);
    putc('\n', stream);
    duet__table_put(&table, stream, 0);
    put_mark(stream, validation);
}

void duet__put_disturbed(FILE *stream, const size_t *rounds, size_t count, size_t left_out)
{
    g_autoptr(GString) text = g_string_new("disturbed by other processes: round");
    g_string_append(text, count == 1 ? "" : "s");
    for (size_t i = 0; i < count; i++)
        g_string_append_printf(text, "%s%zu", i ? ", " : " ", rounds[i]);
    if (left_out)
        g_string_append_printf(text, "; %zu of their runs left out", left_out);
    if (count)
        duet__put_wrapped(stream, text->str, 4);
}

static void put_head(FILE *stream, const struct duet__validation *validation)
{
    size_t runs[2] = {0, 0};
    g_autofree char *where = g_strdup_printf("on %s, %s", validation->machine, validation->date);
    g_autofree char *from = g_strdup_printf("calibration: %s", validation->calibration);
    g_autofree char *counts = NULL;
    for (size_t i = 0; i < validation->case_count; i++) {
        runs[0] += validation->cases[i].predicted.count;
        runs[1] += validation->cases[i].measured.count;
    }
    counts = g_strdup_printf("%zu case%s, runs: %zu %s, %zu %s", validation->case_count,
                             validation->case_count == 1 ? "" : "s", runs[0], validation->labels[0],
                             runs[1], validation->labels[1]);
    duet__put_wrapped(stream, validation->title, 4);
    duet__put_wrapped(stream, where, 4);
    if (validation->calibration[0])
        duet__put_wrapped(stream, from, 4);
    duet__put_wrapped(stream, counts, 4);
    duet__put_disturbed(stream, validation->disturbed_rounds, validation->disturbed_count,
                        validation->left_out);
}

static void put_order(FILE *stream, const struct duet__validation *validation)
{
    bool predicted = strcmp(validation->first_name, "predicted") == 0;
    if (!validation->groups)
        return;
    fprintf(stream, "policies: the fastest is %s in %zu of %zu group%s",
            predicted ? "predicted right" : "the same", validation->best_right, validation->groups,
            validation->groups == 1 ? "" : "s");
    if (validation->pairs)
        fprintf(stream, "; %zu of %zu pair%s in %s order", validation->pairs_right,
                validation->pairs, validation->pairs == 1 ? "" : "s",
                predicted ? "the predicted" : "the same");
    putc('\n', stream);
}

static void put_failed(FILE *stream, const struct duet__validation *validation)
{
    double limit = validation->fail_over * 100;
    if (validation->unsettled) {
        g_autofree char *text = g_strdup_printf(
            "nothing is concluded of %zu of %zu case%s: other processes used the cores in each of "
            "their rounds; measure again without them, or add --keep-disturbed",
            validation->unsettled, validation->case_count, validation->case_count == 1 ? "" : "s");
        duet__put_wrapped(stream, text, 4);
    }
    if (validation->refused)
        fprintf(stream, "%zu of %zu cases without a result\n", validation->refused,
                validation->case_count);
    if (validation->failed)
        fprintf(stream, "FAILED: %zu of %zu cases over %g %%\n", validation->failed,
                validation->case_count, limit);
    else if (validation->fail_over > 0 && validation->known && !validation->unsettled)
        fprintf(stream, "passed: no %s over %g %%\n", error_word(validation), limit);
}

static void put_summary(FILE *stream, const struct duet__validation *validation)
{
    if (validation->known) {
        fprintf(stream, "\nabsolute %s: median %.1f %%, 95 %% of the cases below %.1f %%",
                error_word(validation), validation->median * 100, validation->p95 * 100);
        fprintf(stream, ", worst %.1f %%; bias %+.1f %%\n", validation->worst * 100,
                validation->bias * 100);
        if (validation->verdict)
            duet__put_wrapped(stream, validation->verdict, 4);
    } else {
        fprintf(stream, "\nno case has a result\n");
    }
    if (validation->intervals)
        fprintf(stream, "measured inside the interval of 90 %% in %zu of %zu case%s\n",
                validation->inside, validation->intervals, validation->intervals == 1 ? "" : "s");
    put_order(stream, validation);
    put_failed(stream, validation);
}

/* ------------------------------------------------------------------------------------------- */
/* The explanation: tables of parts that add up                                                 */

enum {
    WORST = 3,  /* explained cases, the worst ones */
    PARTS = 10, /* lines of the explanation over all cases */
};

/* A smaller part, a ten-thousandth of the makespan, is not worth a line. */
static const double least_share = 1e-4;

static void add_others(struct duet__table *table, size_t count)
{
    duet__table_print(table, "the other %zu part%s", count, count == 1 ? "" : "s");
}

/* Seconds and share of a part, in the unit and with the digits of the whole, so that the parts can
 * be added up. */
static void add_part(struct duet__table *table, double seconds, double whole_s)
{
    double scale;
    const char *unit = duet__gantt_unit(whole_s, &scale);
    duet__table_print(table, "%+.*f %s", duet__decimals(whole_s * scale, 5), seconds * scale, unit);
    duet__table_add(table, percent_text(whole_s > 0 ? seconds / whole_s : NAN));
}

/* Adds the two figures behind a part; nothing if there are none. */
static void add_figures(struct duet__table *table, double first, double second, const char *what)
{
    if (!(fabs(first) > 0 || fabs(second) > 0)) {
        duet__table_print(table, "\t\t");
        return;
    }
    duet__table_add(table, time_text(first));
    duet__table_add(table, time_text(second));
    duet__table_say(table, what);
}

static void put_parts(FILE *stream, const struct duet__validation *validation,
                      const struct duet__explanation *explanation)
{
    double whole_s = explanation->second_s, rest_s = 0;
    struct duet__table table;
    size_t rest = 0;
    duet__table_init(&table, "trrrrl");
    table.page = DUET__WIDE_PAGE;
    duet__table_print(&table, "\t\t\t%s\t%s\t", validation->labels[0], validation->labels[1]);
    for (size_t i = 0; i < explanation->count; i++) {
        const struct duet__difference *part = &explanation->differences[i];
        if (i > 0 && fabs(part->seconds) < least_share * whole_s) {
            rest++;
            rest_s += part->seconds;
            continue;
        }
        duet__table_say(&table, duet__difference_name(part));
        add_part(&table, part->seconds, whole_s);
        add_figures(&table, part->first, part->second,
                    part->reason == DUET_REASON_KERNEL ? "a task" : "");
    }
    if (rest) {
        add_others(&table, rest);
        add_part(&table, rest_s, whole_s);
        add_figures(&table, 0, 0, "");
    }
    duet__table_say(&table, "sum");
    add_part(&table, explanation->whole_s, whole_s);
    add_figures(&table, explanation->first_s, explanation->second_s, "makespan");
    duet__table_put(&table, stream, 2);
}

static void explain_case(FILE *stream, const struct duet__validation *validation,
                         const struct duet__case *the)
{
    const struct duet__explanation *explanation = &the->explanation;
    g_autofree char *name = duet__case_name(the);
    g_autofree char *error = percent_text(the->error);
    g_autofree char *line = g_strdup_printf("%s: %s", name, error);
    g_autofree char *culprit = duet__culprit_text(validation, explanation);
    g_autofree char *cause = g_strdup_printf("  largest cause: %s", culprit);
    putc('\n', stream);
    duet__put_wrapped(stream, line, 4);
    put_parts(stream, validation, explanation);
    duet__put_wrapped(stream, cause, 4);
    if (explanation->moved_share > 0.005)
        fprintf(stream, "  %.0f %% of the tasks' time ran on another architecture\n",
                explanation->moved_share * 100);
}

static void explain_all(FILE *stream, const struct duet__validation *validation,
                        const struct duet__causes *causes)
{
    size_t shown = MIN(causes->count, PARTS);
    g_autofree char *head =
        g_strdup_printf("where the %s comes from, mean of %zu case%s, of the makespan %s:",
                        error_word(validation), causes->cases, causes->cases == 1 ? "" : "s",
                        validation->labels[1]);
    struct duet__table table;
    double rest = 0;
    putc('\n', stream);
    duet__put_wrapped(stream, head, 4);
    duet__table_init(&table, "tr");
    table.page = DUET__WIDE_PAGE;
    for (size_t i = 0; i < shown; i++) {
        duet__table_say(&table, causes->parts[i].name);
        duet__table_add(&table, percent_text(causes->parts[i].share));
    }
    for (size_t i = shown; i < causes->count; i++)
        rest += causes->parts[i].share;
    if (shown < causes->count) {
        add_others(&table, causes->count - shown);
        duet__table_add(&table, percent_text(rest));
    }
    duet__table_say(&table, "sum");
    duet__table_add(&table, percent_text(causes->whole));
    duet__table_put(&table, stream, 2);
}

/* Sorts by the absolute error, the largest first, unknown ones last. */
static int compare_errors(const void *left, const void *right)
{
    const struct duet__case *a = *(const struct duet__case *const *)left;
    const struct duet__case *b = *(const struct duet__case *const *)right;
    double x = isnan(a->error) ? -1 : fabs(a->error), y = isnan(b->error) ? -1 : fabs(b->error);
    return x > y || x < y ? (x > y ? -1 : 1) : (a > b) - (a < b);
}

/* Writes the explanation over all cases, then of the worst, or of all if `verbose`. */
static void put_explanation(FILE *stream, const struct duet__validation *validation, bool verbose)
{
    struct duet__causes causes = duet__causes_of(validation);
    size_t count = validation->case_count, written = 0;
    const struct duet__case **order = g_new(const struct duet__case *, count + 1);
    if (causes.cases > 1) /* the explanation of a single case says it itself */
        explain_all(stream, validation, &causes);
    for (size_t i = 0; i < count; i++)
        order[i] = &validation->cases[i];
    if (!verbose)
        qsort(order, count, sizeof(*order), compare_errors);
    for (size_t i = 0; i < count && (verbose || written < WORST); i++) {
        if (!order[i]->explanation.count)
            continue;
        explain_case(stream, validation, order[i]);
        written++;
    }
    g_free(order);
    g_free(causes.parts);
}

void duet__validation_write_text(FILE *stream, const struct duet__validation *validation,
                                 bool verbose)
{
    put_head(stream, validation);
    if (!validation->case_count)
        return;
    put_cases(stream, validation);
    put_summary(stream, validation);
    put_explanation(stream, validation, verbose);
}
