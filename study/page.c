/* SPDX-License-Identifier: Apache-2.0 */
/* The data of the page: what varies, all cells, the best of each case, rankings. */
#include <math.h>
#include <string.h>

#include "base/fields.h"
#include "base/files.h"
#include "base/table.h"
#include "report/page/page.h"
#include "study/answer.h"

struct source {
    const struct duet__results *results;
    const char *command;
};

/* Writes an array of the first column of all rows, which holds texts. */
static void put_texts(struct duet__json_writer *json, const char *key, sqlite3_stmt *row)
{
    duet__json_begin(json, key, '[');
    while (row && sqlite3_step(row) == SQLITE_ROW)
        duet__json_put_string(json, NULL, (const char *)sqlite3_column_text(row, 0));
    duet__json_end(json, ']');
    sqlite3_finalize(row);
}

/* Writes the varying settings, with the level of each cell, and how their levels compare. */
static void put_varied(struct duet__json_writer *json, const struct duet__results *results,
                       guint index)
{
    const struct duet__varied *varied = duet__varied(results, index);
    struct duet__ranking ranking;
    duet__json_print(json, "\n{name: %s, chosen: %d, problem: %d", varied->name,
                     index >= results->case_varied, index < results->problem_varied);
    DUET__ARRAY_WRITE(json, "levels", DUET__TEXT, varied->levels.list->pdata,
                      varied->levels.list->len);
    duet__json_begin(json, "cells", '[');
    for (size_t i = 0; i < results->cell_count; i++)
        duet__json_put_integer(json, NULL, results->cells[i].levels[index]);
    duet__json_end(json, ']');
    if (index >= results->problem_varied) {
        duet__rank(results, index, &ranking);
        duet__json_print(json, "ranked: %zu, left_out: %zu, share: %g, p: %g, distance: %g",
                         ranking.cases, ranking.left_out, ranking.share, ranking.p,
                         ranking.distance);
        DUET__ARRAY_WRITE(json, "ranks", DUET__NUMBER, ranking.ranks, ranking.levels);
        DUET__ARRAY_WRITE(json, "ratios", DUET__NUMBER, ranking.ratios, ranking.levels);
        duet__json_print(json, "own: %s", (char *)varied->levels.list->pdata[ranking.own]);
        DUET__ARRAY_WRITE(json, "against", DUET__NUMBER, ranking.against, ranking.levels);
        duet__ranking_fini(&ranking);
    }
    duet__json_end(json, '}');
}

static void put_cells(struct duet__json_writer *json, const struct duet__results *results)
{
    static const char *const names[] = {"makespan_s", "reach_s", "gflops", "bound_s"};
    for (size_t i = 0; i < G_N_ELEMENTS(names); i++) {
        duet__json_begin(json, names[i], '[');
        for (size_t c = 0; c < results->cell_count && (i != 1 || results->repeated); c++) {
            const struct duet__cell *cell = &results->cells[c];
            const double values[] = {cell->mean_s, cell->reach_s, cell->flops / cell->mean_s,
                                     cell->bound_s};
            char digits[DUET__DIGITS_MAX]; /* digits are as many as anybody reads */
            g_ascii_formatd(digits, sizeof digits, "%.7g", values[i]);
            duet__json_put_digits(json, NULL,
                                  values[i] > 0 && isfinite(values[i]) ? digits : "null");
        }
        duet__json_end(json, ']');
    }
}

static void put_page(FILE *stream, const void *data)
{
    const struct source *source = data;
    const struct duet__results *results = source->results;
    g_autofree char *advice = duet__study_advice(results);
    g_autofree char *command = duet__study_commands(results->store, source->command);
    struct duet__json_writer json = {.stream = stream, .dense = true};
    duet__json_print(&json, "{study: true, command: %s, advice: %s, runs: %zu, constants: {",
                     command, advice, results->run_count);
    for (guint i = 0; i < results->constants->len; i += 2)
        duet__json_put_string(&json, results->constants->pdata[i],
                              results->constants->pdata[i + 1]);
    duet__json_end(&json, '}');
    put_texts(&json, "estimated", duet__study_estimated(results->store));
    put_texts(&json, "builds", duet__study_builds(results->store));
    put_texts(&json, "failed", duet__study_failed(results->store));
    duet__json_begin(&json, "factors", '[');
    for (guint i = 0; i < results->varied->len; i++)
        put_varied(&json, results, i);
    duet__json_end(&json, ']');
    put_cells(&json, results);
    duet__json_begin(&json, "cases", '['); /* the other cells are behind the best one */
    for (size_t i = 0; i < results->case_count; i++) {
        const struct duet__lead lead = duet__study_lead(results, i);
        duet__json_print(&json, "{cell: %zu, others: %u, lead: %g, reach: %g, sure: %s}",
                         results->cases[i], lead.others, lead.mean, lead.reach, lead.sure);
    }
    duet__json_print(&json, "]}");
}

static void put_all(FILE *stream, const void *data)
{
    duet__page_write(stream, put_page, data);
}

int duet__study_page(const char *path, const struct duet__store *store, const char *best,
                     const char *command, struct duet_message *message)
{
    struct duet__results results;
    const struct source source = {&results, command};
    int error = duet__results_read(&results, store, best, message);
    if (!error)
        error = duet__file_write(path, put_all, &source, message);
    duet__results_fini(&results);
    return error;
}

/* ------------------------------------------------------------------------------------------- */
/* The table of a study for a paper: makespans of each case as a tabular of LaTeX. */

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
