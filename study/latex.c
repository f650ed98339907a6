/* SPDX-License-Identifier: Apache-2.0 */
/* The table of a study for a paper: makespans of each case as a tabular of LaTeX. */
#include <math.h>
#include <string.h>

#include "base/table.h"
#include "study/answer.h"

/* Prints `before` and a cell, in which LaTeX's special characters are escaped. */
static void put_cell(FILE *stream, const char *before, const char *text)
{
    fputs(before, stream);
    for (; *text; text++)
        if (strchr("\\~^", *text))
            fprintf(stream, "\\text%s{}",
                    *text == '~'   ? "asciitilde"
                    : *text == '^' ? "asciicircum"
                                   : "backslash");
        else
            fprintf(stream, "%s%c", strchr("&%$#_{}", *text) ? "\\" : "", *text);
}

/* Prints what a level has in a case: its best makespan, in bold if none is shorter. */
static void put_level(FILE *stream, const struct duet__results *results, size_t index,
                      const char *before, guint setting, uint32_t level, int digits)
{
    const struct duet__cell *best = &results->cells[results->cases[index]], *cell = best;
    const struct duet__cell *behind = &results->cells[results->cases[index + 1]];
    g_autofree char *least = g_strdup_printf("%.*f", digits, best->mean_s), *own = NULL;

    while (cell < behind && setting < results->varied->len && cell->levels[setting] != level)
        cell++;
    own = cell < behind ? g_strdup_printf("%.*f", digits, cell->mean_s) : g_strdup("--");
    fprintf(stream, strcmp(own, least) ? "%s%s" : "%s\\textbf{%s}", before, own);
    if (cell < behind && results->repeated && isfinite(cell->reach_s))
        fprintf(stream, " $\\pm$ %.*f", digits, cell->reach_s);
}

static void put_tabular(FILE *stream, const struct duet__results *results)
{
    const guint setting = duet__study_ranked(results), cases = results->case_varied;
    const bool chosen = setting < results->varied->len;
    const GPtrArray *levels = chosen ? duet__varied(results, setting)->levels.list : NULL;
    const guint columns = chosen ? levels->len : 1;
    double least_s = INFINITY;
    g_auto(GStrv) names = g_new0(char *, columns + 1);

    for (guint i = 0; i < columns; i++)
        names[i] = g_strdup(chosen ? levels->pdata[i] : "");
    duet__names_shorten(names, columns, 0);
    for (size_t c = 0; c < results->cell_count; c++)
        least_s = fmin(least_s, results->cells[c].mean_s);
    const int digits = duet__decimals(least_s, 4);

    fputs("% needs \\usepackage{booktabs}; makespans in s", stream);
    for (guint i = cases; i < results->varied->len; i++)
        if (i != setting)
            fprintf(stream, ", of the best %s", duet__varied(results, i)->name);
    fputs("\n\\begin{tabular}{", stream);
    for (guint i = 0; i < cases + columns; i++)
        fputc(i < cases ? 'l' : 'r', stream);
    fputs("}\n\\toprule\n", stream);
    for (guint i = 0; i < cases; i++)
        put_cell(stream, i ? " & " : "", duet__varied(results, i)->name);
    for (guint i = 0; i < columns; i++)
        put_cell(stream, cases + i ? " & " : "", chosen ? names[i] : "makespan (s)");
    fputs(" \\\\\n\\midrule\n", stream);
    for (size_t c = 0; c < results->case_count; c++) {
        for (guint i = 0; i < cases; i++)
            put_cell(stream, i ? " & " : "",
                     duet__level_text(results, &results->cells[results->cases[c]], i));
        for (guint i = 0; i < columns; i++)
            put_level(stream, results, c, cases + i ? " & " : "", setting, i, digits);
        fputs(" \\\\\n", stream);
    }
    fputs("\\bottomrule\n\\end{tabular}\n", stream);
}

int duet__study_latex(FILE *stream, const struct duet__store *store, const char *best,
                      struct duet_message *message)
{
    struct duet__results results;
    int error = duet__results_read(&results, store, best, message);

    if (!error && results.case_count)
        put_tabular(stream, &results);
    else if (!error)
        fputs("% no run has a result\n", stream);
    duet__results_fini(&results);
    return error;
}
