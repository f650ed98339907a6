/* SPDX-License-Identifier: Apache-2.0 */
/* Explains the errors to a terminal: tables of parts that add up. */
#include "report/validation_explain.h"

#include <math.h>
#include <string.h>

#include "report/gantt.h"
#include "report/validation_parts.h"
#include "report/table.h"

enum {
    WIDEST = 44, /* columns of a part's name */
    CELL = 11,   /* and of each figure */
    WORST = 3,   /* cases that are explained */
    PARTS = 10,  /* lines of the explanation of all */
};

/* Below it a part is not worth a line: a ten-thousandth of the makespan. */
static const double least_share = 1e-4;

static void put_cell(FILE *stream, char *text)
{
    duet__put_padded(stream, text, CELL, false);
    g_free(text);
}

/* Columns of the longest name, within bounds. */
static size_t name_width(const struct duet_explanation *explanation)
{
    size_t width = strlen("the other 99 parts");

    for (size_t i = 0; i < explanation->count; i++)
        width = MAX(width, duet__text_width(duet__difference_name(&explanation->differences[i])));
    return MIN(width, WIDEST);
}

/*
 * Name, seconds and share of a part; the line is left open. All in the unit and with the digits of
 * the whole, so that the parts can be added up.
 */
static void put_part(FILE *stream, const char *name, size_t width, double seconds, double whole_s)
{
    double scale;
    const char *unit = duet_gantt_unit(whole_s, &scale);
    int digits = duet__decimals(whole_s * scale, 5);

    fputs("  ", stream);
    duet__put_padded(stream, name, width, true);
    put_cell(stream, g_strdup_printf("%+.*f %s", digits, seconds * scale, unit));
    put_cell(stream, duet__percent_text(whole_s > 0 ? seconds / whole_s : NAN));
}

/* The two figures behind a part; nothing where there are none. */
static void put_figures(FILE *stream, double first, double second, const char *what)
{
    if (fabs(first) > 0 || fabs(second) > 0) {
        putc(' ', stream);
        put_cell(stream, duet__time_text(first, false));
        putc(' ', stream);
        put_cell(stream, duet__time_text(second, false));
        fputs(what, stream);
    }
    putc('\n', stream);
}

static void put_heads(FILE *stream, const struct duet_validation *validation, size_t width)
{
    const char *names[] = {validation->first_name, validation->second_name};

    fputs("  ", stream);
    duet__put_padded(stream, "", width + 2 * CELL, true);
    for (int i = 0; i < 2; i++) {
        char *label = duet__side_label(names[i]);

        putc(' ', stream);
        duet__put_padded(stream, label, CELL, false);
        g_free(label);
    }
    putc('\n', stream);
}

static void put_parts(FILE *stream, const struct duet_validation *validation,
                      const struct duet_explanation *explanation)
{
    size_t width = name_width(explanation), rest = 0;
    double rest_s = 0;

    put_heads(stream, validation, width);
    for (size_t i = 0; i < explanation->count; i++) {
        const struct duet_difference *part = &explanation->differences[i];

        if (i > 0 && fabs(part->seconds) < least_share * explanation->second_s) {
            rest++;
            rest_s += part->seconds;
            continue;
        }
        put_part(stream, duet__difference_name(part), width, part->seconds, explanation->second_s);
        put_figures(stream, part->first, part->second,
                    part->reason == DUET_REASON_KERNEL ? "  a task" : "");
    }
    if (rest) {
        char *name = g_strdup_printf("the other %zu part%s", rest, rest == 1 ? "" : "s");

        put_part(stream, name, width, rest_s, explanation->second_s);
        putc('\n', stream);
        g_free(name);
    }
    put_part(stream, "sum", width, explanation->whole_s, explanation->second_s);
    put_figures(stream, explanation->first_s, explanation->second_s, "  makespan");
}

static void put_case(FILE *stream, const struct duet_validation *validation,
                     const struct duet_validation_figures *figures, size_t index)
{
    const struct duet_explanation *explanation = &figures->cases[index].explanation;
    char *name = duet__case_name(&validation->cases[index]);
    char *error = duet__percent_text(figures->cases[index].error);
    char *line = g_strdup_printf("%s: %s", name, error);
    char *culprit = duet__culprit_text(validation, explanation);

    putc('\n', stream);
    duet__put_wrapped(stream, line, 4);
    put_parts(stream, validation, explanation);
    g_free(line);
    line = g_strdup_printf("  largest cause: %s", culprit);
    duet__put_wrapped(stream, line, 4);
    if (explanation->moved_share > 0.005)
        fprintf(stream, "  %.0f %% of the tasks' time ran on another architecture\n",
                explanation->moved_share * 100);
    g_free(line);
    g_free(culprit);
    g_free(name);
    g_free(error);
}

static void put_share(FILE *stream, const char *name, size_t width, double share)
{
    fputs("  ", stream);
    duet__put_padded(stream, name, width, true);
    put_cell(stream, duet__percent_text(share));
    putc('\n', stream);
}

static void put_all(FILE *stream, const struct duet_validation *validation,
                    const struct duet__causes *causes)
{
    size_t width = strlen("the other 999 parts"), shown = MIN(causes->count, PARTS);
    char *label = duet__side_label(validation->second_name);
    double rest = 0;

    for (size_t i = 0; i < shown; i++)
        width = MAX(width, MIN(duet__text_width(causes->parts[i].name), WIDEST));
    fprintf(stream, "\nwhere the %s comes from, mean of %zu case%s, of the makespan ",
            duet__error_word(validation), causes->cases, causes->cases == 1 ? "" : "s");
    duet__put_padded(stream, label, MIN(duet__text_width(label), 30), true);
    fputs(":\n", stream);
    for (size_t i = 0; i < shown; i++)
        put_share(stream, causes->parts[i].name, width, causes->parts[i].share);
    for (size_t i = shown; i < causes->count; i++)
        rest += causes->parts[i].share;
    if (shown < causes->count) {
        char *name = g_strdup_printf("the other %zu part%s", causes->count - shown,
                                     causes->count - shown == 1 ? "" : "s");

        put_share(stream, name, width, rest);
        g_free(name);
    }
    put_share(stream, "sum", width, causes->whole);
    g_free(label);
}

void duet__put_explanation(FILE *stream, const struct duet_validation *validation,
                           const struct duet_validation_figures *figures, bool verbose)
{
    struct duet__causes causes = duet__causes_of(validation, figures);
    size_t *order = duet__worst_first(validation, figures), written = 0;

    if (causes.cases > 1) /* of one case its own explanation says it */
        put_all(stream, validation, &causes);
    for (size_t i = 0; i < validation->case_count && (verbose || written < WORST); i++) {
        size_t index = verbose ? i : order[i];

        if (!figures->cases[index].explanation.count)
            continue;
        put_case(stream, validation, figures, index);
        written++;
    }
    g_free(order);
    g_free(causes.parts);
}
