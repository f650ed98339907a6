/* SPDX-License-Identifier: Apache-2.0 */
/* The file of results. */
#include "study/store.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "base/files.h"
#include "base/json.h"

enum {
    OURS = 0x64756574, /* "duet", as the data base's kind of application */
    SCHEMA = 2,
    KEYS = 5, /* columns that make a run what it is */
    BUSY_MS = 60000,
};

static int fail(const struct duet__store *store, const char *path, struct duet_message *message)
{
    const int code = sqlite3_errcode(store->database);
    if (code == SQLITE_NOTADB || code == SQLITE_CORRUPT)
        return duet_fail(message, DUET_EINVAL, "%s is no file of results (%s)", path,
                         sqlite3_errmsg(store->database));
    return duet_fail(message, DUET_EIO, "%s: %s", path ? path : "results in memory",
                     sqlite3_errmsg(store->database));
}

static bool execute(const struct duet__store *store, const char *statements)
{
    return sqlite3_exec(store->database, statements, NULL, NULL, NULL) == SQLITE_OK;
}

sqlite3_stmt *duet__store_ask(const struct duet__store *store, struct duet_message *message,
                              const char *format, ...)
{
    sqlite3_stmt *statement = NULL;
    va_list args;
    char *text;
    va_start(args, format);
    text = sqlite3_vmprintf(format, args);
    va_end(args);
    if (sqlite3_prepare_v2(store->database, text, -1, &statement, NULL) != SQLITE_OK)
        fail(store, store->path, message);
    sqlite3_free(text);
    return statement;
}

int duet__store_asked(const struct duet__store *store, sqlite3_stmt *statement,
                      struct duet_message *message)
{
    /* finalizing repeats the error of the last step; a statement not stepped to its end is fine */
    return sqlite3_finalize(statement) == SQLITE_OK ? 0 : fail(store, store->path, message);
}

/* Returns the first number that a statement gives; -1 if it cannot be asked. */
static int64_t number_of(const struct duet__store *store, const char *text)
{
    sqlite3_stmt *statement = duet__store_ask(store, NULL, "%s", text);
    int64_t number = -1;
    if (statement && sqlite3_step(statement) == SQLITE_ROW)
        number = sqlite3_column_int64(statement, 0);
    sqlite3_finalize(statement);
    return number;
}

/* Checks that a data base, "main" or an attached one, is one of ours; *empty: it has nothing in
   it. */
static int check(const struct duet__store *store, const char *name, const char *path, bool *empty,
                 struct duet_message *message)
{
    g_autofree char *tables = g_strdup_printf("SELECT count(*) FROM %s.sqlite_master", name);
    g_autofree char *kind = g_strdup_printf("PRAGMA %s.application_id", name);
    g_autofree char *schema = g_strdup_printf("PRAGMA %s.user_version", name);
    int64_t count = number_of(store, tables);
    if (count < 0)
        return fail(store, path, message);
    *empty = count == 0;
    if (*empty)
        return 0;
    if (number_of(store, kind) != OURS)
        return duet_fail(message, DUET_EINVAL,
                         "%s is a data base, but no file of results of duet study", path);
    if (number_of(store, schema) != SCHEMA)
        return duet_fail(message, DUET_EINVAL,
                         "%s was made by another version of duet, which this one cannot read",
                         path);
    return 0;
}

static int read_columns(struct duet__store *store, struct duet_message *message)
{
    sqlite3_stmt *statement = duet__store_ask(store, message, "PRAGMA main.table_info(runs)");
    if (!statement)
        return DUET_EIO;
    g_hash_table_remove_all(store->columns);
    while (sqlite3_step(statement) == SQLITE_ROW)
        g_hash_table_add(store->columns, g_strdup((const char *)sqlite3_column_text(statement, 1)));
    return duet__store_asked(store, statement, message);
}

/* Rolls back after an error: rows that were not committed are gone, and so are their columns. */
static int fail_writing(struct duet__store *store, struct duet_message *message)
{
    int error = fail(store, store->path, message);
    (void)read_columns(store, NULL);
    return error;
}

static const char schema[] =
    "BEGIN IMMEDIATE;"
    "CREATE TABLE IF NOT EXISTS runs(id INTEGER PRIMARY KEY, command TEXT NOT NULL,"
    "  rep INTEGER NOT NULL, version TEXT NOT NULL, platform_hash TEXT NOT NULL,"
    "  inputs_hash TEXT NOT NULL, build, made_at DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ')),"
    "  status, error,"
    "  UNIQUE(command, rep, version, platform_hash, inputs_hash));"
    "CREATE TABLE IF NOT EXISTS settings(name TEXT PRIMARY KEY, option TEXT NOT NULL);"
    "PRAGMA application_id = 0x64756574;" /* OURS */
    "PRAGMA user_version = 2;"            /* SCHEMA */
    "COMMIT";

/*
 * Begins a log beside the file, so that readers do not stop writers, and a process that is killed
 * leaves what it has committed. While others open or close the file, SQLite refuses at once.
 */
static bool begin_log(const struct duet__store *store)
{
    enum { PAUSE_MS = 10 };
    for (int waited_ms = 0; waited_ms < BUSY_MS; waited_ms += PAUSE_MS) {
        if (execute(store, "PRAGMA journal_mode = WAL"))
            return true;
        if (sqlite3_errcode(store->database) != SQLITE_BUSY)
            return false;
        g_usleep(PAUSE_MS * 1000);
    }
    return false;
}

int duet__store_open(struct duet__store *store, const char *path, enum duet__store_use use,
                     struct duet_message *message)
{
    bool empty = true;
    int error;
    *store = (struct duet__store){.path = g_strdup(path),
                                  .columns =
                                      g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL)};
    if (use == DUET__STORE_SHOW && !g_file_test(path, G_FILE_TEST_EXISTS))
        return duet_fail(message, DUET_EINVAL, "there is no %s yet: without --show it is made",
                         path);
    if (use == DUET__STORE_WRITE && path && strcmp(path, "-") == 0)
        return duet__file_check(path, message); /* always refuses "-" */
    if (sqlite3_open_v2(path ? path : ":memory:", &store->database,
                        use == DUET__STORE_SHOW
                            ? SQLITE_OPEN_READONLY
                            : SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_URI,
                        NULL) != SQLITE_OK)
        return sqlite3_system_errno(store->database)
                   ? duet_fail(message, DUET_EIO, "cannot open %s: %s", path,
                               g_strerror(sqlite3_system_errno(store->database)))
                   : fail(store, path, message);
    sqlite3_busy_timeout(store->database, BUSY_MS);
    error = check(store, "main", path, &empty, message);
    if (!error && empty && use == DUET__STORE_SHOW)
        error = duet_fail(message, DUET_EINVAL, "there is nothing in %s", path);
    if (error)
        return error;
    if (use == DUET__STORE_WRITE &&
        (!begin_log(store) || !execute(store, "PRAGMA synchronous = NORMAL") ||
         (empty && !execute(store, schema))))
        return fail(store, path, message);
    return read_columns(store, message);
}

int duet__store_commit(struct duet__store *store, struct duet_message *message)
{
    if (!store->writing)
        return 0;
    store->writing = false;
    return execute(store, "COMMIT") ? 0 : fail_writing(store, message);
}

int duet__store_close(struct duet__store *store, struct duet_message *message)
{
    int error = store->database ? duet__store_commit(store, message) : 0;
    sqlite3_finalize(store->known);
    /* no log is left beside the file: it can be copied, and read where nothing can be written */
    if (store->database && !sqlite3_db_readonly(store->database, "main"))
        execute(store, "PRAGMA journal_mode = DELETE");
    sqlite3_close(store->database);
    g_free(store->path);
    g_clear_pointer(&store->columns, g_hash_table_unref);
    *store = (struct duet__store){0};
    return error;
}

static void bind_key(sqlite3_stmt *statement, const struct duet__run_key *key)
{
    sqlite3_bind_text(statement, 1, key->command, -1, SQLITE_TRANSIENT);
    sqlite3_bind_int64(statement, 2, (int64_t)key->rep);
    sqlite3_bind_text(statement, 3, key->version, -1, SQLITE_TRANSIENT);
    sqlite3_bind_text(statement, 4, key->platform_hash, -1, SQLITE_TRANSIENT);
    sqlite3_bind_text(statement, 5, key->inputs_hash, -1, SQLITE_TRANSIENT);
}

double *duet__figure(struct duet__figures *figures, const char *column)
{
    return !strcmp(column, "makespan_s") ? &figures->makespan_s
           : !strcmp(column, "gflops")   ? &figures->gflops
           : !strcmp(column, "best_s")   ? &figures->best_s
           : !strcmp(column, "status")   ? &figures->status
                                         : NULL;
}

bool duet__store_has(struct duet__store *store, const struct duet__run_key *key, bool failed,
                     struct duet__figures *figures, char **why)
{
    bool has;
    if (!store->known)
        store->known = duet__store_ask(
            store, NULL,
            "SELECT error IS NULL, * FROM runs WHERE command = ? AND rep = ? AND version = ? AND "
            "platform_hash = ? AND inputs_hash = ?");
    bind_key(store->known, key);
    has = sqlite3_step(store->known) == SQLITE_ROW &&
          (!failed || sqlite3_column_int(store->known, 0));
    *figures = (struct duet__figures){.makespan_s = INFINITY};
    *why = NULL;
    for (int c = 0; has && c < sqlite3_column_count(store->known); c++) {
        const char *name = sqlite3_column_name(store->known, c);
        double *number = duet__figure(figures, name);
        if (sqlite3_column_type(store->known, c) == SQLITE_NULL)
            continue;
        figures->estimated |= !strcmp(name, "estimated");
        if (number)
            *number = sqlite3_column_double(store->known, c);
        else if (!strcmp(name, "error"))
            *why = g_strdup((const char *)sqlite3_column_text(store->known, c));
    }
    sqlite3_reset(store->known);
    return has;
}

/* ------------------------------------------------------------------------------------------- */
/* Rows                                                                                         */

/* A value for a column: a whole number, a number, a text, or none of these: NULL. */
struct value {
    char *column;
    enum { NOTHING, WHOLE, NUMBER, TEXT } kind;
    int64_t whole;
    double number;
    char *text;
};

static void value_fini(void *data)
{
    struct value *value = data;
    g_free(value->column);
    g_free(value->text);
}

/* Returns a number as such, so that values are in order and one can calculate with them. */
static struct value value_of(const char *column, const char *text)
{
    struct value value = {.column = g_strdup(column), .kind = TEXT, .text = g_strdup(text)};
    const size_t digits = strspn(text, "0123456789");
    char *end = NULL;
    value.number = digits ? g_ascii_strtod(text, &end) : 0;
    value.whole = value.number < 1e15 ? (int64_t)value.number : 0;
    if (digits && digits < 16 && !text[digits])
        value.kind = WHOLE;
    else if (end && !*end && text[digits] == '.')
        value.kind = NUMBER;
    return value;
}

static void add_value(GArray *values, struct value value)
{
    for (guint i = 0; i < values->len; i++)
        if (!strcmp(g_array_index(values, struct value, i).column, value.column)) {
            value_fini(&value);
            return;
        }
    g_array_append_val(values, value);
}

/* Takes a member of the row. */
static int take_member(const struct duet__json *at, const char *key, void *data)
{
    struct value value = {.column = g_strdup(key)};
    struct duet_message ignored;
    struct duet__json own = *at;
    const char *text = NULL;
    uint64_t whole = 0;
    bool flag = false;
    own.message = &ignored;
    if (duet__json_is_null(at))
        value.kind = NOTHING;
    else if (duet__json_is_string(at) && !duet__json_string(&own, &text))
        value = (struct value){.column = value.column, .kind = TEXT, .text = g_strdup(text)};
    else if (!duet__json_boolean(&own, &flag))
        value = (struct value){.column = value.column, .kind = WHOLE, .whole = flag};
    else if (!duet__json_integer(&own, 0, INT64_MAX, &whole))
        value = (struct value){.column = value.column, .kind = WHOLE, .whole = (int64_t)whole};
    else if (!duet__json_number(&own, -DBL_MAX, DBL_MAX, &value.number))
        value.kind = NUMBER;
    add_value(data, value);
    return 0;
}

static void bind(sqlite3_stmt *statement, int place, const struct value *value)
{
    if (value->kind == TEXT)
        sqlite3_bind_text(statement, place, value->text, -1, SQLITE_TRANSIENT);
    else if (value->kind == WHOLE)
        sqlite3_bind_int64(statement, place, value->whole);
    else if (value->kind == NUMBER)
        sqlite3_bind_double(statement, place, value->number);
}

/* Adds a column to `runs` if it is missing. */
static bool add_column(struct duet__store *store, const char *name)
{
    char *text;
    bool good;
    if (g_hash_table_contains(store->columns, name))
        return true;
    text = sqlite3_mprintf("ALTER TABLE runs ADD COLUMN \"%w\"", name);
    good = execute(store, text);
    sqlite3_free(text);
    g_hash_table_add(store->columns, g_strdup(name));
    return good;
}

/* Inserts a row whose columns exist. */
static bool insert(struct duet__store *store, const struct duet__run_key *key, const GArray *values)
{
    g_autoptr(GString) columns = g_string_new(NULL), marks = g_string_new(NULL);
    sqlite3_stmt *statement;
    bool good;
    for (guint i = 0; i < values->len; i++) {
        char *name = sqlite3_mprintf(", \"%w\"", g_array_index(values, struct value, i).column);
        g_string_append(columns, name);
        g_string_append(marks, ", ?");
        sqlite3_free(name);
    }
    statement = duet__store_ask(store, NULL,
                                "INSERT OR REPLACE INTO runs(command, rep, version, platform_hash, "
                                "inputs_hash%s) VALUES(?, ?, ?, ?, ?%s)",
                                columns->str, marks->str);
    if (!statement)
        return false;
    bind_key(statement, key);
    for (guint i = 0; i < values->len; i++)
        bind(statement, KEYS + 1 + (int)i, &g_array_index(values, struct value, i));
    good = sqlite3_step(statement) == SQLITE_DONE;
    sqlite3_finalize(statement);
    return good;
}

/* The command lines that made rows: in files of older builds the table is missing. */
#define STUDIES "CREATE TABLE IF NOT EXISTS main.studies(command TEXT PRIMARY KEY);"

/* Notes that the columns of a cell are settings, and which command line made it. */
static bool note_settings(struct duet__store *store, const struct duet__product *product,
                          bool program)
{
    bool good =
        !program || execute(store, "INSERT OR IGNORE INTO settings VALUES('program', 'program')");
    for (guint f = 0; f < product->factors->len && good; f++) {
        const struct duet__factor *factor = product->factors->pdata[f];
        const char *option = factor->option ? factor->option->name : factor->column;
        char *text = sqlite3_mprintf("INSERT OR IGNORE INTO settings VALUES(%Q, %Q)",
                                     factor->column, option);
        good = execute(store, text);
        sqlite3_free(text);
    }
    if (good && store->line) {
        char *text =
            sqlite3_mprintf(STUDIES "INSERT OR IGNORE INTO studies VALUES(%Q)", store->line);
        good = execute(store, text);
        sqlite3_free(text);
    }
    return good;
}

int duet__store_put(struct duet__store *store, const struct duet__run_key *key,
                    const struct duet__product *product, uint64_t cell, const char *row,
                    struct duet_message *message)
{
    static const char *const keys[] = {"command",       "rep",         "version",
                                       "platform_hash", "inputs_hash", "made_at"};
    g_autoptr(GArray) values = g_array_new(FALSE, FALSE, sizeof(struct value));
    bool good;
    int error;
    g_array_set_clear_func(values, value_fini);
    for (size_t i = 0; i < G_N_ELEMENTS(keys); i++) /* no option names these settings */
        add_value(values, (struct value){.column = g_strdup(keys[i])});
    if (key->build)
        add_value(values, value_of("build", key->build));
    if (key->program)
        add_value(values, value_of("program", key->program));
    for (guint f = 0; f < product->factors->len; f++) {
        const struct duet__factor *factor = product->factors->pdata[f];
        const char *value = duet__factor_value(factor, duet__study_value(product, cell, f));
        add_value(values, value_of(factor->column, value));
    }
    error = duet__json_each(row, strlen(row), "a row", NULL, take_member, values, message);
    if (error)
        return error;
    g_array_remove_range(values, 0, G_N_ELEMENTS(keys));
    good = store->writing || (execute(store, "BEGIN IMMEDIATE") && !read_columns(store, message));
    store->writing = good; /* from here on no other process adds columns */
    good = good && note_settings(store, product, key->program);
    for (guint i = 0; i < values->len && good; i++)
        good = add_column(store, g_array_index(values, struct value, i).column);
    good = good && insert(store, key, values);
    return good ? 0 : fail_writing(store, message);
}

/* ------------------------------------------------------------------------------------------- */
/* Several files                                                                                */

/* Compares two rows of the same run: their keys are equal; `part` is the other file. */
#define SAME                                                                                       \
    "mine.command = its.command AND mine.rep = its.rep AND mine.version = its.version AND "        \
    "mine.platform_hash = its.platform_hash AND mine.inputs_hash = its.inputs_hash"

/* Returns the columns of the other file, as ", \"a\", \"b\"", and makes each also one here. */
static char *share_columns(struct duet__store *store)
{
    sqlite3_stmt *statement = duet__store_ask(store, NULL, "PRAGMA part.table_info(runs)");
    GString *text = g_string_new(NULL);
    bool good = statement != NULL;
    while (good && sqlite3_step(statement) == SQLITE_ROW) {
        const char *name = (const char *)sqlite3_column_text(statement, 1);
        char *quoted = sqlite3_mprintf("\"%w\"", name);
        if (strcmp(name, "id") != 0) {
            good = add_column(store, name);
            g_string_append_printf(text, "%s%s", text->len ? ", " : "", quoted);
        }
        sqlite3_free(quoted);
    }
    good = sqlite3_finalize(statement) == SQLITE_OK && good;
    return g_string_free(text, !good);
}

/* Merges the other file, in a transaction that is left open if this fails. */
static bool merge_part(struct duet__store *store, uint64_t *added, uint64_t *differing)
{
    g_autofree char *columns = share_columns(store);
    const int before = sqlite3_total_changes(store->database);
    char *text;
    bool good = columns && execute(store, "INSERT OR IGNORE INTO main.settings SELECT * FROM "
                                          "part.settings ORDER BY rowid");
    const int settings = sqlite3_total_changes(store->database) - before;
    int deleted;
    int64_t both;
    both = number_of(store, "SELECT count(*) FROM main.runs mine JOIN part.runs its ON " SAME
                            " WHERE mine.makespan_s <> its.makespan_s");
    *differing = both > 0 ? (uint64_t)both : 0; /* below 0: one of the files has no results at
                                                   all */
    good = good && execute(store, "DELETE FROM main.runs WHERE error IS NOT NULL AND id IN (SELECT "
                                  "mine.id FROM main.runs mine JOIN part.runs its ON " SAME
                                  " WHERE its.error IS NULL)");
    deleted = sqlite3_total_changes(store->database) - before - settings;
    text = sqlite3_mprintf("INSERT OR IGNORE INTO main.runs(%s) SELECT %s FROM part.runs ORDER BY "
                           "id",
                           columns, columns);
    good = good && execute(store, text);
    sqlite3_free(text);
    *added = (uint64_t)(sqlite3_total_changes(store->database) - before - settings - deleted);
    if (good &&
        number_of(store, "SELECT count(*) FROM part.sqlite_master WHERE name = 'studies'") > 0)
        good =
            execute(store, STUDIES "INSERT OR IGNORE INTO main.studies SELECT * FROM part.studies"
                                   " ORDER BY rowid");
    return good;
}

int duet__store_merge(struct duet__store *store, const char *path, uint64_t *added,
                      uint64_t *differing, struct duet_message *message)
{
    g_autofree char *whole = g_canonicalize_filename(path, NULL);
    g_autofree char *uri = g_filename_to_uri(whole, NULL, NULL);
    char *text = sqlite3_mprintf("ATTACH '%q?mode=ro' AS part", uri);
    bool empty = false, good = execute(store, text);
    int error;
    *added = *differing = 0;
    sqlite3_free(text);
    if (!good)
        return fail(store, path, message);
    error = check(store, "part", path, &empty, message);
    if (!error && !empty) {
        good = execute(store, "BEGIN IMMEDIATE") && merge_part(store, added, differing);
        if (!good || !execute(store, "COMMIT")) {
            error = fail(store, store->path, message);
            execute(store, "ROLLBACK");
        }
    }
    execute(store, "DETACH part");
    return error;
}
