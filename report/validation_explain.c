/* SPDX-License-Identifier: Apache-2.0 */
/* Explains the errors to a terminal: tables of parts that add up. */
#include <math.h>
#include <stdlib.h>

#include "report/gantt.h"
#include "report/table.h"
#include "report/validation_parts.h"

enum {
    WORST = 3,  /* cases that are explained */
    PARTS = 10, /* lines of the explanation of all */
};

/* Below it a part is not worth a line: a ten-thousandth of the makespan. */
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
    const char *unit = duet_gantt_unit(whole_s, &scale);

    duet__table_print(table, "%+.*f %s", duet__decimals(whole_s * scale, 5), seconds * scale, unit);
    duet__table_add(table, duet__percent_text(whole_s > 0 ? seconds / whole_s : NAN));
}

/* The two figures behind a part; nothing where there are none. */
static void add_figures(struct duet__table *table, double first, double second, const char *what)
{
    if (!(fabs(first) > 0 || fabs(second) > 0)) {
        duet__table_row(table, "", "", "", NULL);
        return;
    }
    duet__table_add(table, duet__time_text(first));
    duet__table_add(table, duet__time_text(second));
    duet__table_say(table, what);
}

static void put_parts(FILE *stream, const struct duet_validation *validation,
                      const struct duet_explanation *explanation)
{
    double whole_s = explanation->second_s, rest_s = 0;
    struct duet__table table;
    size_t rest = 0;

    duet__table_init(&table, "trrrrl");
    table.page = DUET__WIDE_PAGE;
    duet__table_row(&table, "", "", "", validation->labels[0], validation->labels[1], "", NULL);
    for (size_t i = 0; i < explanation->count; i++) {
        const struct duet_difference *part = &explanation->differences[i];

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

static void put_case(FILE *stream, const struct duet_validation *validation,
                     const struct duet_case *the)
{
    const struct duet_explanation *explanation = &the->explanation;
    g_autofree char *name = duet__case_name(the);
    g_autofree char *error = duet__percent_text(the->error);
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

static void put_all(FILE *stream, const struct duet_validation *validation,
                    const struct duet__causes *causes)
{
    size_t shown = MIN(causes->count, PARTS);
    g_autofree char *head =
        g_strdup_printf("where the %s comes from, mean of %zu case%s, of the makespan %s:",
                        duet__error_word(validation), causes->cases, causes->cases == 1 ? "" : "s",
                        validation->labels[1]);
    struct duet__table table;
    double rest = 0;

    putc('\n', stream);
    duet__put_wrapped(stream, head, 4);
    duet__table_init(&table, "tr");
    table.page = DUET__WIDE_PAGE;
    for (size_t i = 0; i < shown; i++) {
        duet__table_say(&table, causes->parts[i].name);
        duet__table_add(&table, duet__percent_text(causes->parts[i].share));
    }
    for (size_t i = shown; i < causes->count; i++)
        rest += causes->parts[i].share;
    if (shown < causes->count) {
        add_others(&table, causes->count - shown);
        duet__table_add(&table, duet__percent_text(rest));
    }
    duet__table_say(&table, "sum");
    duet__table_add(&table, duet__percent_text(causes->whole));
    duet__table_put(&table, stream, 2);
}

/* Those with the largest absolute error first, unknown ones last. */
static int compare_errors(const void *left, const void *right)
{
    const struct duet_case *a = *(const struct duet_case *const *)left;
    const struct duet_case *b = *(const struct duet_case *const *)right;
    double x = isnan(a->error) ? -1 : fabs(a->error), y = isnan(b->error) ? -1 : fabs(b->error);

    return x > y || x < y ? (x > y ? -1 : 1) : (a > b) - (a < b);
}

void duet__put_explanation(FILE *stream, const struct duet_validation *validation, bool verbose)
{
    struct duet__causes causes = duet__causes_of(validation);
    size_t count = validation->case_count, written = 0;
    const struct duet_case **order = g_new(const struct duet_case *, count + 1);

    if (causes.cases > 1) /* of one case its own explanation says it */
        put_all(stream, validation, &causes);
    for (size_t i = 0; i < count; i++)
        order[i] = &validation->cases[i];
    if (!verbose)
        qsort(order, count, sizeof(*order), compare_errors);
    for (size_t i = 0; i < count && (verbose || written < WORST); i++) {
        if (!order[i]->explanation.count)
            continue;
        put_case(stream, validation, order[i]);
        written++;
    }
    g_free(order);
    g_free(causes.parts);
}
