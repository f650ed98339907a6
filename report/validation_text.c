/* SPDX-License-Identifier: Apache-2.0 */
/* A comparison for terminals: what was compared, a row a case, and what came out. */
#include "validate/validation.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "report/gantt.h"
#include "report/validation_explain.h"
#include "report/validation_parts.h"
#include "report/validation_table.h"

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

/* Digits after the point that make four significant ones. */
static int digits_of(double value)
{
    return value > 0 ? CLAMP(3 - (int)floor(log10(value)), 0, 9) : 0;
}

static void fill_side(const struct duet_summary *summary, double scale, char **median,
                      char **interval)
{
    int digits = digits_of(summary->median * scale);

    *median =
        summary->count ? g_strdup_printf("%.*f", digits, summary->median * scale) : g_strdup("-");
    *interval = summary->count > 1
                    ? g_strdup_printf("%.*f-%.*f", digits, summary->median_low * scale, digits,
                                      summary->median_high * scale)
                    : g_strdup("");
}

/* One row; `scale`: units of time a second. The caller frees the cells. */
static void fill_row(const struct duet_case *the, const struct duet_case_figures *figures,
                     double scale, char **cells)
{
    cells[WORKLOAD] = g_strdup(the->workload);
    cells[SETTINGS] = g_strdup(the->settings);
    cells[PLATFORM] = g_strdup(the->platform);
    cells[PRECISION] = g_strdup(the->precision == 's' ? "single" : "double");
    cells[SIZE] = the->n ? g_strdup_printf("%" PRIu64, the->n) : g_strdup("-");
    cells[TILE] = the->tile ? g_strdup_printf("%" PRIu64, the->tile) : g_strdup("-");
    cells[POLICY] = g_strdup(the->policy);
    cells[SET_ARCH] = g_strdup(the->set_arch ? "yes" : "no");
    cells[CPUS] = g_strdup_printf("%u", the->cpus);
    cells[GPUS] = g_strdup_printf("%u", the->gpus);
    fill_side(&figures->predicted, scale, &cells[FIRST], &cells[FIRST_INTERVAL]);
    fill_side(&figures->measured, scale, &cells[SECOND], &cells[SECOND_INTERVAL]);
    cells[ERROR] = percent(figures->error, true);
    cells[NOISE] = percent(figures->noise, false);
    cells[SPEED] = percent(the->speed > 0 ? the->speed : NAN, false);
}

static void init_columns(struct duet__column *columns, const char *unit, const char *word,
                         char *const labels[2])
{
    static const struct duet__column fixed[COLUMNS] = {
        [WORKLOAD] = {{"workload", ""}, true, true, 0},
        [SETTINGS] = {{"settings", ""}, true, true, 0},
        [PLATFORM] = {{"platform", ""}, true, true, 2},
        [PRECISION] = {{"precision", ""}, true, true, 0},
        [SIZE] = {{"n", ""}, false, true, 0},
        [TILE] = {{"tile", ""}, false, true, 0},
        [POLICY] = {{"policy", ""}, true, true, 0},
        [SET_ARCH] = {{"set-", "arch"}, false, true, 0},
        [CPUS] = {{"CPUs", ""}, false, true, 0},
        [GPUS] = {{"GPUs", ""}, false, true, 0},
        [FIRST_INTERVAL] = {{"95% of", "median"}, false, true, 4},
        [SECOND_INTERVAL] = {{"95% of", "median"}, false, true, 3},
        [ERROR] = {{NULL, "%"}, false, true, 0},
        [NOISE] = {{"noise", "+-%"}, false, true, 0},
        [SPEED] = {{"speed", "%"}, false, true, 1},
    };

    memcpy(columns, fixed, sizeof(fixed));
    columns[FIRST] = (struct duet__column){{labels[0], unit}, false, true, 0};
    columns[SECOND] = (struct duet__column){{labels[1], unit}, false, true, 0};
    columns[ERROR].heads[0] = strcmp(word, "error") == 0 ? word : "diff.";
}

/* Whether any two rows differ in a column. */
static bool is_mixed(char *const *cells, size_t rows, int column)
{
    for (size_t row = 1; row < rows; row++)
        if (strcmp(cells[row * COLUMNS + (size_t)column], cells[column]) != 0)
            return true;
    return false;
}

static void choose_columns(struct duet__column *columns, const struct duet_validation *validation,
                           const struct duet_validation_figures *figures, char *const *cells)
{
    bool repeated[2] = {false, false}, speed = false;

    for (size_t i = 0; i < validation->case_count; i++) {
        repeated[0] |= figures->cases[i].predicted.count > 1;
        repeated[1] |= figures->cases[i].measured.count > 1;
        speed |= validation->cases[i].speed > 0;
    }
    columns[FIRST_INTERVAL].shown = repeated[0];
    columns[SECOND_INTERVAL].shown = columns[NOISE].shown = repeated[1];
    columns[SPEED].shown = speed;
    for (size_t i = 0; i < G_N_ELEMENTS(of_differing); i++)
        columns[of_differing[i]].shown = is_mixed(cells, validation->case_count, of_differing[i]);
}

/* The unit of all times: that of the shortest median, but milliseconds at least. */
static const char *unit_of(const struct duet_validation *validation,
                           const struct duet_validation_figures *figures, double *scale)
{
    double least = INFINITY;

    for (size_t i = 0; i < validation->case_count; i++) {
        const struct duet_case_figures *f = &figures->cases[i];

        if (f->predicted.count)
            least = fmin(least, f->predicted.median);
        if (f->measured.count)
            least = fmin(least, f->measured.median);
    }
    *scale = least < 0.1 ? 1e3 : 1;
    return least < 0.1 ? "ms" : "s";
}

/* What the columns that are left out say of all cases. */
static void put_common(FILE *stream, const struct duet_case *the,
                       const struct duet__column *columns)
{
    if (!columns[SETTINGS].shown && the->settings[0])
        fprintf(stream, "all with %s\n", the->settings);
    if (!columns[PRECISION].shown && the->precision == 's')
        fputs("all in single precision\n", stream);
    if (!columns[SET_ARCH].shown && the->set_arch)
        fputs("all with set-arch\n", stream);
}

/* Names of the sides where the headings have only a part of them. */
static void put_names(FILE *stream, const char *name, const char *label)
{
    if (strcmp(name, label) != 0)
        duet__put_wrapped(stream, name, 4);
}

static void put_cases(FILE *stream, const struct duet_validation *validation,
                      const struct duet_validation_figures *figures)
{
    size_t count = validation->case_count;
    char **cells = g_new0(char *, count *COLUMNS + 1);
    const char **remarks = g_new0(const char *, count + 1);
    char *labels[2] = {duet__side_label(validation->first_name),
                       duet__side_label(validation->second_name)};
    struct duet__column columns[COLUMNS];
    double scale;
    const char *unit = unit_of(validation, figures, &scale);

    for (size_t i = 0; i < count; i++) {
        fill_row(&validation->cases[i], &figures->cases[i], scale, cells + i * COLUMNS);
        remarks[i] = validation->cases[i].failure;
    }
    init_columns(columns, unit, duet__error_word(validation), labels);
    choose_columns(columns, validation, figures, cells);
    put_names(stream, validation->first_name, labels[0]);
    put_names(stream, validation->second_name, labels[1]);
    put_common(stream, &validation->cases[0], columns);
    putc('\n', stream);
    duet__columns_put(stream, columns, COLUMNS, (const char *const *)cells, count, remarks, FIRST);
    for (size_t i = 0; i < count * COLUMNS; i++)
        g_free(cells[i]);
    g_free(cells);
    g_free(remarks);
    g_free(labels[0]);
    g_free(labels[1]);
}

static void put_head(FILE *stream, const struct duet_validation *validation,
                     const struct duet_validation_figures *figures)
{
    char *labels[2] = {duet__side_label(validation->first_name),
                       duet__side_label(validation->second_name)};
    size_t runs[2] = {0, 0};
    char *text;

    for (size_t i = 0; i < validation->case_count; i++) {
        runs[0] += figures->cases[i].predicted.count;
        runs[1] += figures->cases[i].measured.count;
    }
    duet__put_wrapped(stream, validation->title, 4);
    text = g_strdup_printf("on %s, %s", validation->machine, validation->date);
    duet__put_wrapped(stream, text, 4);
    g_free(text);
    if (validation->calibration[0]) {
        text = g_strdup_printf("calibration: %s", validation->calibration);
        duet__put_wrapped(stream, text, 4);
        g_free(text);
    }
    text = g_strdup_printf("%zu case%s, runs: %zu %s, %zu %s", validation->case_count,
                           validation->case_count == 1 ? "" : "s", runs[0], labels[0], runs[1],
                           labels[1]);
    duet__put_wrapped(stream, text, 4);
    g_free(text);
    g_free(labels[0]);
    g_free(labels[1]);
}

static void put_order(FILE *stream, const struct duet_validation *validation,
                      const struct duet_validation_figures *figures)
{
    bool predicted = strcmp(validation->first_name, "predicted") == 0;

    if (!figures->groups)
        return;
    fprintf(stream, "policies: the fastest is %s in %zu of %zu group%s",
            predicted ? "predicted right" : "the same", figures->best_right, figures->groups,
            figures->groups == 1 ? "" : "s");
    if (figures->pairs)
        fprintf(stream, "; %zu of %zu pair%s in %s order", figures->pairs_right, figures->pairs,
                figures->pairs == 1 ? "" : "s", predicted ? "the predicted" : "the same");
    putc('\n', stream);
}

static void put_failed(FILE *stream, const struct duet_validation *validation,
                       const struct duet_validation_figures *figures)
{
    double limit = validation->fail_over * 100;

    if (figures->refused)
        fprintf(stream, "%zu of %zu cases without a result\n", figures->refused,
                validation->case_count);
    if (figures->failed)
        fprintf(stream, "FAILED: %zu of %zu cases over %g %%\n", figures->failed,
                validation->case_count, limit);
    else if (validation->fail_over > 0 && figures->known)
        fprintf(stream, "passed: no %s over %g %%\n", duet__error_word(validation), limit);
}

static void put_summary(FILE *stream, const struct duet_validation *validation,
                        const struct duet_validation_figures *figures)
{
    bool noise = false; /* known of any case */

    for (size_t i = 0; i < validation->case_count; i++)
        noise |= !isnan(figures->cases[i].noise);
    if (figures->known) {
        fprintf(stream, "\nabsolute %s: median %.1f %%, 95 %% of the cases below %.1f %%",
                duet__error_word(validation), figures->median * 100, figures->p95 * 100);
        fprintf(stream, ", worst %.1f %%; bias %+.1f %%\n", figures->worst * 100,
                figures->bias * 100);
        if (noise)
            fprintf(stream, "%zu of %zu within the noise of measuring\n", figures->within_noise,
                    figures->known);
    } else {
        fprintf(stream, "\nno case has a result\n");
    }
    put_order(stream, validation, figures);
    put_failed(stream, validation, figures);
}

void duet_validation_write_text(FILE *stream, const struct duet_validation *validation,
                                const struct duet_validation_figures *figures, bool verbose)
{
    put_head(stream, validation, figures);
    if (!validation->case_count)
        return;
    put_cases(stream, validation, figures);
    put_summary(stream, validation, figures);
    duet__put_explanation(stream, validation, figures, verbose);
}
