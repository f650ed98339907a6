/* SPDX-License-Identifier: Apache-2.0 */
/* A strict JSON reader that goes through a text once. */
#include "report/json_reader.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_DEPTH = 64 };

/* Reads on into *text, whose room doubles. */
static int read_all(FILE *file, const char *path, char **text, size_t *length,
                    struct duet_message *message)
{
    size_t room = 1 << 16, got;

    *length = 0;
    do {
        char *larger = g_try_realloc(*text, room + 1);

        if (!larger)
            return duet_fail(message, DUET_ENOMEM, "%s: out of memory", path);
        *text = larger;
        got = fread(*text + *length, 1, room - *length, file);
        *length += got;
        if (ferror(file))
            return duet_fail(message, DUET_EIO, "%s: cannot read: %s", path, strerror(errno));
        if ((gint64)*length > DUET__READER_MOST)
            return duet_fail(message, DUET_EIO, "%s: larger than %d MiB, the most that is read",
                             path, (int)(DUET__READER_MOST >> 20));
        if (*length == room)
            room *= 2;
    } while (got > 0);
    (*text)[*length] = 0;
    return 0;
}

int duet__reader_load(const char *path, char **text, size_t *length, struct duet_message *message)
{
    FILE *file = fopen(path, "rb");
    int error;

    *text = NULL;
    if (!file)
        return duet_fail(message, DUET_EIO, "%s: cannot open: %s", path, strerror(errno));
    error = read_all(file, path, text, length, message);
    fclose(file);
    if (error)
        g_clear_pointer(text, g_free);
    return error;
}

void duet__reader_begin(struct duet__reader *json, const char *text, size_t length,
                        const char *path, struct duet_message *message)
{
    *json = (struct duet__reader){.path = path,
                                  .text = text,
                                  .at = text,
                                  .end = text + length,
                                  .message = message,
                                  .fresh = true,
                                  .key = g_string_new(NULL),
                                  .word = g_string_new(NULL)};
    if (!g_utf8_validate(text, (gssize)length, NULL))
        duet__reader_wrong(json, "not a text in UTF-8");
}

bool duet__reader_wrong(struct duet__reader *json, const char *format, ...)
{
    unsigned line = 1;
    va_list args;
    char *what;

    if (json->error)
        return false;
    json->error = DUET_EPARSE;
    for (const char *at = json->text; at < json->at; at++)
        line += *at == '\n';
    va_start(args, format);
    what = g_strdup_vprintf(format, args);
    va_end(args);
    /* what is quoted may be anything */
    for (char *at = what; *at; at++)
        if (g_ascii_iscntrl(*at))
            *at = '?';
    duet_fail(json->message, DUET_EPARSE, "%.300s:%u: %.400s", json->path, line, what);
    g_free(what);
    return false;
}

/* The next character that is no blank; 0 at the end and after an error. */
static char peek(struct duet__reader *json)
{
    if (json->error)
        return 0;
    while (json->at < json->end && strchr(" \t\r\n", *json->at) && *json->at)
        json->at++;
    return json->at < json->end ? *json->at : 0;
}

static bool expected(struct duet__reader *json, const char *what)
{
    char found = peek(json);

    if (!found && json->at >= json->end)
        return duet__reader_wrong(json, "expected %s, but the text ends", what);
    return duet__reader_wrong(json, "expected %s", what);
}

int duet__reader_end(struct duet__reader *json)
{
    if (peek(json) || json->at < json->end)
        duet__reader_wrong(json, "expected one JSON object and nothing behind it");
    g_string_free(json->key, TRUE);
    g_string_free(json->word, TRUE);
    return json->error;
}

static bool open_bracket(struct duet__reader *json, char bracket, const char *what)
{
    if (peek(json) != bracket)
        return expected(json, what);
    if (json->depth == MOST_DEPTH)
        return duet__reader_wrong(json, "nested too deeply");
    json->objects = json->objects << 1 | (bracket == '{');
    json->depth++;
    json->fresh = true;
    json->at++;
    return true;
}

bool duet__reader_object(struct duet__reader *json)
{
    return open_bracket(json, '{', "an object");
}

bool duet__reader_array(struct duet__reader *json)
{
    return open_bracket(json, '[', "an array");
}

/* Whether there is another member before the bracket that closes; reads the comma, or that. */
static bool another(struct duet__reader *json, char bracket)
{
    char next = peek(json);

    if (json->error)
        return false;
    if (next == bracket) {
        json->at++;
        json->depth--;
        json->objects >>= 1;
        json->fresh = false;
        return false;
    }
    if (!json->fresh && next != ',')
        return expected(json, bracket == '}' ? "',' or '}'" : "',' or ']'");
    if (!json->fresh)
        json->at++;
    json->fresh = false;
    return true;
}

bool duet__reader_next(struct duet__reader *json)
{
    return another(json, ']');
}

/* Four hexadecimal digits. */
static bool read_unit(struct duet__reader *json, unsigned *unit)
{
    *unit = 0;
    for (unsigned i = 0; i < 4; i++, json->at++) {
        if (json->at >= json->end || !g_ascii_isxdigit(*json->at))
            return duet__reader_wrong(json, "expected four hexadecimal digits after \\u");
        *unit = *unit << 4 | (unsigned)g_ascii_xdigit_value(*json->at);
    }
    return true;
}

/* What follows \u: one unit, or the two of a surrogate pair. */
static bool read_unicode(struct duet__reader *json, GString *into)
{
    unsigned unit, low;

    if (!read_unit(json, &unit))
        return false;
    if (unit >= 0xd800 && unit < 0xdc00) {
        if (json->end - json->at < 2 || json->at[0] != '\\' || json->at[1] != 'u')
            return duet__reader_wrong(json, "half of a surrogate pair");
        json->at += 2;
        if (!read_unit(json, &low))
            return false;
        if (low < 0xdc00 || low > 0xdfff)
            return duet__reader_wrong(json, "half of a surrogate pair");
        unit = 0x10000 + ((unit - 0xd800) << 10) + (low - 0xdc00);
    } else if (!unit || (unit >= 0xdc00 && unit <= 0xdfff)) {
        return duet__reader_wrong(json, unit ? "half of a surrogate pair" : "a zero in a text");
    }
    g_string_append_unichar(into, unit);
    return true;
}

static bool read_escape(struct duet__reader *json, GString *into)
{
    static const char names[] = "\"\\/bfnrt", values[] = "\"\\/\b\f\n\r\t";
    char name = json->at < json->end ? *json->at : 0;
    const char *found = name ? strchr(names, name) : NULL;

    if (name == 'u') {
        json->at++;
        return read_unicode(json, into);
    }
    if (!found)
        return duet__reader_wrong(json, "unknown escape in a text");
    g_string_append_c(into, values[found - names]);
    json->at++;
    return true;
}

static bool read_text(struct duet__reader *json, GString *into, const char *what)
{
    if (peek(json) != '"')
        return expected(json, what);
    g_string_truncate(into, 0);
    json->at++;
    for (;;) {
        const char *from = json->at;

        while (json->at < json->end && (unsigned char)*json->at >= 0x20 && *json->at != '"' &&
               *json->at != '\\')
            json->at++;
        g_string_append_len(into, from, json->at - from);
        if (json->at >= json->end)
            return duet__reader_wrong(json, "a text without an end");
        if ((unsigned char)*json->at < 0x20)
            return duet__reader_wrong(json, "a control character in a text");
        if (*json->at++ == '"')
            return true;
        if (!read_escape(json, into))
            return false;
    }
}

bool duet__reader_text(struct duet__reader *json, const char **value)
{
    if (!read_text(json, json->word, "a text in quotes"))
        return false;
    *value = json->word->str;
    return true;
}

bool duet__reader_key(struct duet__reader *json, const char **key)
{
    if (!another(json, '}') || !read_text(json, json->key, "a name in quotes"))
        return false;
    if (peek(json) != ':')
        return expected(json, "':'");
    json->at++;
    *key = json->key->str;
    return true;
}

/* Skips at least one digit. */
static bool digits(const char **at)
{
    const char *from = *at;

    while (g_ascii_isdigit(**at))
        ++*at;
    return *at > from;
}

bool duet__reader_number(struct duet__reader *json, double *value)
{
    const char *at;
    bool good;

    peek(json);
    if (json->error)
        return false;
    /* behind the text stands a zero, at which this ends */
    at = json->at + (*json->at == '-');
    good = *at != '0' ? digits(&at) : (at++, true);
    if (good && *at == '.')
        good = (at++, digits(&at));
    if (good && (*at == 'e' || *at == 'E')) {
        at++;
        at += *at == '+' || *at == '-';
        good = digits(&at);
    }
    if (!good)
        return expected(json, "a number");
    *value = g_ascii_strtod(json->at, NULL);
    if (!isfinite(*value))
        return duet__reader_wrong(json, "a number that is too large");
    json->at = at;
    return true;
}

bool duet__reader_count(struct duet__reader *json, uint64_t most, uint64_t *value)
{
    double number = 0;

    if (!duet__reader_number(json, &number))
        return false;
    if (number < 0 || number != floor(number) || number >= 0x1p53 || number > (double)most)
        return duet__reader_wrong(json, "%g is not a whole number up to %.0f", number,
                                  fmin((double)most, 0x1p53 - 1));
    *value = (uint64_t)number;
    return true;
}

static bool literal(struct duet__reader *json, const char *word)
{
    size_t length = strlen(word);

    peek(json);
    if (json->error || (size_t)(json->end - json->at) < length ||
        memcmp(json->at, word, length) != 0)
        return false;
    json->at += length;
    return true;
}

bool duet__reader_flag(struct duet__reader *json, bool *value)
{
    *value = literal(json, "true");
    return *value || literal(json, "false") || expected(json, "true or false");
}

bool duet__reader_null(struct duet__reader *json)
{
    return literal(json, "null");
}

/* A value that is neither an object nor an array. */
static bool skip_scalar(struct duet__reader *json, char first)
{
    double number;
    bool flag;

    if (first == '"')
        return read_text(json, json->word, "a text");
    if (first == 't' || first == 'f')
        return duet__reader_flag(json, &flag);
    if (first == '-' || g_ascii_isdigit(first))
        return duet__reader_number(json, &number);
    return duet__reader_null(json) || expected(json, "a value");
}

bool duet__reader_skip(struct duet__reader *json)
{
    unsigned outside = json->depth;
    const char *key;

    do {
        char first = peek(json);

        if (first == '{')
            duet__reader_object(json);
        else if (first == '[')
            duet__reader_array(json);
        else
            skip_scalar(json, first);
        /* to the next value inside, out of whatever ends here */
        while (!json->error && json->depth > outside &&
               !(json->objects & 1 ? duet__reader_key(json, &key) : duet__reader_next(json)))
            continue;
    } while (!json->error && json->depth > outside);
    return !json->error;
}
