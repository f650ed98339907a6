/* SPDX-License-Identifier: Apache-2.0 */
/* Places in a JSON document, typed values with ranges, and messages that name them. */
#include "base/json.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <glib.h>
#include <jansson.h>

/* A double holds every whole number up to here. */
static const double MOST_WHOLE = 0x1p53;

int duet__json_parse(const char *text, size_t length, const char *path,
                     struct duet_message *message, struct duet__json *root)
{
    json_error_t problem;
    json_t *node = json_loadb(text, length, JSON_REJECT_DUPLICATES, &problem);
    *root = (struct duet__json){.node = node, .path = path, .message = message};
    if (node == NULL)
        return duet_fail(message, DUET_EPARSE, "%.300s:%d: %s", path, MAX(problem.line, 1),
                         duet__json_clean(problem.text));
    return DUET_OK;
}

void duet__json_close(struct duet__json *root)
{
    json_decref(root->node);
    root->node = NULL;
    g_clear_pointer(&root->lines, g_hash_table_unref);
}

/* Appends the path from the root to `at`. Recursion is bounded by the depth of our formats. */
static void append_place(GString *text, const struct duet__json *at)
{
    if (at->up == NULL)
        return;
    append_place(text, at->up);
    if (at->key != NULL)
        g_string_append_printf(text, "%s%s", text->len > 0 ? "." : "", at->key);
    else
        g_string_append_printf(text, "[%u]", at->index);
}

char *duet__json_clean(char *text)
{
    for (char *at = text; *at != '\0'; at++)
        if (g_ascii_iscntrl(*at))
            *at = '?';
    return text;
}

/* The line of the innermost object that has one, as ":17"; "" where none has. */
static char *line_of(const struct duet__json *at)
{
    gpointer line = NULL;
    for (; at != NULL && at->lines != NULL && line == NULL; at = at->up)
        line = g_hash_table_lookup(at->lines, at->node);
    return line != NULL ? g_strdup_printf(":%" G_GSIZE_FORMAT, GPOINTER_TO_SIZE(line))
                        : g_strdup("");
}

int duet__json_fail(const struct duet__json *at, int error, const char *format, ...)
{
    g_autoptr(GString) place = g_string_new(NULL);
    g_autofree char *line = line_of(at), *what = NULL;
    va_list args;
    append_place(place, at);
    va_start(args, format);
    what = g_strdup_vprintf(format, args);
    va_end(args);
    return duet_fail(at->message, error, "%.200s%s: %.100s%s%s", at->path, line, place->str,
                     place->len > 0 ? ": " : "", duet__json_clean(what));
}

struct duet__json duet__json_member(const struct duet__json *at, const char *key)
{
    struct duet__json member = *at;
    member.up = at;
    member.key = key;
    member.node = json_object_get(at->node, key);
    return member;
}

struct duet__json duet__json_element(const struct duet__json *at, unsigned index)
{
    struct duet__json element = *at;
    element.up = at;
    element.key = NULL;
    element.index = index;
    element.node = json_array_get(at->node, index);
    return element;
}

bool duet__json_present(const struct duet__json *at)
{
    return at->node != NULL;
}

bool duet__json_is_null(const struct duet__json *at)
{
    return json_is_null(at->node);
}

bool duet__json_is_array(const struct duet__json *at)
{
    return json_is_array(at->node);
}

bool duet__json_is_string(const struct duet__json *at)
{
    return json_is_string(at->node);
}

static int expected(const struct duet__json *at, const char *what)
{
    if (at->node == NULL)
        return duet__json_fail(at, DUET_EPARSE, "missing, expected %s", what);
    return duet__json_fail(at, DUET_EPARSE, "expected %s", what);
}

static int unknown_key(const struct duet__json *at, const char *key, const char *const *known)
{
    g_autofree char *list = g_strjoinv(", ", (char **)(uintptr_t)known);
    const struct duet__json member = duet__json_member(at, key);
    const struct duet__json element = duet__json_element(&member, 0);
    if (at->lines != NULL && element.node != NULL) /* an element of XML has a line of its own */
        return duet__json_fail(&element, DUET_EPARSE, "not read by duet (known: %s)", list);
    return duet__json_fail(at, DUET_EPARSE, "unknown key \"%.60s\" (known: %s)", key, list);
}

int duet__json_keys(const struct duet__json *at, const char *const *known)
{
    const char *key;
    json_t *value;
    if (!json_is_object(at->node))
        return expected(at, "an object");
    if (known == NULL)
        return DUET_OK;
    json_object_foreach(at->node, key,
                        value) if (!g_strv_contains(known, key)) return unknown_key(at, key, known);
    return DUET_OK;
}

const char *duet__json_next(const struct duet__json *at, const char *key)
{
    void *iterator = key ? json_object_iter_next(at->node, json_object_key_to_iter(key))
                         : json_object_iter(at->node);
    return iterator ? json_object_iter_key(iterator) : NULL;
}

int duet__json_array(const struct duet__json *at, unsigned least, unsigned most, unsigned *count)
{
    size_t length = json_array_size(at->node);
    if (!json_is_array(at->node))
        return expected(at, "an array");
    if (length < least || length > most)
        return duet__json_fail(at, DUET_EPARSE, "has %zu elements, expected %u to %u", length,
                               least, most);
    *count = (unsigned)length;
    return DUET_OK;
}

int duet__json_elements(const struct duet__json *at, duet__json_each_fn *each, void *data)
{
    unsigned count = 0;
    int error = duet__json_array(at, 0, INT_MAX, &count);
    for (unsigned i = 0; i < count && !error; i++) {
        const struct duet__json element = duet__json_element(at, i);
        error = each(&element, at->key, data);
    }
    return error;
}

int duet__json_number(const struct duet__json *at, double least, double most, double *value)
{
    double number = json_number_value(at->node);
    if (!json_is_number(at->node))
        return expected(at, "a number");
    if (!isfinite(number) || number < least || number > most)
        return duet__json_fail(at, DUET_EPARSE, "%.10g is out of range, expected %.10g to %.10g",
                               number, least, most);
    *value = number;
    return DUET_OK;
}

int duet__json_integer(const struct duet__json *at, uint64_t least, uint64_t most, uint64_t *value)
{
    double number = 0;
    int error = duet__json_number(at, (double)least, (double)most, &number);
    if (error)
        return error;
    if (json_is_integer(at->node)) {
        *value = (uint64_t)json_integer_value(at->node);
    } else if (number == floor(number) && number <= MOST_WHOLE) {
        *value = (uint64_t)number;
    } else {
        return duet__json_fail(at, DUET_EPARSE, "%.17g is not a whole number below 2^53", number);
    }
    /* a number in range as a double is judged by its last bits */
    if (*value < least || *value > most)
        return duet__json_fail(at, DUET_EPARSE, "%.17g is out of range", number);
    return DUET_OK;
}

int duet__json_unsigned(const struct duet__json *at, unsigned least, unsigned most, unsigned *value)
{
    uint64_t number = 0;
    int error = duet__json_integer(at, least, most, &number);
    if (!error)
        *value = (unsigned)number;
    return error;
}

int duet__json_boolean(const struct duet__json *at, bool *value)
{
    if (!json_is_boolean(at->node))
        return expected(at, "true or false");
    *value = json_is_true(at->node);
    return DUET_OK;
}

int duet__json_string(const struct duet__json *at, const char **value)
{
    if (!json_is_string(at->node))
        return expected(at, "a string");
    *value = json_string_value(at->node);
    return DUET_OK;
}

bool duet__scan_whole(const char *text, uint64_t least, uint64_t most, uint64_t *out)
{
    uint64_t value;
    if (*text == '\0' || text[strspn(text, "0123456789")] != '\0')
        return false;
    errno = 0;
    value = strtoull(text, NULL, 10);
    if (errno == ERANGE || value < least || value > most)
        return false;
    *out = value;
    return true;
}

bool duet__good_name(const char *name, size_t size)
{
    static const char good[] = G_CSET_a_2_z G_CSET_A_2_Z G_CSET_DIGITS "_-.:+";
    size_t length = strlen(name);
    return length > 0 && length < size && strspn(name, good) == length;
}

int duet__json_name(const struct duet__json *at, char *name, size_t size)
{
    const char *text = NULL;
    int error = duet__json_string(at, &text);
    if (error)
        return error;
    if (text == NULL || !duet__good_name(text, size))
        return duet__json_fail(at, DUET_EPARSE,
                               "\"%.60s\" is no name: 1 to %zu letters, digits or _-.:+",
                               text != NULL ? text : "", size - 1);
    memcpy(name, text, strlen(text) + 1);
    return DUET_OK;
}

/* ------------------------------------------------------------------------------------------- */
/* Long documents, of which one value at a time is in memory                                    */

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
    while (!error && take_char(reader, ','));
    return error || take_char(reader, ']') ? error : fail_expected(reader, "',' or ']'");
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
        if (!error && *place) {
            g_autofree char *whole = g_strdup_printf("%s.%s", place, key);
            error = read_member(reader, whole);
        } else if (!error) {
            error = read_member(reader, key);
        }
    } while (!error && take_char(reader, ','));
    return error || take_char(reader, '}') ? error : fail_expected(reader, "',' or '}'");
}

int duet__json_each(const char *text, size_t length, const char *path, const char *const *inside,
                    duet__json_each_fn *each, void *data, struct duet_message *message)
{
    struct reader reader = {path, text, text + length, message, 1, inside, each, data};
    int error = read_members(&reader, "");
    (void)take_char(&reader, ' ');
    if (!error && reader.at != reader.end)
        error = fail_expected(&reader, "one object and nothing behind it");
    return error;
}
