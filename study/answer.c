/* SPDX-License-Identifier: Apache-2.0 */
/* The table of best settings. */
#include "study/answer.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "platforms/json.h"
#include "report/table.h"
#include "validate/stats.h"

enum { CASES_SHOWN = 40 };

/* The newest result of each run. */
#define NEWEST                                                                                     \
    "FROM runs WHERE id IN (SELECT max(id) FROM runs WHERE error IS NULL GROUP BY command, rep)"

/* The settings that vary, those of cases first. */
struct columns {
    GPtrArray *names; /* char * */
    guint cases;
};

/* One setting of what is chosen, in a case. */
struct choice {
    char **values;       /* of the chosen columns, NULL-ended */
    GArray *seeds;       /* uint64_t, ascending */
    GArray *spans;       /* double, of each: makespans in seconds */
    double flops, bound; /* of one run, in GFlop; sum of the bounds in seconds */
    struct duet__summary summary;
};

/* How a setting did over all cases. */
struct tally {
    guint cases, wins;
    double worst, logarithm; /* its makespan to the best one: the largest, the sum */
};

struct answer {
    const struct duet__store *store;
    struct columns columns;
    struct duet__table table;
    GHashTable *tallies; /* struct tally by text_of values */
    guint cases, shown, most;
    bool chosen, repeated;
};

static void choice_free(void *data)
{
    struct choice *choice = data;

    g_strfreev(choice->values);
    g_array_unref(choice->seeds);
    g_array_unref(choice->spans);
    g_free(choice);
}

/* ------------------------------------------------------------------------------------------- */
/* Columns                                                                                      */

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
    char *text = sqlite3_mprintf("SELECT count(DISTINCT ifnull(\"%w\", '')) > 1 " NEWEST, column);
    bool result = ask(store, text);

    sqlite3_free(text);
    return result;
}

static int find_columns(struct answer *answer, char *const *best, struct duet_message *message)
{
    struct columns *columns = &answer->columns;
    sqlite3_stmt *statement =
        duet__store_ask(answer->store, message, "SELECT name, option FROM settings ORDER BY rowid");

    if (!statement)
        return DUET_EIO;
    while (sqlite3_step(statement) == SQLITE_ROW) {
        const char *name = (const char *)sqlite3_column_text(statement, 0);
        const char *option = (const char *)sqlite3_column_text(statement, 1);
        bool chosen = is_chosen(name, option, best);

        if (!varies(answer->store, name))
            continue;
        g_ptr_array_insert(columns->names, chosen ? -1 : (int)columns->cases, g_strdup(name));
        columns->cases += !chosen;
    }
    sqlite3_finalize(statement);
    answer->chosen = columns->names->len > columns->cases;
    answer->repeated = ask(answer->store, "SELECT count(DISTINCT seed + rep) >= 3 " NEWEST);
    return 0;
}

/* ------------------------------------------------------------------------------------------- */
/* A case                                                                                       */

static int compare_choices(const void *first, const void *second)
{
    const struct choice *a = *(struct choice *const *)first, *b = *(struct choice *const *)second;

    return a->summary.mean < b->summary.mean ? -1 : a->summary.mean > b->summary.mean;
}

/*
 * By how much the second is longer, seed by seed, as a part of the first's mean: mean and
 * interval, which is everything where there are too few seeds that both have.
 */
static void compare(const struct choice *first, const struct choice *second, guint comparisons,
                    double *mean, double *reach)
{
    g_autoptr(GArray) differences = g_array_new(FALSE, FALSE, sizeof(double));
    struct duet__summary summary;

    for (guint i = 0, k = 0; i < first->seeds->len && k < second->seeds->len;) {
        uint64_t a = g_array_index(first->seeds, uint64_t, i);
        uint64_t b = g_array_index(second->seeds, uint64_t, k);
        double difference =
            (g_array_index(second->spans, double, k) - g_array_index(first->spans, double, i)) /
            first->summary.mean;

        if (a == b)
            g_array_append_val(differences, difference);
        i += a <= b;
        k += b <= a;
    }
    *mean = second->summary.mean / first->summary.mean - 1;
    *reach = INFINITY;
    if (differences->len < DUET_INTERVAL_RUNS)
        return;
    summary = duet__summarise((const double *)(const void *)differences->data, differences->len);
    *mean = summary.mean;
    *reach = summary.deviation / sqrt(differences->len) *
             duet__student_quantile(1 - 0.025 / comparisons, differences->len - 1);
}

static char *text_of(const struct choice *choice)
{
    return g_strjoinv(" ", choice->values);
}

/* "sure", or how many others it cannot be told from. */
static char *say_sure(const GPtrArray *choices)
{
    const struct choice *first = choices->pdata[0];
    guint close = 0;

    if (choices->len < 2)
        return g_strdup("no other");
    if (first->seeds->len < DUET_INTERVAL_RUNS)
        return g_strdup_printf("%u run%s", first->seeds->len, first->seeds->len == 1 ? "" : "s");
    for (guint i = 1; i < choices->len; i++) {
        double mean, reach;

        compare(first, choices->pdata[i], choices->len - 1, &mean, &reach);
        close += mean <= reach;
    }
    return close ? g_strdup_printf("%u within noise", close) : g_strdup("sure");
}

static void put_lead(struct answer *answer, const GPtrArray *choices)
{
    g_autofree char *second = choices->len > 1 ? text_of(choices->pdata[1]) : g_strdup("-");
    double mean, reach;

    if (choices->len > 1)
        compare(choices->pdata[0], choices->pdata[1], choices->len - 1, &mean, &reach);
    if (choices->len < 2)
        duet__table_say(&answer->table, "-");
    else if (isinf(reach))
        duet__table_print(&answer->table, "%.2f", 100 * mean);
    else
        duet__table_print(&answer->table, "%.2f +-%.2f", 100 * mean, 100 * reach);
    duet__table_say(&answer->table, second);
    duet__table_add(&answer->table, say_sure(choices));
}

static void count(struct answer *answer, const GPtrArray *choices)
{
    const double best_s = ((const struct choice *)choices->pdata[0])->summary.mean;

    for (guint i = 0; i < choices->len; i++) {
        const struct choice *choice = choices->pdata[i];
        char *name = text_of(choice);
        struct tally *tally = g_hash_table_lookup(answer->tallies, name);
        double ratio = choice->summary.mean / best_s;

        if (!tally) {
            tally = g_new0(struct tally, 1);
            g_hash_table_insert(answer->tallies, g_strdup(name), tally);
        }
        tally->cases++;
        tally->wins += ratio <= 1;
        tally->worst = fmax(tally->worst, ratio);
        tally->logarithm += log(ratio);
        g_free(name);
    }
}

/* The line of a case. */
static void put_case(struct answer *answer, char *const *values, GPtrArray *choices)
{
    const struct choice *best;
    double mean_s;

    for (guint i = 0; i < choices->len; i++) {
        struct choice *choice = choices->pdata[i];

        choice->summary =
            duet__summarise((const double *)(void *)choice->spans->data, choice->spans->len);
    }
    g_ptr_array_sort(choices, compare_choices);
    best = choices->pdata[0];
    count(answer, choices);
    if (answer->cases++ >= answer->most)
        return;
    answer->shown++;
    for (guint i = 0; i < answer->columns.cases; i++)
        duet__table_say(&answer->table, values[i]);
    for (char **value = best->values; *value; value++)
        duet__table_say(&answer->table, *value);
    mean_s = best->summary.mean;
    duet__table_print(&answer->table, "%.*f", duet__decimals(mean_s, 5), mean_s);
    if (answer->repeated && best->spans->len >= DUET_INTERVAL_RUNS)
        duet__table_print(&answer->table, "%.2f", 100 * (best->summary.mean_high / mean_s - 1));
    else if (answer->repeated)
        duet__table_say(&answer->table, "-");
    duet__table_print(&answer->table, "%.*f", duet__decimals(best->flops / mean_s, 5),
                      best->flops / mean_s);
    duet__table_print(&answer->table, best->bound > 0 ? "%.1f" : "-",
                      100 * best->bound / (mean_s * best->spans->len));
    if (answer->chosen)
        put_lead(answer, choices);
}

/* ------------------------------------------------------------------------------------------- */
/* All cases                                                                                    */

static void put_heading(struct answer *answer)
{
    const struct columns *columns = &answer->columns;
    g_autoptr(GString) sides = g_string_new(NULL);

    for (guint i = 0; i < columns->names->len; i++)
        g_string_append_c(sides, 'l');
    g_string_append(sides, answer->repeated ? "rrrr" : "rrr");
    g_string_append(sides, answer->chosen ? "rtl" : "");
    duet__table_init(&answer->table, sides->str);
    answer->table.page = DUET__WIDE_PAGE;
    for (guint i = 0; i < columns->names->len; i++)
        duet__table_say(&answer->table, columns->names->pdata[i]);
    duet__table_say(&answer->table, "makespan s");
    if (answer->repeated)
        duet__table_say(&answer->table, "+- %");
    duet__table_row(&answer->table, "GFlop/s", "bound %", NULL);
    if (answer->chosen)
        duet__table_row(&answer->table, "lead %", "before", "", NULL);
}

/* The values of a row's columns from `first` on to before `last`. */
static char **read_values(sqlite3_stmt *row, guint first, guint last)
{
    GPtrArray *values = g_ptr_array_new();

    for (guint i = first; i < last; i++) {
        const char *text = (const char *)sqlite3_column_text(row, (int)i);

        g_ptr_array_add(values, g_strdup(text ? text : "-"));
    }
    g_ptr_array_add(values, NULL);
    return (char **)g_ptr_array_free(values, FALSE);
}

/* Adds a run to the last choice, or as the first one of the next. */
static void add_run(GPtrArray *choices, char **values, sqlite3_stmt *row, guint columns)
{
    struct choice *choice = choices->len ? choices->pdata[choices->len - 1] : NULL;
    const int at = (int)columns;
    uint64_t seed = (uint64_t)sqlite3_column_int64(row, at);
    double span_s = sqlite3_column_double(row, at + 1);

    if (choice && g_strv_equal((const char *const *)choice->values, (const char *const *)values)) {
        g_strfreev(values);
    } else {
        choice = g_new0(struct choice, 1);
        choice->values = values;
        choice->seeds = g_array_new(FALSE, FALSE, sizeof seed);
        choice->spans = g_array_new(FALSE, FALSE, sizeof span_s);
        choice->flops = sqlite3_column_double(row, at + 2) * span_s;
        g_ptr_array_add(choices, choice);
    }
    /* the same run by two commands, one of which says what the other has by default */
    if (choice->seeds->len &&
        g_array_index(choice->seeds, uint64_t, choice->seeds->len - 1) == seed)
        return;
    choice->bound += sqlite3_column_double(row, at + 3);
    g_array_append_val(choice->seeds, seed);
    g_array_append_val(choice->spans, span_s);
}

static int put_cases(struct answer *answer, struct duet_message *message)
{
    const struct columns *columns = &answer->columns;
    g_autoptr(GString) names = g_string_new(NULL);
    g_autoptr(GPtrArray) choices = g_ptr_array_new_with_free_func(choice_free);
    char **values = NULL;
    sqlite3_stmt *row;

    for (guint i = 0; i < columns->names->len; i++) {
        char *name = sqlite3_mprintf("\"%w\", ", columns->names->pdata[i]);

        g_string_append(names, name);
        sqlite3_free(name);
    }
    row = duet__store_ask(answer->store, message,
                          "SELECT %sseed + rep, makespan_s, gflops, best_s " NEWEST
                          " ORDER BY %sseed, rep, id DESC",
                          names->str, names->str);
    if (!row)
        return DUET_EIO;
    while (sqlite3_step(row) == SQLITE_ROW) {
        char **own = read_values(row, 0, columns->cases);

        if (values && !g_strv_equal((const char *const *)values, (const char *const *)own)) {
            put_case(answer, values, choices);
            g_ptr_array_set_size(choices, 0);
        }
        g_strfreev(values);
        values = own;
        add_run(choices, read_values(row, columns->cases, columns->names->len), row,
                columns->names->len);
    }
    if (values)
        put_case(answer, values, choices);
    g_strfreev(values);
    sqlite3_finalize(row);
    return 0;
}

/* What has no result, with an example. */
static void put_failed(FILE *stream, const struct duet__store *store)
{
    sqlite3_stmt *row = duet__store_ask(store, NULL,
                                        "SELECT count(*), error, command, max(id) FROM runs WHERE "
                                        "error IS NOT NULL");
    int count = row && sqlite3_step(row) == SQLITE_ROW ? sqlite3_column_int(row, 0) : 0;

    if (count)
        fprintf(stream, "\nwithout a result: %d run%s, as %s: %s\n", count, count == 1 ? "" : "s",
                sqlite3_column_text(row, 2), sqlite3_column_text(row, 1));
    sqlite3_finalize(row);
}

/* The one setting that is best for all cases together. */
static void put_advice(FILE *stream, const struct answer *answer)
{
    const char *name = NULL;
    const struct tally *best = NULL;
    GHashTableIter iterator;
    void *key, *value;

    g_hash_table_iter_init(&iterator, answer->tallies);
    while (g_hash_table_iter_next(&iterator, &key, &value)) {
        const struct tally *tally = value;

        if (tally->cases < answer->cases)
            continue;
        if (!best || tally->logarithm < best->logarithm ||
            (!(tally->logarithm > best->logarithm) && strcmp(key, name) < 0)) {
            best = tally;
            name = key;
        }
    }
    if (best && answer->chosen && answer->cases > 1)
        fprintf(stream,
                "\none setting for all %u cases: %s, best in %u of them, at most %.2f %% behind, "
                "%.2f %% in the mean\n",
                answer->cases, name, best->wins, 100 * (best->worst - 1),
                100 * expm1(best->logarithm / answer->cases));
}

/* What rests on estimates: a line for each machine and set of kernels. */
static void put_estimated(FILE *stream, const struct duet__store *store)
{
    sqlite3_stmt *row = g_hash_table_contains(store->columns, "estimated")
                            ? duet__store_ask(store, NULL,
                                              "SELECT DISTINCT estimated, platform " NEWEST
                                              " AND estimated IS NOT NULL ORDER BY 2, 1")
                            : NULL;

    while (row && sqlite3_step(row) == SQLITE_ROW)
        fprintf(stream, "estimated, not measured: times of %s on %s\n",
                (const char *)sqlite3_column_text(row, 0),
                (const char *)sqlite3_column_text(row, 1));
    sqlite3_finalize(row);
}

int duet__study_show(FILE *stream, const struct duet__store *store, const char *best, bool every,
                     struct duet_message *message)
{
    g_auto(GStrv) names = best ? g_strsplit(best, ",", -1) : NULL;
    struct answer answer = {.store = store, .most = every ? G_MAXUINT : CASES_SHOWN};
    int error = check_best(store, names, message);

    if (error)
        return error;
    if (!g_hash_table_contains(store->columns, "makespan_s")) {
        fputs("no run has a result\n", stream);
        put_failed(stream, store);
        return 0;
    }
    answer.columns.names = g_ptr_array_new_with_free_func(g_free);
    answer.tallies = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    error = find_columns(&answer, names, message);
    if (!error) {
        put_estimated(stream, store);
        put_heading(&answer);
        error = put_cases(&answer, message);
        duet__table_put(&answer.table, stream, 0);
    }
    if (answer.shown < answer.cases)
        fprintf(stream, "... and %u more cases: --verbose shows all\n",
                answer.cases - answer.shown);
    if (!error) {
        put_advice(stream, &answer);
        put_failed(stream, store);
    }
    g_hash_table_unref(answer.tallies);
    g_ptr_array_unref(answer.columns.names);
    return error;
}

/* ------------------------------------------------------------------------------------------- */
/* CSV                                                                                          */

int duet__study_csv(FILE *stream, const struct duet__store *store, struct duet_message *message)
{
    struct duet__json_writer csv = {.stream = stream, .csv = DUET__CSV_HEADING};
    sqlite3_stmt *row = duet__store_ask(store, message, "SELECT * FROM runs ORDER BY id");
    int step;

    if (!row)
        return DUET_EIO;
    do {
        step = csv.csv == DUET__CSV_HEADING ? SQLITE_ROW : sqlite3_step(row);
        for (int i = 1; i < sqlite3_column_count(row) && step == SQLITE_ROW; i++) {
            const char *name = sqlite3_column_name(row, i);
            const int type =
                csv.csv == DUET__CSV_HEADING ? SQLITE_NULL : sqlite3_column_type(row, i);

            if (type == SQLITE_INTEGER)
                duet__json_put_integer(&csv, name, (uint64_t)sqlite3_column_int64(row, i));
            else if (type == SQLITE_FLOAT)
                duet__json_put_number(&csv, name, sqlite3_column_double(row, i));
            else
                duet__json_put_string(&csv, name, (const char *)sqlite3_column_text(row, i));
        }
        if (step == SQLITE_ROW)
            duet__csv_end(&csv);
    } while (step == SQLITE_ROW);
    sqlite3_finalize(row);
    return 0;
}
