/* SPDX-License-Identifier: Apache-2.0 */
/* The data of the page: what varies, all cells, the best of each case, rankings. */
#include <math.h>

#include "platforms/json.h"
#include "platforms/atomic_file.h"
#include "report/page/page.h"
#include "study/answer.h"
#include "study/rank.h"

struct source {
    const struct duet__results *results;
    const char *command;
};

/* What has one value in all runs, as members. */
static void put_constants(struct duet__json_writer *json, const struct duet__store *store)
{
    sqlite3_stmt *names = duet__store_ask(store, NULL, "SELECT name FROM settings ORDER BY rowid");

    while (names && sqlite3_step(names) == SQLITE_ROW) {
        const char *name = (const char *)sqlite3_column_text(names, 0);
        sqlite3_stmt *row =
            duet__store_ask(store, NULL, "SELECT \"%w\" " DUET__NEWEST " GROUP BY 1 LIMIT 2", name);

        if (row && sqlite3_step(row) == SQLITE_ROW) {
            g_autofree char *text = g_strdup((const char *)sqlite3_column_text(row, 0));

            if (text && sqlite3_step(row) != SQLITE_ROW)
                duet__json_put_string(json, name, text);
        }
        sqlite3_finalize(row);
    }
    sqlite3_finalize(names);
}

/* An array of the first column of all rows, which are texts. */
static void put_texts(struct duet__json_writer *json, const char *key, sqlite3_stmt *row)
{
    duet__json_begin(json, key, '[');
    while (row && sqlite3_step(row) == SQLITE_ROW)
        duet__json_put_string(json, NULL, (const char *)sqlite3_column_text(row, 0));
    duet__json_end(json, ']');
    sqlite3_finalize(row);
}

static void put_runs(struct duet__json_writer *json, const struct duet__store *store)
{
    const bool noise = g_hash_table_contains(store->columns, "noise");

    duet__json_begin(json, "constants", '{');
    put_constants(json, store);
    duet__json_end(json, '}');
    put_texts(json, "estimated", duet__study_estimated(store));
    put_texts(json, "failed", duet__study_failed(store));
    put_texts(json, "noise",
              noise ? duet__store_ask(store, NULL,
                                      "SELECT DISTINCT noise " DUET__NEWEST " AND noise <> 0")
                    : NULL);
}

static void put_varied(struct duet__json_writer *json, const struct duet__results *results)
{
    duet__json_begin(json, "factors", '[');
    for (guint i = 0; i < results->varied->len; i++) {
        const struct duet__varied *varied = duet__varied(results, i);

        duet__json_print(json, "\n{name: %s, chosen: %d, problem: %d, levels: [", varied->name,
                         varied->chosen, varied->problem);
        for (guint k = 0; k < varied->levels->len; k++)
            duet__json_put_string(json, NULL, varied->levels->pdata[k]);
        duet__json_print(json, "], cells: [");
        for (guint cell = 0; cell < results->cells->len; cell++)
            duet__json_put_integer(json, NULL, duet__level(results, cell, i));
        duet__json_print(json, "]}");
    }
    duet__json_end(json, ']');
}

/* As many digits as anybody reads. */
static void put_short(struct duet__json_writer *json, double value)
{
    char digits[DUET__DIGITS_MAX];

    duet__json_put_digits(json, NULL,
                          isfinite(value) && value > 0
                              ? g_ascii_formatd(digits, sizeof digits, "%.7g", value)
                              : "null");
}

static void put_cells(struct duet__json_writer *json, const struct duet__results *results)
{
    static const char *const names[] = {"makespan_s", "reach_s", "gflops", "bound_s"};

    for (size_t i = 0; i < G_N_ELEMENTS(names); i++) {
        duet__json_begin(json, names[i], '[');
        for (guint c = 0; c < results->cells->len && (i != 1 || results->repeated); c++) {
            const struct duet__cell *cell = duet__cell(results, c);
            const double values[] = {cell->mean_s, cell->reach_s, cell->flops / cell->mean_s,
                                     cell->bound_s};

            put_short(json, values[i]);
        }
        duet__json_end(json, ']');
    }
}

/* Of each the best cell, behind which its others are. */
static void put_cases(struct duet__json_writer *json, const struct duet__results *results)
{
    duet__json_begin(json, "cases", '[');
    for (guint i = 0; i < duet__case_count(results); i++) {
        const struct duet__lead lead = duet__study_lead(results, i);

        duet__json_print(json, "[%u, %u, %u, %u, %g, %g]", lead.cell, lead.others, lead.close,
                         duet__cell(results, lead.cell)->count, lead.mean, lead.reach);
    }
    duet__json_end(json, ']');
}

static void put_rankings(struct duet__json_writer *json, const struct duet__results *results)
{
    duet__json_begin(json, "rankings", '[');
    for (guint i = 0; i < results->varied->len; i++) {
        struct duet__ranking ranking;

        if (duet__varied(results, i)->problem)
            continue;
        duet__rank(results, i, &ranking);
        if (ranking.cases) {
            duet__json_print(
                json, "\n{factor: %u, cases: %u, left_out: %u, share: %g, p: %g, distance: %g", i,
                ranking.cases, ranking.left_out, ranking.share, ranking.p, ranking.distance);
            duet__json_put_numbers(json, "ranks", ranking.ranks, ranking.levels);
            duet__json_put_numbers(json, "ratios", ranking.ratios, ranking.levels);
            duet__json_end(json, '}');
        }
        duet__ranking_fini(&ranking);
    }
    duet__json_end(json, ']');
}

static void put_page(FILE *stream, const void *data)
{
    const struct source *source = data;
    const struct duet__results *results = source->results;
    g_autofree char *advice = duet__study_advice(results);
    struct duet__json_writer json = {.stream = stream, .dense = true};

    duet__json_print(&json, "{study: true, command: %s, advice: %s, runs: %u", source->command,
                     advice, results->spans->len);
    put_runs(&json, results->store);
    put_varied(&json, results);
    put_cells(&json, results);
    put_cases(&json, results);
    put_rankings(&json, results);
    duet__json_end(&json, '}');
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
