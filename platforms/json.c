/* SPDX-License-Identifier: Apache-2.0 */
/* Places in a JSON document, typed values with ranges, and messages that name them. */
#include "platforms/json.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "platforms/description.h"

enum { MAX_DEPTH = 64, MAX_INTEGER_BITS = 53 };

/* What a text looks like to someone who only knows strings and brackets. */
struct scan {
    unsigned line, depth;
    bool quoted; /* inside a string */
    bool done;   /* the root object has ended */
};

/* Looks at one character outside strings; what is wrong with it, or NULL. */
static const char *scan_plain(struct scan *scan, char c)
{
    if (strchr("/#'", c) != NULL)
        return "JSON has neither comments nor single quotes";
    if (scan->depth == 0 && (c != '{' || scan->done) && !g_ascii_isspace(c))
        return "expected one JSON object and nothing else";
    if (c == '"') {
        scan->quoted = true;
    } else if (c == '[' || c == '{') {
        if (++scan->depth > MAX_DEPTH)
            return "nested too deeply";
    } else if (c == ']' || c == '}') {
        scan->done = --scan->depth == 0;
    }
    return NULL;
}

/* Whether the number that begins here, of `length` characters, is whole and beyond 64 bits. */
static bool beyond_integers(const char *number, size_t length)
{
    guint64 value;

    if (strspn(number, "0123456789") != length)
        return false;
    errno = 0;
    value = g_ascii_strtoull(number, NULL, 10);
    return errno != 0 || value > G_MAXINT64;
}

/*
 * Refuses what json-glib would accept or, worse, not survive: comments, nesting without end
 * (its parser recurses), halves of surrogate pairs (its scanner asserts), several roots (its
 * parser forgets all but the last one) and whole numbers that it would read as another (-1).
 */
static int check_text(const char *text, size_t length, const char *path,
                      struct duet_message *message)
{
    struct scan scan = {.line = 1};
    const char *wrong = NULL;

    if (!g_utf8_validate(text, (gssize)length, NULL))
        return duet_fail(message, DUET_EPARSE, "%s: not a text in UTF-8", path);
    for (size_t i = 0; i < length && wrong == NULL; i++) {
        char c = text[i];

        if (c == '\n')
            scan.line++;
        if (!scan.quoted && scan.depth > 0 && g_ascii_isdigit(c)) {
            size_t token = strspn(text + i, "0123456789.eE+-");

            if (beyond_integers(text + i, token))
                return duet_fail(message, DUET_EPARSE, "%s:%u: %.*s is too large a number", path,
                                 scan.line, (int)MIN(token, 60), text + i);
            i += token - 1;
        } else if (!scan.quoted) {
            wrong = scan_plain(&scan, c);
        } else if (c == '"') {
            scan.quoted = false;
        } else if (c == '\\' && text[i + 1] == 'u' && (text[i + 2] == 'd' || text[i + 2] == 'D')) {
            wrong = "\\u escapes from D000 to DFFF are not read, write the character itself";
        } else if (c == '\\' && i + 1 < length) {
            i++;
        }
    }
    if (wrong != NULL)
        return duet_fail(message, DUET_EPARSE, "%s:%u: %s", path, scan.line, wrong);
    return DUET_OK;
}

int duet__json_parse(const char *text, size_t length, const char *path,
                     struct duet_message *message, JsonParser **parser, struct duet__json *root)
{
    GError *error = NULL;
    int result = check_text(text, length, path, message);

    if (result != DUET_OK)
        return result;
    *parser = json_parser_new_immutable();
    if (!json_parser_load_from_data(*parser, text, (gssize)length, &error)) {
        const char *reason = error->message;

        if (g_str_has_prefix(reason, "<data>:")) /* json-glib's name for a text in memory */
            reason += strlen("<data>:");
        result = duet_fail(message, DUET_EPARSE, "%s:%.300s", path, reason);
        g_error_free(error);
        goto failed;
    }
    if (json_parser_get_root(*parser) == NULL) {
        result = duet_fail(message, DUET_EPARSE, "%s: empty, expected a JSON object", path);
        goto failed;
    }
    *root = (struct duet__json){.node = json_parser_get_root(*parser),
                                .path = path,
                                .message = message};
    return DUET_OK;

failed:
    g_object_unref(*parser);
    *parser = NULL;
    return result;
}

/* Appends the way from the root to `at`. At most MAX_DEPTH levels, so recursion is bounded. */
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

int duet__json_fail(const struct duet__json *at, int error, const char *format, ...)
{
    GString *place;
    char *what;
    va_list args;

    if (at->message == NULL)
        return error;
    place = g_string_new(NULL);
    append_place(place, at);
    va_start(args, format);
    what = g_strdup_vprintf(format, args);
    va_end(args);
    duet_fail(at->message, error, "%.200s: %.100s%s%s", at->path, place->str,
              place->len > 0 ? ": " : "", what);
    g_free(what);
    g_string_free(place, TRUE);
    return error;
}

struct duet__json duet__json_member(const struct duet__json *at, const char *key)
{
    return (struct duet__json){.up = at,
                               .key = key,
                               .node = json_object_get_member(json_node_get_object(at->node), key),
                               .path = at->path,
                               .message = at->message};
}

struct duet__json duet__json_element(const struct duet__json *at, unsigned index)
{
    return (struct duet__json){.up = at,
                               .index = index,
                               .node = json_array_get_element(json_node_get_array(at->node), index),
                               .path = at->path,
                               .message = at->message};
}

bool duet__json_present(const struct duet__json *at)
{
    return at->node != NULL;
}

static int expected(const struct duet__json *at, const char *what)
{
    if (at->node == NULL)
        return duet__json_fail(at, DUET_EPARSE, "missing, expected %s", what);
    return duet__json_fail(at, DUET_EPARSE, "expected %s", what);
}

static int unknown_key(const struct duet__json *at, const char *key, const char *const *known)
{
    GString *list = g_string_new(NULL);

    for (size_t i = 0; known[i] != NULL; i++)
        g_string_append_printf(list, "%s%s", i > 0 ? ", " : "", known[i]);
    duet__json_fail(at, DUET_EPARSE, "unknown key \"%.60s\" (known: %s)", key, list->str);
    g_string_free(list, TRUE);
    return DUET_EPARSE;
}

int duet__json_keys(const struct duet__json *at, const char *const *known)
{
    JsonObjectIter iter;
    const char *key;

    if (at->node == NULL || !JSON_NODE_HOLDS_OBJECT(at->node))
        return expected(at, "an object");
    json_object_iter_init(&iter, json_node_get_object(at->node));
    while (json_object_iter_next(&iter, &key, NULL))
        if (!g_strv_contains(known, key))
            return unknown_key(at, key, known);
    return DUET_OK;
}

int duet__json_array(const struct duet__json *at, unsigned least, unsigned most, unsigned *count)
{
    unsigned length;

    if (at->node == NULL || !JSON_NODE_HOLDS_ARRAY(at->node))
        return expected(at, "an array");
    length = json_array_get_length(json_node_get_array(at->node));
    if (length < least || length > most)
        return duet__json_fail(at, DUET_EPARSE, "has %u elements, expected %u to %u", length, least,
                               most);
    *count = length;
    return DUET_OK;
}

static bool holds_number(const struct duet__json *at)
{
    return at->node != NULL && JSON_NODE_HOLDS_VALUE(at->node) &&
           (json_node_get_value_type(at->node) == G_TYPE_INT64 ||
            json_node_get_value_type(at->node) == G_TYPE_DOUBLE);
}

int duet__json_number(const struct duet__json *at, double least, double most, double *value)
{
    double number;

    if (!holds_number(at))
        return expected(at, "a number");
    number = json_node_get_double(at->node);
    if (!isfinite(number) || number < least || number > most)
        return duet__json_fail(at, DUET_EPARSE, "%g is out of range, expected %g to %g", number,
                               least, most);
    *value = number;
    return DUET_OK;
}

int duet__json_integer(const struct duet__json *at, uint64_t least, uint64_t most, uint64_t *value)
{
    double number = 0;
    int error = duet__json_number(at, (double)least, (double)most, &number);

    if (error != DUET_OK)
        return error;
    if (number != floor(number) || number > (double)(UINT64_C(1) << MAX_INTEGER_BITS))
        return duet__json_fail(at, DUET_EPARSE, "%.17g is not a whole number below 2^53", number);
    *value = (uint64_t)number;
    return DUET_OK;
}

int duet__json_unsigned(const struct duet__json *at, unsigned least, unsigned most, unsigned *value)
{
    uint64_t number = 0;
    int error = duet__json_integer(at, least, most, &number);

    if (error == DUET_OK)
        *value = (unsigned)number;
    return error;
}

int duet__json_boolean(const struct duet__json *at, bool *value)
{
    if (at->node == NULL || !JSON_NODE_HOLDS_VALUE(at->node) ||
        json_node_get_value_type(at->node) != G_TYPE_BOOLEAN)
        return expected(at, "true or false");
    *value = json_node_get_boolean(at->node);
    return DUET_OK;
}

int duet__json_string(const struct duet__json *at, const char **value)
{
    if (at->node == NULL || !JSON_NODE_HOLDS_VALUE(at->node) ||
        json_node_get_value_type(at->node) != G_TYPE_STRING)
        return expected(at, "a string");
    *value = json_node_get_string(at->node);
    return DUET_OK;
}

int duet__json_name(const struct duet__json *at, char *name, size_t size)
{
    const char *text = NULL;
    int error = duet__json_string(at, &text);

    if (error != DUET_OK)
        return error;
    if (text == NULL || !duet__good_name(text, size))
        return duet__json_fail(at, DUET_EPARSE,
                               "\"%.60s\" is no name: 1 to %zu letters, digits or _-.:+",
                               text != NULL ? text : "", size - 1);
    memcpy(name, text, strlen(text) + 1);
    return DUET_OK;
}
