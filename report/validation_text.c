/* SPDX-License-Identifier: Apache-2.0 */
/* A comparison for terminals: what was compared, a row a case, and what came out. */
#include "validate/validation.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "report/gantt.h"
#include "report/validation_parts.h"
#include "report/table.h"

enum {
    WORKLOAD,
    SETTINGS,
    PLATFORM,
    PRECISION,
    SIZE,
    TILE,
    POLICY,
    SET_ARCH,
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

/* Columns that are shown only where the cases differ in them. */
static const int of_differing[] = {SETTINGS, PLATFORM, PRECISION, SET_ARCH};

static char *percent(double share, bool sign)
{
    if (!isfinite(share))
        return g_strdup("-");
    return g_strdup_printf(sign ? "%+.*f" : "%.*f", fabs(share) < 10 ? 1 : 0, share * 100);
}

static void add_side(struct duet__table *table, const struct duet_summary *summary, double scale)
{
    int digits = duet__decimals(summary->median * scale, 4);

    if (summary->count)
        duet__table_print(table, "%.*f", digits, summary->median * scale);
    else
        duet__table_say(table, "-");
    if (summary->count >= DUET_INTERVAL_RUNS)
        duet__table_print(table, "%.*f-%.*f", digits, summary->median_low * scale, digits,
                          summary->median_high * scale);
    else
        duet__table_say(table, summary->count > 1 ? "-" : "");
}

static void add_count(struct duet__table *table, uint64_t count)
{
    if (count)
        duet__table_print(table, "%" PRIu64, count);
    else
        duet__table_say(table, "-");
}

/* One row; `scale`: units of time a second. */
static void add_row(struct duet__table *table, const struct duet_case *the, double scale)
{
    duet__table_say(table, the->workload);
    duet__table_say(table, the->settings);
    duet__table_say(table, the->platform);
    duet__table_say(table, the->precision == 's' ? "single" : "double");
    add_count(table, the->n);
    add_count(table, the->tile);
    duet__table_say(table, the->policy);
    duet__table_say(table, the->set_arch ? "yes" : "no");
    duet__table_print(table, "%u", the->cpus);
    duet__table_print(table, "%u", the->gpus);
    if (the->failure) {
        duet__table_remark(table, the->failure);
        return;
    }
    add_side(table, &the->predicted.summary, scale);
    add_side(table, &the->measured.summary, scale);
    duet__table_add(table, percent(the->error, true));
    duet__table_add(table, percent(the->noise, false));
    duet__table_add(table, percent(the->speed > 0 ? the->speed : NAN, false));
}

/* The two lines of headings. */
static void add_heads(struct duet__table *table, const struct duet_validation *validation,
                      const char *unit)
{
    const char *word = strcmp(duet__error_word(validation), "error") == 0 ? "error" : "diff.";
    const char *const heads[2][COLUMNS] = {
        {"workload", "settings", "platform", "precision", "n", "tile", "policy", "set-", "CPUs",
         "GPUs", validation->labels[0], "95% of", validation->labels[1], "95% of", word, "noise",
         "speed"},
        {"", "", "", "", "", "", "", "arch", "", "", unit, "median", unit, "median", "%", "+-%",
         "%"},
    };

    for (int line = 0; line < 2; line++)
        for (int column = 0; column < COLUMNS; column++)
            duet__table_say(table, heads[line][column]);
}

/* Whether any two rows differ in a column. */
static bool is_mixed(const struct duet__table *table, size_t rows, int column)
{
    for (size_t row = 1; row < rows; row++)
        if (strcmp(duet__table_cell(table, row + 2, (size_t)column),
                   duet__table_cell(table, 2, (size_t)column)) != 0)
            return true;
    return false;
}

static void choose_columns(struct duet__table *table, const struct duet_validation *validation)
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

/* The unit of all times: that of the shortest median, but milliseconds at least. */
static const char *unit_of(const struct duet_validation *validation, double *scale)
{
    double least = INFINITY;

    for (size_t i = 0; i < validation->case_count; i++) {
        const struct duet_case *the = &validation->cases[i];

        if (the->predicted.count)
            least = fmin(least, the->predicted.summary.median);
        if (the->measured.count)
            least = fmin(least, the->measured.summary.median);
    }
    *scale = least < 0.1 ? 1e3 : 1;
    return least < 0.1 ? "ms" : "s";
}

/* What the columns that are left out say of all cases. */
static void put_common(FILE *stream, const struct duet_case *the, const struct duet__table *table)
{
    if (table->columns[SETTINGS].hidden && the->settings[0])
        fprintf(stream, "all with %s\n", the->settings);
    if (table->columns[PRECISION].hidden && the->precision == 's')
        fputs("all in single precision\n", stream);
    if (table->columns[SET_ARCH].hidden && the->set_arch)
        fputs("all with set-arch\n", stream);
}

static void put_cases(FILE *stream, const struct duet_validation *validation)
{
    const char *const names[] = {validation->first_name, validation->second_name};
    struct duet__table table;
    double scale;
    const char *unit = unit_of(validation, &scale);

    duet__table_init(&table, "ttttrrtrrrrrrrrrr");
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
}

/* In which rounds others used the cores, and what became of the runs meanwhile. */
static void put_disturbed(FILE *stream, const struct duet_validation *validation)
{
    g_autoptr(GString) text = g_string_new("disturbed by other processes: round");

    g_string_append(text, validation->disturbed_count == 1 ? "" : "s");
    for (size_t i = 0; i < validation->disturbed_count; i++)
        g_string_append_printf(text, "%s%zu", i ? ", " : " ", validation->disturbed_rounds[i]);
    g_string_append_printf(text, "; %zu of their runs left out", validation->left_out);
    if (validation->disturbed_count)
        duet__put_wrapped(stream, text->str, 4);
}

static void put_head(FILE *stream, const struct duet_validation *validation)
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
    put_disturbed(stream, validation);
}

static void put_order(FILE *stream, const struct duet_validation *validation)
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

static void put_failed(FILE *stream, const struct duet_validation *validation)
{
    double limit = validation->fail_over * 100;

    if (validation->refused)
        fprintf(stream, "%zu of %zu cases without a result\n", validation->refused,
                validation->case_count);
    if (validation->failed)
        fprintf(stream, "FAILED: %zu of %zu cases over %g %%\n", validation->failed,
                validation->case_count, limit);
    else if (validation->fail_over > 0 && validation->known)
        fprintf(stream, "passed: no %s over %g %%\n", duet__error_word(validation), limit);
}

static void put_summary(FILE *stream, const struct duet_validation *validation)
{
    bool noise = false; /* known of any case */

    for (size_t i = 0; i < validation->case_count; i++)
        noise |= !isnan(validation->cases[i].noise);
    if (validation->known) {
        fprintf(stream, "\nabsolute %s: median %.1f %%, 95 %% of the cases below %.1f %%",
                duet__error_word(validation), validation->median * 100, validation->p95 * 100);
        fprintf(stream, ", worst %.1f %%; bias %+.1f %%\n", validation->worst * 100,
                validation->bias * 100);
        if (noise)
            fprintf(stream, "%zu of %zu within the noise of measuring\n", validation->within_noise,
                    validation->known);
    } else {
        fprintf(stream, "\nno case has a result\n");
    }
    put_order(stream, validation);
    put_failed(stream, validation);
}

void duet_validation_write_text(FILE *stream, const struct duet_validation *validation,
                                bool verbose)
{
    put_head(stream, validation);
    if (!validation->case_count)
        return;
    put_cases(stream, validation);
    put_summary(stream, validation);
    duet__put_explanation(stream, validation, verbose);
}
