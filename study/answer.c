/* SPDX-License-Identifier: Apache-2.0 */
/* The table of best settings, and all rows as CSV. */
#include "study/answer.h"

#include <math.h>
#include <string.h>

#include "base/json.h"
#include "base/table.h"
#include "base/stats.h"

enum { CASES_SHOWN = 40 };

/* ------------------------------------------------------------------------------------------- */
/* A case                                                                                       */

/*
 * Compares two cells: by how much the second is longer, seed by seed, as a part of the first's
 * mean. Returns mean and interval, which is everything if both share too few seeds.
 */
static void compare(const struct duet__results *results, const struct duet__cell *first,
                    const struct duet__cell *second, guint comparisons, double *mean, double *reach)
{
    const uint64_t *seeds = results->seeds;
    const double *spans = results->spans;
    g_autoptr(GArray) differences = g_array_new(FALSE, FALSE, sizeof(double));
    struct duet__summary summary;
    for (size_t i = first->first, k = second->first;
         i < first->first + first->count && k < second->first + second->count;) {
        const uint64_t a = seeds[i], b = seeds[k];
        const double difference = (spans[k] - spans[i]) / first->mean_s;
        if (a == b)
            g_array_append_val(differences, difference);
        i += a <= b;
        k += b <= a;
    }
    *mean = second->mean_s / first->mean_s - 1;
    *reach = INFINITY;
    if (differences->len < DUET_INTERVAL_RUNS || (isinf(first->reach_s) && isinf(second->reach_s)))
        return;
    summary = duet__summarise((const double *)(const void *)differences->data, differences->len);
    *mean = summary.mean;
    *reach = summary.deviation / sqrt(differences->len) *
             duet__student_quantile(1 - 0.025 / comparisons, differences->len - 1);
}

/* Makespan of a cell's run with a seed; INFINITY: it has none. */
static double span_of(const struct duet__results *results, const struct duet__cell *cell,
                      uint64_t seed)
{
    for (size_t i = cell->first; i < cell->first + cell->count; i++)
        if (results->seeds[i] == seed)
            return results->spans[i];
    return INFINITY;
}

/* Returns the part of the seeds with which the cell of this rank in a case has the shortest run:
   its chance to be the best on a machine that is drawn (--interval); NaN of too few runs. */
static double chance_of(const struct duet__results *results, size_t index, size_t rank)
{
    const struct duet__cell *all = &results->cells[results->cases[index]], *own = all + rank;
    const size_t count = results->cases[index + 1] - results->cases[index];
    size_t best = 0;
    for (size_t i = own->first; i < own->first + own->count; i++) {
        bool shortest = true;
        for (size_t k = 0; k < count && shortest; k++)
            shortest =
                k == rank || span_of(results, &all[k], results->seeds[i]) >= results->spans[i];
        best += shortest;
    }
    return own->count < DUET_PREDICTIVE_LEAST ? NAN : (double)best / (double)own->count;
}

/* True if there are runs enough for the chance of a setting to be the best. */
static bool has_chances(const struct duet__results *results)
{
    return results->cells[results->cases[0]].count >= DUET_PREDICTIVE_LEAST;
}

struct duet__lead duet__study_lead(const struct duet__results *results, size_t index)
{
    const struct duet__cell *best = &results->cells[results->cases[index]];
    const guint others = (guint)(results->cases[index + 1] - results->cases[index] - 1);
    struct duet__lead lead = {.others = others, .mean = NAN, .reach = INFINITY};
    guint close = 0;
    bool even = false;
    for (guint i = others; i > 0; i--) {
        compare(results, best, best + i, others, &lead.mean, &lead.reach);
        close += lead.mean <= lead.reach;
        even |= isinf(best->reach_s) && isinf(best[i].reach_s);
    }
    if (!others)
        g_strlcpy(lead.sure, "no other", sizeof lead.sure);
    else if (best->count < DUET_INTERVAL_RUNS)
        snprintf(lead.sure, sizeof lead.sure, "%zu run%s", best->count,
                 best->count == 1 ? "" : "s");
    else if (even)
        g_strlcpy(lead.sure, "no spread", sizeof lead.sure);
    else if (close)
        snprintf(lead.sure, sizeof lead.sure, "%u within noise", close);
    else
        g_strlcpy(lead.sure, "sure", sizeof lead.sure);
    return lead;
}

/* Returns the values of a cell that are chosen, "480 dmda"; for g_free. */
static char *choice_of(const struct duet__results *results, const struct duet__cell *cell)
{
    GString *text = g_string_new(NULL);
    for (guint i = results->case_varied; i < results->varied->len; i++)
        g_string_append_printf(text, "%s%s", text->len ? " " : "",
                               duet__level_text(results, cell, i));
    return g_string_free(text, FALSE);
}

/* Puts the lead of the best setting of a case, or by how much the one of that rank is behind it. */
static void put_lead(struct duet__table *table, const struct duet__results *results, size_t index,
                     size_t rank)
{
    const struct duet__cell *best = &results->cells[results->cases[index]];
    struct duet__lead lead = duet__study_lead(results, index);
    if (rank) {
        compare(results, best, best + rank, lead.others, &lead.mean, &lead.reach);
        if (isfinite(lead.reach))
            g_strlcpy(lead.sure, lead.mean > lead.reach ? "sure" : "within noise",
                      sizeof lead.sure);
        lead.mean = 0 - lead.mean;
    }
    if (!lead.others)
        duet__table_print(table, "-\t-");
    else if (isinf(lead.reach))
        duet__table_print(table, "%.2f", 100 * lead.mean);
    else
        duet__table_print(table, "%.2f +-%.2f", 100 * lead.mean, 100 * lead.reach);
    if (lead.others)
        duet__table_add(table, choice_of(results, rank ? best : best + 1));
    duet__table_say(table, lead.sure);
    if (has_chances(results))
        duet__table_print(table, "%.0f", 100 * chance_of(results, index, rank));
}

/* Adds the line of a case, or of a worse setting in it. */
static void put_case(struct duet__table *table, const struct duet__results *results, size_t index,
                     size_t rank)
{
    const struct duet__cell *best = &results->cells[results->cases[index] + rank];
    const double rate = best->flops > 0 ? best->flops / best->mean_s : NAN;
    for (guint i = 0; i < results->varied->len; i++)
        duet__table_say(table, duet__level_text(results, best, i));
    duet__table_print(table, "%.*f", duet__decimals(best->mean_s, 5), best->mean_s);
    if (results->repeated)
        duet__table_print(table, "%.2f", 100 * best->reach_s / best->mean_s);
    duet__table_print(table, "%.*f\t%.1f", duet__decimals(rate, 5), rate,
                      best->bound_s > 0 ? 100 * best->bound_s / best->mean_s : NAN);
    if (results->case_varied < results->varied->len)
        put_lead(table, results, index, rank);
}

/* ------------------------------------------------------------------------------------------- */
/* All cases                                                                                    */

static void put_heading(struct duet__table *table, const struct duet__results *results)
{
    const bool chosen = results->case_varied < results->varied->len;
    g_autoptr(GString) sides = g_string_new(NULL);
    for (guint i = 0; i < results->varied->len; i++)
        g_string_append_c(sides, i < results->case_varied ? 'l' : 't');
    g_string_append(sides, results->repeated ? "rrrr" : "rrr");
    g_string_append(sides, chosen ? has_chances(results) ? "rtlr" : "rtl" : "");
    duet__table_init(table, sides->str);
    table->page = DUET__WIDE_PAGE;
    for (guint i = 0; i < results->varied->len; i++)
        duet__table_say(table, duet__varied(results, i)->name);
    duet__table_say(table, "makespan s");
    if (results->repeated)
        duet__table_say(table, "+- %");
    duet__table_print(table, "GFlop/s\tbound %%");
    if (chosen)
        duet__table_print(table, "lead %%\tbefore\t");
    if (chosen && has_chances(results))
        duet__table_say(table, "best in %");
}

/* The results of a setting over all cases. */
struct tally {
    guint cases, wins;
    double worst, logarithm; /* ratio of its makespan to the best one: the largest, and the sum of
                                logarithms */
};

static GHashTable *count(const struct duet__results *results)
{
    GHashTable *tallies = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    for (size_t c = 0; c < results->case_count; c++)
        for (size_t i = results->cases[c]; i < results->cases[c + 1]; i++) {
            const struct duet__cell *cell = &results->cells[i];
            g_autofree char *name = choice_of(results, cell);
            struct tally *tally = g_hash_table_lookup(tallies, name);
            const double ratio = cell->mean_s / results->cells[results->cases[c]].mean_s;
            if (!tally) {
                tally = g_new0(struct tally, 1);
                g_hash_table_insert(tallies, g_steal_pointer(&name), tally);
            }
            tally->cases++;
            tally->wins += ratio <= 1;
            tally->worst = fmax(tally->worst, ratio);
            tally->logarithm += log(ratio);
        }
    return tallies;
}

char *duet__study_advice(const struct duet__results *results)
{
    const size_t cases = results->case_count;
    g_autoptr(GHashTable) tallies = NULL;
    const char *name = NULL;
    const struct tally *best = NULL;
    GHashTableIter iterator;
    void *key, *value;
    if (cases < 2 || results->case_varied == results->varied->len)
        return NULL;
    tallies = count(results);
    g_hash_table_iter_init(&iterator, tallies);
    while (g_hash_table_iter_next(&iterator, &key, &value)) {
        const struct tally *tally = value;
        if (tally->cases < cases)
            continue;
        if (!best || tally->logarithm < best->logarithm ||
            (!(tally->logarithm > best->logarithm) && strcmp(key, name) < 0)) {
            best = tally;
            name = key;
        }
    }
    return best ? g_strdup_printf("one setting for all %zu cases: %s, best in %u of them, at most "
                                  "%.2f %% behind, %.2f %% in the mean",
                                  cases, name, best->wins, 100 * (best->worst - 1),
                                  100 * expm1(best->logarithm / (double)cases))
                : NULL;
}

guint duet__study_ranked(const struct duet__results *results)
{
    for (guint i = results->case_varied; i < results->varied->len; i++)
        if (!strcmp(duet__varied(results, i)->name, "policy"))
            return i;
    return results->case_varied;
}

/* Prints how the levels of the ranked setting compare over all cases. */
static void put_ranking(FILE *stream, const struct duet__results *results)
{
    g_autoptr(GString) text = g_string_new(NULL);
    const guint index = duet__study_ranked(results);
    const struct duet__varied *varied;
    struct duet__ranking ranking;
    if (index == results->varied->len)
        return;
    varied = duet__varied(results, index);
    duet__rank(results, index, &ranking);
    g_string_printf(text, "mean rank of %s in %zu cases:", varied->name, ranking.cases);
    for (size_t i = 0; i < ranking.levels; i++)
        g_string_append_printf(text, "%s %s %.2f", i ? "," : "",
                               duet__shown_text(varied->levels.list->pdata[ranking.order[i]]),
                               ranking.ranks[ranking.order[i]]);
    g_string_append_printf(text, "; closer than %.2f is not told apart (Nemenyi, 5%%)",
                           ranking.distance);
    if (ranking.left_out)
        g_string_append_printf(text, "; %zu cases without all of them are left out",
                               ranking.left_out);
    if (ranking.cases > 1)
        duet__put_wrapped(stream, text->str, 2);
    g_string_printf(text, "%s against each other (p of Wilcoxon's signed ranks, by Holm):",
                    (char *)varied->levels.list->pdata[ranking.own]);
    for (size_t i = 0, k; i < ranking.levels; i++)
        if ((k = ranking.order[i]) != ranking.own)
            g_string_append_printf(text, " %s %.2g,", (char *)varied->levels.list->pdata[k],
                                   ranking.against[k]);
    g_string_truncate(text, text->len - 1);
    if (ranking.cases > 1)
        duet__put_wrapped(stream, text->str, 2);
    duet__ranking_fini(&ranking);
}

sqlite3_stmt *duet__study_failed(const struct duet__store *store)
{
    return duet__store_ask(
        store, NULL,
        "WITH reasons AS (SELECT count(*) AS runs, error, min(command) AS "
        "command, row_number() OVER (ORDER BY count(*) DESC, error) AS place " DUET__FAILED_NEWEST
        " GROUP BY error) "
        "SELECT sum(runs) || ' run' || iif(sum(runs) = 1, '', 's') || "
        "iif(place < 4, ': ' || error || ' (' || command || ')', "
        "' for ' || count(*) || ' other reasons') "
        "FROM reasons GROUP BY min(place, 4)");
}

sqlite3_stmt *duet__study_builds(const struct duet__store *store)
{
    return duet__store_ask(store, NULL,
                           "SELECT group_concat(build, ', ') FROM (SELECT DISTINCT "
                           "ifnull(build, version) AS build " DUET__NEWEST
                           " ORDER BY 1) HAVING count(*) > 1");
}

sqlite3_stmt *duet__study_estimated(const struct duet__store *store)
{
    return g_hash_table_contains(store->columns, "estimated")
               ? duet__store_ask(
                     store, NULL,
                     "SELECT DISTINCT 'times of ' || estimated || ' on ' || platform " DUET__NEWEST
                     " AND estimated IS NOT NULL ORDER BY 1")
               : NULL;
}

char *duet__study_commands(const struct duet__store *store, const char *other)
{
    sqlite3_stmt *row = duet__store_ask(store, NULL, "SELECT command FROM studies ORDER BY rowid");
    GString *text = g_string_new(NULL);
    while (row && sqlite3_step(row) == SQLITE_ROW)
        g_string_append_printf(text, "%s%s", text->len ? "\n" : "",
                               (const char *)sqlite3_column_text(row, 0));
    sqlite3_finalize(row);
    return g_string_free(g_string_append(text, text->len ? "" : other), FALSE);
}

/* Prints a line for each row, the first one behind `before`. */
static void put_remarks(FILE *stream, const char *before, const char *label, sqlite3_stmt *row)
{
    for (; row && sqlite3_step(row) == SQLITE_ROW; before = "")
        fprintf(stream, "%s%s: %s\n", before, label, (const char *)sqlite3_column_text(row, 0));
    sqlite3_finalize(row);
}

int duet__study_show(FILE *stream, const struct duet__store *store, const char *best, bool every,
                     struct duet_message *message)
{
    struct duet__results results;
    struct duet__table table;
    int error = duet__results_read(&results, store, best, message);
    const size_t cases = results.case_count, lines = cases == 1 ? results.cell_count : cases,
                 shown = every ? lines : MIN(lines, CASES_SHOWN);
    if (!error && !cases) {
        fputs("no run has a result\n", stream);
        put_remarks(stream, "\n", "without a result", duet__study_failed(store));
    } else if (!error) {
        g_autofree char *advice = duet__study_advice(&results);
        put_remarks(stream, "", "estimated, not measured", duet__study_estimated(store));
        put_remarks(stream, "", "made by several builds of duet", duet__study_builds(store));
        put_heading(&table, &results);
        for (size_t i = 0; i < shown; i++)
            put_case(&table, &results, cases == 1 ? 0 : i, cases == 1 ? i : 0);
        duet__table_put(&table, stream, 0);
        if (shown < lines)
            fprintf(stream, "... and %zu more %s: --verbose shows all\n", lines - shown,
                    cases == 1 ? "settings" : "cases");
        if (advice)
            fprintf(stream, "\n%s\n", advice);
        put_ranking(stream, &results);
        put_remarks(stream, "\n", "without a result", duet__study_failed(store));
    }
    duet__results_fini(&results);
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
    return duet__store_asked(store, row, message);
}
