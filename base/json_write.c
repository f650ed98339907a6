/* SPDX-License-Identifier: Apache-2.0 */
/* Writes JSON and CSV: commas, texts, and numbers of the fewest digits. The recorder of OpenMP
 * programs, which must not load GLib, contains this file. */
#include "base/json.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

/*
 * Writes a number that is whole and below 10^15, or from 0.0001 to 1000 with at most 12 digits
 * behind the point, and not negative: most numbers in files are such, and printf is slow. Returns
 * false for any other number. Its digits, 15 at most, are those of "%.15g", and are read back as
 * the same number.
 */
static bool put_decimal(double value, char *buffer)
{
    const double scale = value < 1e3 ? 1e12 : 1;
    uint64_t rest, unit = 100000000000000;
    char *end = buffer;
    if (signbit(value) || value >= 1e15 || (value > 0 && value < 1e-4) ||
        rint(value * scale) / scale != value)
        return false;
    rest = (uint64_t)rint(value * scale);
    for (int place = value < 1e3 ? 2 : 14; rest || place >= 0; place--, rest %= unit, unit /= 10) {
        if (place == -1)
            *end++ = '.';
        if (rest >= unit || place <= 0 || end > buffer)
            *end++ = (char)('0' + rest / unit);
    }
    *end = '\0';
    return true;
}

const char *duet__digits(double value, char buffer[DUET__DIGITS_MAX])
{
    char *point;
    if (put_decimal(value, buffer))
        return buffer;
    for (int digits = 15; digits <= 17; digits++) { /* 17 are always enough */
        (void)snprintf(buffer, DUET__DIGITS_MAX, "%.*g", digits, value);
        if (strtod(buffer, NULL) == value)
            break;
    }
    /* the locale's decimal point may be any text */
    point = buffer + strspn(buffer, "-0123456789");
    if (*point && !strchr(".einfa", *point)) {
        *point = '.';
        memmove(point + 1, point + 1 + strcspn(point + 1, "0123456789"),
                strlen(point + 1 + strcspn(point + 1, "0123456789")) + 1);
    }
    return buffer;
}

/* Returns the number of bytes of the UTF-8 character that a text begins with; 0: invalid. */
static size_t character_length(const char *text)
{
    const unsigned char *c = (const unsigned char *)text;
    const size_t length = *c < 0x80 ? 1 : *c < 0xe0 ? 2 : *c < 0xf0 ? 3 : 4;
    for (size_t i = 1; i < length; i++)
        if ((c[i] & 0xc0) != 0x80)
            return 0;
    /* overlong, half of a surrogate pair of UTF-16, or beyond the last character */
    if ((*c >= 0x80 && *c < 0xc2) || (*c == 0xe0 && c[1] < 0xa0) || (*c == 0xed && c[1] > 0x9f) ||
        (*c == 0xf0 && c[1] < 0x90) || (*c == 0xf4 && c[1] > 0x8f) || *c > 0xf4)
        return 0;
    return length;
}

/* Returns how many bytes at the beginning of a text are ASCII that needs no escape. */
static size_t plain_length(const char *text)
{
    size_t length = 0;
    while (text[length] >= ' ' && text[length] < 0x7f && text[length] != '"' &&
           text[length] != '\\' && text[length] != '<')
        length++;
    return length;
}

/* Writes a text. A byte that is not UTF-8 becomes '?', as readers of JSON refuse it. */
static void put_text(FILE *stream, const char *text)
{
    putc('"', stream);
    for (size_t length; *text; text += length) {
        length = plain_length(text);
        if (!length)
            length = character_length(text);
        if (length == 0) {
            putc('?', stream);
            length = 1;
        } else if (length == 1 && (*text == '"' || *text == '\\')) {
            fprintf(stream, "\\%c", *text);
        } else if (length == 1 && !plain_length(text)) {
            fprintf(stream, "\\u%04x", (unsigned)*text);
        } else {
            fwrite(text, 1, length, stream);
        }
    }
    putc('"', stream);
}

/* Writes the comma, if any, and the blanks or line break before the next item. */
static void separate(struct duet__json_writer *writer, bool comma)
{
    if (comma)
        putc(',', writer->stream);
    if (writer->line > 0)
        fprintf(writer->stream, "\n%*s", (int)writer->line - 1, "");
    else if (comma && !writer->dense)
        putc(' ', writer->stream);
    writer->line = 0;
}

static void put_key(struct duet__json_writer *writer, const char *key)
{
    if (writer->indented && writer->depth && !writer->flat)
        duet__json_break(writer, writer->depth);
    separate(writer, writer->more);
    writer->more = true;
    if (key) {
        put_text(writer->stream, key);
        fputs(writer->dense ? ":" : ": ", writer->stream);
    }
}

void duet__json_begin(struct duet__json_writer *writer, const char *key, char bracket)
{
    put_key(writer, key);
    putc(bracket, writer->stream);
    writer->depth++;
    if (!writer->flat && !key && writer->depth > 1)
        writer->flat = writer->depth;
    writer->more = false;
}

void duet__json_end(struct duet__json_writer *writer, char bracket)
{
    separate(writer, false);
    putc(bracket, writer->stream);
    if (writer->flat == writer->depth)
        writer->flat = 0;
    writer->depth--;
    writer->more = true;
    if (writer->indented && !writer->depth)
        putc('\n', writer->stream);
}

void duet__json_break(struct duet__json_writer *writer, unsigned indent)
{
    writer->line = indent + 1;
}

/* Writes a cell of CSV, in quotes where necessary. */
static void put_cell(struct duet__json_writer *writer, const char *text)
{
    if (writer->more)
        putc(',', writer->stream);
    writer->more = true;
    if (!text[strcspn(text, ",\"\r\n")]) {
        fputs(text, writer->stream);
        return;
    }
    putc('"', writer->stream);
    for (; *text; text++)
        fputs(*text == '"' ? "\"\"" : (char[]){*text, '\0'}, writer->stream);
    putc('"', writer->stream);
}

/* Writes a value that is formatted already, or, if `quoted`, a text; NULL: null. */
static void put_value(struct duet__json_writer *writer, const char *key, const char *value,
                      bool quoted)
{
    if (writer->csv) {
        const char *text = writer->csv == DUET__CSV_HEADING ? key : value;
        put_cell(writer, text ? text : "");
        return;
    }
    put_key(writer, key);
    if (value && quoted)
        put_text(writer->stream, value);
    else
        fputs(value ? value : "null", writer->stream);
}

void duet__csv_end(struct duet__json_writer *writer)
{
    putc('\n', writer->stream);
    writer->more = false;
    writer->csv = DUET__CSV_LINE;
}

void duet__json_put_number(struct duet__json_writer *writer, const char *key, double value)
{
    char digits[DUET__DIGITS_MAX];
    put_value(writer, key, isfinite(value) ? duet__digits(value, digits) : NULL, false);
}

void duet__json_put_digits(struct duet__json_writer *writer, const char *key, const char *digits)
{
    put_value(writer, key, digits, false);
}

void duet__json_put_thousandths(struct duet__json_writer *writer, const char *key, int64_t value)
{
    char digits[DUET__DIGITS_MAX];
    (void)snprintf(digits, sizeof(digits), "%s%" PRId64 ".%03d", value < 0 ? "-" : "",
                   imaxabs(value) / 1000, (int)(imaxabs(value) % 1000));
    put_value(writer, key, digits, false);
}

void duet__json_put_integer(struct duet__json_writer *writer, const char *key, uint64_t value)
{
    char digits[DUET__DIGITS_MAX];
    if (!put_decimal((double)value, digits)) /* a double holds whole numbers below 10^15 */
        (void)snprintf(digits, sizeof(digits), "%" PRIu64, value);
    put_value(writer, key, digits, false);
}

void duet__json_put_boolean(struct duet__json_writer *writer, const char *key, bool value)
{
    put_value(writer, key, value ? "true" : "false", false);
}

void duet__json_put_string(struct duet__json_writer *writer, const char *key, const char *value)
{
    put_value(writer, key, value, true);
}

/* Writes the argument of a conversion, as printf takes it. */
static void print_value(struct duet__json_writer *writer, const char *key, const char *conversion,
                        va_list *args)
{
    if (strcmp(conversion, "%g") == 0)
        duet__json_put_number(writer, key, va_arg(*args, double));
    else if (strcmp(conversion, "%s") == 0)
        duet__json_put_string(writer, key, va_arg(*args, const char *));
    else if (strcmp(conversion, "%d") == 0)
        duet__json_put_boolean(writer, key, va_arg(*args, int));
    else if (strcmp(conversion, "%u") == 0)
        duet__json_put_integer(writer, key, va_arg(*args, unsigned));
    else if (strcmp(conversion, "%zu") == 0 || strcmp(conversion, "%" PRIu64) == 0)
        duet__json_put_integer(writer, key, va_arg(*args, uint64_t)); /* size_t is as wide */
    else
        duet__json_put_digits(writer, key, conversion);
}

void duet__json_print(struct duet__json_writer *writer, const char *format, ...)
{
    enum { WORD_MAX = 64 };
    const char *key = NULL;
    char word[WORD_MAX], name[WORD_MAX];
    va_list args;
    va_start(args, format);
    for (size_t length = 1; *format; format += length, length = 1) {
        if (*format == '\n') {
            length += strspn(format + 1, " ");
            duet__json_break(writer, (unsigned)length - 1);
        } else if (*format == '{' || *format == '[') {
            duet__json_begin(writer, key, *format);
            key = NULL;
        } else if (*format == '}' || *format == ']') {
            duet__json_end(writer, *format);
        } else if (*format != ' ' && *format != ',') {
            length = strcspn(format, " ,:\n{}[]");
            (void)snprintf(word, sizeof(word), "%.*s", (int)length, format);
            if (format[length] != ':') {
                print_value(writer, key, word, &args);
                key = NULL;
            } else {
                memcpy(name, word, sizeof(name));
                key = strcmp(name, "%s") == 0 ? va_arg(args, const char *) : name;
                length++;
            }
        }
    }
    va_end(args);
}
