/* SPDX-License-Identifier: Apache-2.0 */
/* Reads results, and groups them in cells and cases. */
#include "study/answer.h"

#include <math.h>
#include <string.h>

#include "base/stats.h"

static void varied_free(void *data)
{
    struct duet__varied *varied = data;
    g_free(varied->name);
    duet__texts_free(&varied->levels);
    g_free(varied);
}

void duet__results_fini(struct duet__results *results)
{
    g_ptr_array_unref(results->constants);
    g_ptr_array_unref(results->varied);
    g_free(results->cells);
    g_free(results->cases);
    g_free(results->levels);
    g_free(results->seeds);
    g_free(results->spans);
}

const struct duet__varied *duet__varied(const struct duet__results *results, guint index)
{
    return results->varied->pdata[index];
}

const char *duet__shown_text(const char *text)
{
    return *text == '/' ? strrchr(text, '/') + 1 : text;
}

const char *duet__level_text(const struct duet__results *results, const struct duet__cell *cell,
                             guint varied)
{
    return duet__shown_text(
        duet__varied(results, varied)->levels.list->pdata[cell->levels[varied]]);
}

/* ------------------------------------------------------------------------------------------- */
/* Settings that vary                                                                           */

/* True if a setting is one that is chosen over. */
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

/* Takes a setting as one that varies, if it has more than one value. */
static void take_setting(struct duet__results *results, const char *name, const char *option,
                         char *const *best)
{
    static const char *const problem[] = {"workload", "program", "n", "precision", NULL};
    const bool chosen = is_chosen(name, option, best);
    const bool of_problem = !chosen && g_strv_contains(problem, option);
    struct duet__varied *varied;
    sqlite3_stmt *values =
        duet__store_ask(results->store, NULL,
                        "SELECT count(DISTINCT ifnull(\"%w\", '')), max(\"%w\") " DUET__NEWEST,
                        name, name);
    const int count =
        values && sqlite3_step(values) == SQLITE_ROW ? sqlite3_column_int(values, 0) : 0;
    if (count > 1) {
        varied = g_new0(struct duet__varied, 1);
        varied->name = g_strdup(name);
        varied->levels = duet__texts_new();
        g_ptr_array_insert(results->varied,
                           chosen       ? -1
                           : of_problem ? (int)results->problem_varied
                                        : (int)results->case_varied,
                           varied);
        results->problem_varied += of_problem;
        results->case_varied += !chosen;
    } else if (count == 1 && sqlite3_column_type(values, 1) != SQLITE_NULL) {
        g_ptr_array_add(results->constants, g_strdup(name));
        g_ptr_array_add(results->constants, g_strdup((const char *)sqlite3_column_text(values, 1)));
    }
    sqlite3_finalize(values);
}

static int find_varied(struct duet__results *results, char *const *best,
                       struct duet_message *message)
{
    sqlite3_stmt *row = duet__store_ask(results->store, message,
                                        "SELECT name, option FROM settings ORDER BY rowid");
    while (row && sqlite3_step(row) == SQLITE_ROW)
        take_setting(results, (const char *)sqlite3_column_text(row, 0),
                     (const char *)sqlite3_column_text(row, 1), best);
    return row ? duet__store_asked(results->store, row, message) : DUET_EIO;
}

/* ------------------------------------------------------------------------------------------- */
/* Cells                                                                                        */

/* The results being read, before their number is known. */
struct reading {
    struct duet__results *results;
    GArray *cells, *cases, *levels, *seeds, *spans;
};

/* Begins a cell if the row's values are not those of the last one. */
static struct duet__cell *take_cell(struct reading *reading, sqlite3_stmt *row)
{
    const struct duet__results *results = reading->results;
    const guint width = results->varied->len, count = reading->cells->len;
    bool same_case = count, same = count;
    g_array_set_size(reading->levels, (count + 1) * width);
    for (guint i = 0; i < width; i++) {
        struct duet__varied *varied = results->varied->pdata[i];
        const char *text = (const char *)sqlite3_column_text(row, (int)i);
        uint32_t *level = &g_array_index(reading->levels, uint32_t, count * width + i);
        *level = duet__texts_number(&varied->levels, text ? text : "-") - 1;
        same = same && *level == *(level - width);
        same_case = same_case && (i >= results->case_varied || same);
    }
    if (!same) {
        const struct duet__cell cell = {.first = reading->spans->len,
                                        .flops = sqlite3_column_double(row, (int)width + 2) *
                                                 sqlite3_column_double(row, (int)width + 1)};
        g_array_append_val(reading->cells, cell);
    }
    if (!same_case) {
        const size_t first = count;
        g_array_append_val(reading->cases, first);
    }
    return &g_array_index(reading->cells, struct duet__cell, reading->cells->len - 1);
}

static void take_run(struct reading *reading, sqlite3_stmt *row)
{
    const int at = (int)reading->results->varied->len;
    struct duet__cell *cell = take_cell(reading, row);
    const uint64_t seed = (uint64_t)sqlite3_column_int64(row, at);
    const double span_s = sqlite3_column_double(row, at + 1);
    /* one run by two commands, one of which writes out what the other has by default */
    if (cell->count && g_array_index(reading->seeds, uint64_t, reading->seeds->len - 1) == seed)
        return;
    cell->count++;
    cell->bound_s += sqlite3_column_double(row, at + 3);
    g_array_append_val(reading->seeds, seed);
    g_array_append_val(reading->spans, span_s);
}

static int compare_cells(const void *first, const void *second)
{
    const struct duet__cell *a = first, *b = second;
    if (a->mean_s < b->mean_s || a->mean_s > b->mean_s)
        return a->mean_s < b->mean_s ? -1 : 1;
    return a->first < b->first ? -1 : a->first > b->first;
}

/* Computes the means of the cells, and puts the best cell of each case first. */
static void finish(struct duet__results *results)
{
    for (size_t i = 0; i < results->cell_count; i++) {
        struct duet__cell *cell = &results->cells[i];
        const struct duet__summary summary =
            duet__summarise(results->spans + cell->first, cell->count);
        const bool known = duet__spreads(&summary);
        cell->levels = results->levels + i * results->varied->len;
        cell->mean_s = summary.mean;
        cell->reach_s = known ? summary.mean_high - summary.mean : INFINITY;
        cell->bound_s /= (double)cell->count;
        results->repeated |= known;
    }
    for (size_t i = 0; i < results->case_count; i++)
        qsort(results->cells + results->cases[i], results->cases[i + 1] - results->cases[i],
              sizeof *results->cells, compare_cells);
}

/* Adds a setting to those by which rows are ordered: names as they were given, then by value. */
static void add_order(const struct duet__product *named, const char *setting, GString *order)
{
    enum { MOST = 200 };
    char *name = sqlite3_mprintf("\"%w\"", setting);
    for (guint f = 0; named && f < named->factors->len; f++) {
        const struct duet__factor *factor = named->factors->pdata[f];
        if (strcmp(factor->column, setting) != 0 || factor->values->len > MOST)
            continue;
        g_string_append_printf(order, "CASE %s", name);
        for (guint v = 0; v < factor->values->len; v++) {
            char *text = sqlite3_mprintf(" WHEN %Q THEN %u",
                                         duet__factor_value(factor, factor->values->pdata[v]), v);
            g_string_append(order, text);
            sqlite3_free(text);
        }
        g_string_append_printf(order, " ELSE %d END, ", MOST);
    }
    g_string_append_printf(order, "%s, ", name);
    sqlite3_free(name);
}

static int read_rows(struct reading *reading, struct duet_message *message)
{
    struct duet__results *results = reading->results;
    g_autoptr(GString) names = g_string_new(NULL), order = g_string_new(NULL);
    sqlite3_stmt *row;
    for (guint i = 0; i < results->varied->len; i++) {
        char *name = sqlite3_mprintf("\"%w\", ", duet__varied(results, i)->name);
        g_string_append(names, name);
        sqlite3_free(name);
        add_order(results->store->named, duet__varied(results, i)->name, order);
    }
    row = duet__store_ask(results->store, message,
                          "SELECT %sseed + rep, makespan_s, gflops, best_s " DUET__NEWEST
                          " ORDER BY %sseed, rep, id DESC",
                          names->str, order->str);
    while (row && sqlite3_step(row) == SQLITE_ROW)
        take_run(reading, row);
    return row ? duet__store_asked(results->store, row, message) : DUET_EIO;
}

int duet__results_read(struct duet__results *results, const struct duet__store *store,
                       const char *best, struct duet_message *message)
{
    g_auto(GStrv) names = best ? g_strsplit(best, ",", -1) : NULL;
    struct reading reading = {.results = results,
                              .cells = g_array_new(FALSE, TRUE, sizeof(struct duet__cell)),
                              .cases = g_array_new(FALSE, FALSE, sizeof(size_t)),
                              .levels = g_array_new(FALSE, FALSE, sizeof(uint32_t)),
                              .seeds = g_array_new(FALSE, FALSE, sizeof(uint64_t)),
                              .spans = g_array_new(FALSE, FALSE, sizeof(double))};
    int error = check_best(store, names, message);
    size_t end;
    *results = (struct duet__results){.store = store,
                                      .constants = g_ptr_array_new_with_free_func(g_free),
                                      .varied = g_ptr_array_new_with_free_func(varied_free)};
    if (!error && g_hash_table_contains(store->columns, "makespan_s")) {
        error = find_varied(results, names, message);
        if (!error)
            error = read_rows(&reading, message);
    }
    results->cell_count = end = reading.cells->len;
    results->case_count = reading.cases->len;
    results->run_count = reading.spans->len;
    g_array_append_val(reading.cases, end);
    results->cells = (void *)g_array_free(reading.cells, FALSE);
    results->cases = (void *)g_array_free(reading.cases, FALSE);
    results->levels = (void *)g_array_free(reading.levels, FALSE);
    results->seeds = (void *)g_array_free(reading.seeds, FALSE);
    results->spans = (void *)g_array_free(reading.spans, FALSE);
    finish(results);
    return error;
}
