/* SPDX-License-Identifier: Apache-2.0 */
/* Reads results, and puts them together. */
#include "study/results.h"

#include <math.h>
#include <string.h>

#include "validate/stats.h"

static void varied_free(void *data)
{
    struct duet__varied *varied = data;

    g_free(varied->name);
    g_ptr_array_unref(varied->levels);
    g_hash_table_unref(varied->known);
    g_free(varied);
}

void duet__results_fini(struct duet__results *results)
{
    g_clear_pointer(&results->varied, g_ptr_array_unref);
    g_clear_pointer(&results->cells, g_array_unref);
    g_clear_pointer(&results->cases, g_array_unref);
    g_clear_pointer(&results->levels, g_array_unref);
    g_clear_pointer(&results->seeds, g_array_unref);
    g_clear_pointer(&results->spans, g_array_unref);
}

const char *duet__level_text(const struct duet__results *results, guint cell, guint varied)
{
    return duet__varied(results, varied)->levels->pdata[duet__level(results, cell, varied)];
}

/* ------------------------------------------------------------------------------------------- */
/* What varies                                                                                  */

/* Whether a setting is one that is chosen over. */
static bool is_chosen(const char *column, const char *option, char *const *best)
{
    static const char *const usual[] = {"policy",           "tile",     "model",          "param",
                                        "priorities",       "window",   "gpu-window",     "hold",
                                        "gpu-window-short", "set-arch", "nearest-source", NULL};

    if (!best)
        return g_strv_contains(usual, option);
    return g_strv_contains((const char *const *)best, option) ||
           g_strv_contains((const char *const *)best, column);
}

static int check_best(const struct duet__store *store, char *const *best,
                      struct duet_message *message)
{
    for (; best && *best; best++) {
        sqlite3_stmt *known =
            duet__store_ask(store, message, "SELECT 1 FROM settings WHERE name = %Q OR option = %Q",
                            *best, *best);
        bool good = known && sqlite3_step(known) == SQLITE_ROW;

        sqlite3_finalize(known);
        if (!good)
            return duet_fail(message, DUET_EINVAL,
                             "--best: no run was given --%s, so that there is nothing to choose",
                             *best);
    }
    return 0;
}

/* The first answer. */
static bool ask(const struct duet__store *store, const char *text)
{
    sqlite3_stmt *statement = duet__store_ask(store, NULL, "%s", text);
    bool result =
        statement && sqlite3_step(statement) == SQLITE_ROW && sqlite3_column_int(statement, 0);

    sqlite3_finalize(statement);
    return result;
}

/* Whether there is more than one value of it. */
static bool varies(const struct duet__store *store, const char *column)
{
    char *text =
        sqlite3_mprintf("SELECT count(DISTINCT ifnull(\"%w\", '')) > 1 " DUET__NEWEST, column);
    bool result = ask(store, text);

    sqlite3_free(text);
    return result;
}

static int find_varied(struct duet__results *results, char *const *best,
                       struct duet_message *message)
{
    static const char *const problem[] = {"workload", "n", "precision", NULL};
    sqlite3_stmt *statement = duet__store_ask(results->store, message,
                                              "SELECT name, option FROM settings ORDER BY rowid");

    if (!statement)
        return DUET_EIO;
    while (sqlite3_step(statement) == SQLITE_ROW) {
        const char *name = (const char *)sqlite3_column_text(statement, 0);
        const char *option = (const char *)sqlite3_column_text(statement, 1);
        bool chosen = is_chosen(name, option, best);
        struct duet__varied *varied;

        if (!varies(results->store, name))
            continue;
        varied = g_new0(struct duet__varied, 1);
        *varied = (struct duet__varied){.name = g_strdup(name),
                                        .chosen = chosen,
                                        .problem = g_strv_contains(problem, option),
                                        .levels = g_ptr_array_new_with_free_func(g_free),
                                        .known = g_hash_table_new(g_str_hash, g_str_equal)};
        g_ptr_array_insert(results->varied, chosen ? -1 : (int)results->case_varied, varied);
        results->case_varied += !chosen;
    }
    results->repeated = ask(results->store, "SELECT count(DISTINCT seed + rep) >= 3 " DUET__NEWEST);
    return duet__store_asked(results->store, statement, message);
}

/* ------------------------------------------------------------------------------------------- */
/* Cells                                                                                        */

static uint32_t level_of(struct duet__varied *varied, const char *text)
{
    guint known = GPOINTER_TO_UINT(g_hash_table_lookup(varied->known, text));

    if (!known) {
        g_ptr_array_add(varied->levels, g_strdup(text));
        known = varied->levels->len;
        g_hash_table_insert(varied->known, varied->levels->pdata[known - 1],
                            GUINT_TO_POINTER(known));
    }
    return known - 1;
}

/* Begins a cell where the row's values are not those of the last one. */
static struct duet__cell *take_cell(struct duet__results *results, sqlite3_stmt *row)
{
    const guint width = results->varied->len, count = results->cells->len;
    bool same_case = count, same = count;

    g_array_set_size(results->levels, (count + 1) * width);
    for (guint i = 0; i < width; i++) {
        const char *text = (const char *)sqlite3_column_text(row, (int)i);
        uint32_t *level = &g_array_index(results->levels, uint32_t, count * width + i);

        *level = level_of(results->varied->pdata[i], text ? text : "-");
        same = same && *level == *(level - width);
        same_case = same_case && (i >= results->case_varied || same);
    }
    if (!same) {
        const struct duet__cell cell = {.row = count,
                                        .first = results->spans->len,
                                        .flops = sqlite3_column_double(row, (int)width + 2) *
                                                 sqlite3_column_double(row, (int)width + 1)};

        g_array_append_val(results->cells, cell);
    }
    if (!same_case)
        g_array_append_val(results->cases, count);
    return &g_array_index(results->cells, struct duet__cell, results->cells->len - 1);
}

static void take_run(struct duet__results *results, sqlite3_stmt *row)
{
    const int at = (int)results->varied->len;
    struct duet__cell *cell = take_cell(results, row);
    const uint64_t seed = (uint64_t)sqlite3_column_int64(row, at);
    const double span_s = sqlite3_column_double(row, at + 1);

    /* the same run by two commands, one of which says what the other has by default */
    if (cell->count && g_array_index(results->seeds, uint64_t, results->seeds->len - 1) == seed)
        return;
    cell->count++;
    cell->bound_s += sqlite3_column_double(row, at + 3);
    g_array_append_val(results->seeds, seed);
    g_array_append_val(results->spans, span_s);
}

static int read_rows(struct duet__results *results, struct duet_message *message)
{
    g_autoptr(GString) names = g_string_new(NULL);
    sqlite3_stmt *row;

    for (guint i = 0; i < results->varied->len; i++) {
        char *name = sqlite3_mprintf("\"%w\", ", duet__varied(results, i)->name);

        g_string_append(names, name);
        sqlite3_free(name);
    }
    row = duet__store_ask(results->store, message,
                          "SELECT %sseed + rep, makespan_s, gflops, best_s " DUET__NEWEST
                          " ORDER BY %sseed, rep, id DESC",
                          names->str, names->str);
    if (!row)
        return DUET_EIO;
    while (sqlite3_step(row) == SQLITE_ROW)
        take_run(results, row);
    return duet__store_asked(results->store, row, message);
}

static int compare_cells(const void *first, const void *second)
{
    const struct duet__cell *a = first, *b = second;

    if (a->mean_s < b->mean_s || a->mean_s > b->mean_s)
        return a->mean_s < b->mean_s ? -1 : 1;
    return a->row < b->row ? -1 : a->row > b->row;
}

/* Means of the cells, and in each case the best cell first. */
static void finish(struct duet__results *results)
{
    const guint end = results->cells->len;

    g_array_append_val(results->cases, end);
    for (guint i = 0; i < end; i++) {
        struct duet__cell *cell = &g_array_index(results->cells, struct duet__cell, i);
        const struct duet__summary summary =
            duet__summarise(&g_array_index(results->spans, double, cell->first), cell->count);

        cell->mean_s = summary.mean;
        cell->reach_s =
            cell->count < DUET_INTERVAL_RUNS ? INFINITY : summary.mean_high - summary.mean;
        cell->bound_s /= cell->count;
    }
    for (guint i = 0; i < duet__case_count(results); i++) {
        const guint begin = duet__case_begin(results, i);

        qsort(&g_array_index(results->cells, struct duet__cell, begin),
              duet__case_begin(results, i + 1) - begin, sizeof(struct duet__cell), compare_cells);
    }
}

int duet__results_read(struct duet__results *results, const struct duet__store *store,
                       const char *best, struct duet_message *message)
{
    g_auto(GStrv) names = best ? g_strsplit(best, ",", -1) : NULL;
    int error = check_best(store, names, message);

    *results = (struct duet__results){
        .store = store,
        .varied = g_ptr_array_new_with_free_func(varied_free),
        .cells = g_array_new(FALSE, TRUE, sizeof(struct duet__cell)),
        .cases = g_array_new(FALSE, FALSE, sizeof(guint)),
        .levels = g_array_new(FALSE, FALSE, sizeof(uint32_t)),
        .seeds = g_array_new(FALSE, FALSE, sizeof(uint64_t)),
        .spans = g_array_new(FALSE, FALSE, sizeof(double)),
    };
    if (!error && g_hash_table_contains(store->columns, "makespan_s")) {
        error = find_varied(results, names, message);
        if (!error)
            error = read_rows(results, message);
    }
    if (!error)
        finish(results);
    return error;
}
