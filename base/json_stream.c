/* SPDX-License-Identifier: Apache-2.0 */
/* Reads long JSON documents, one value at a time. */
#include "base/json.h"

#include <string.h>

#include <glib.h>
#include <jansson.h>

struct reader {
    const char *path, *at, *end;
    struct duet_message *message;
    unsigned line;             /* line of `at`, from 1 */
    const char *const *inside; /* places of objects whose members are read one by one; NULL: none */
    duet__json_each_fn *each;
    void *data;
};

static int read_members(struct reader *reader, const char *place);

static int reader_fail(struct reader *reader, const char *format, ...) DUET_PRINTF(2, 3);
static int reader_fail(struct reader *reader, const char *format, ...)
{
    g_autofree char *what = NULL;
    va_list args;

    va_start(args, format);
    what = g_strdup_vprintf(format, args);
    va_end(args);
    return duet_fail(reader->message, DUET_EPARSE, "%.300s:%u: %s", reader->path, reader->line,
                     duet__json_clean(what));
}

static int fail_expected(struct reader *reader, const char *what)
{
    return reader_fail(reader,
                       reader->at < reader->end ? "expected %s" : "expected %s, but the text ends",
                       what);
}

static void move_to(struct reader *reader, const char *to)
{
    const char *at = reader->at;

    while ((at = memchr(at, '\n', (size_t)(to - at))) != NULL) {
        reader->line++;
        at++;
    }
    reader->at = to;
}

/* Skips blanks, and reads the next character if it is `wanted`. Returns true if it was. */
static bool take_char(struct reader *reader, char wanted)
{
    const char *to = reader->at;

    /* strspn is not used: under sanitizers it looks at the whole text each time */
    while (to < reader->end && (*to == ' ' || *to == '\t' || *to == '\r' || *to == '\n'))
        to++;
    move_to(reader, to);
    if (reader->at >= reader->end || *reader->at != wanted)
        return false;
    reader->at++;
    return true;
}

/* Returns the value at which the reader stands, and stays; *end: behind it. NULL after an error. */
static json_t *load_value(struct reader *reader, const char **end)
{
    json_error_t problem;
    json_t *node =
        json_loadb(reader->at, (size_t)(reader->end - reader->at),
                   JSON_REJECT_DUPLICATES | JSON_DECODE_ANY | JSON_DISABLE_EOF_CHECK, &problem);

    *end = reader->at + problem.position;
    if (node == NULL) {
        reader->line += (unsigned)MAX(problem.line, 1) - 1;
        (void)reader_fail(reader, "%s", problem.text);
    }
    return node;
}

/* Reads the name of the next member, which `keys` owns, and the colon behind it. */
static int read_key(struct reader *reader, GHashTable *keys, const char **key)
{
    const char *end;
    char *name;
    json_t *node;

    if (!take_char(reader, '"'))
        return fail_expected(reader, "a name in quotes");
    reader->at--;
    node = load_value(reader, &end);
    if (node == NULL)
        return DUET_EPARSE;
    *key = name = g_strdup(json_string_value(node));
    json_decref(node);
    if (!g_hash_table_add(keys, name))
        return reader_fail(reader, "the key \"%.60s\" is there twice", name);
    move_to(reader, end);
    return take_char(reader, ':') ? DUET_OK : fail_expected(reader, "':'");
}

/* Reads a value and calls `each` with it. */
static int read_value(struct reader *reader, const char *key)
{
    char place[320];
    struct duet__json at = {.path = place, .message = reader->message};
    const char *end;
    int error;

    (void)take_char(reader, ' ');
    at.node = load_value(reader, &end);
    if (at.node == NULL)
        return DUET_EPARSE;
    g_snprintf(place, sizeof(place), "%.300s:%u", reader->path, reader->line);
    error = reader->each(&at, key, reader->data);
    json_decref(at.node);
    move_to(reader, end);
    return error;
}

/* Reads the value of a member, or its elements or members one by one. */
static int read_member(struct reader *reader, const char *key)
{
    int error = DUET_OK;

    if (reader->inside && g_strv_contains(reader->inside, key))
        return read_members(reader, key);
    if (!take_char(reader, '['))
        return read_value(reader, key);
    if (take_char(reader, ']'))
        return DUET_OK;
    do
        error = read_value(reader, key);
    while (error == DUET_OK && take_char(reader, ','));
    return error != DUET_OK || take_char(reader, ']') ? error : fail_expected(reader, "',' or ']'");
}

/* Reads the members of the object at `place`, "" for the root. */
static int read_members(struct reader *reader, const char *place)
{
    g_autoptr(GHashTable) keys = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    const char *key = "";
    int error = DUET_OK;

    if (!take_char(reader, '{'))
        return fail_expected(reader, "an object");
    if (take_char(reader, '}'))
        return DUET_OK;
    do {
        error = read_key(reader, keys, &key);
        if (error == DUET_OK && *place) {
            g_autofree char *whole = g_strdup_printf("%s.%s", place, key);

            error = read_member(reader, whole);
        } else if (error == DUET_OK) {
            error = read_member(reader, key);
        }
    } while (error == DUET_OK && take_char(reader, ','));
    return error != DUET_OK || take_char(reader, '}') ? error : fail_expected(reader, "',' or '}'");
}

int duet__json_each(const char *text, size_t length, const char *path, const char *const *inside,
                    duet__json_each_fn *each, void *data, struct duet_message *message)
{
    struct reader reader = {path, text, text + length, message, 1, inside, each, data};
    int error = read_members(&reader, "");

    (void)take_char(&reader, ' ');
    if (error == DUET_OK && reader.at != reader.end)
        error = fail_expected(&reader, "one object and nothing behind it");
    return error;
}
