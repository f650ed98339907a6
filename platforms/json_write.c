/* SPDX-License-Identifier: Apache-2.0 */
/* Writing JSON: commas, texts, and numbers of the fewest digits. */
#include "platforms/json.h"

#include <inttypes.h>
#include <math.h>

#include <glib.h>

const char *duet__digits(double value, char buffer[DUET__DIGITS_MAX])
{
    static const char *const formats[] = {"%.15g", "%.16g", "%.17g"};

    for (unsigned i = 0; i < G_N_ELEMENTS(formats); i++) {
        g_ascii_formatd(buffer, DUET__DIGITS_MAX, formats[i], value);
        if (g_ascii_strtod(buffer, NULL) == value)
            break; /* 17 digits are always enough */
    }
    return buffer;
}

static void put_text(FILE *stream, const char *text)
{
    putc('"', stream);
    for (const char *at = text; *at; at++) {
        unsigned char c = (unsigned char)*at;

        if (c == '"' || c == '\\')
            fprintf(stream, "\\%c", c);
        else if (c < 0x20 || c == '<' || c == 0x7f)
            fprintf(stream, "\\u%04x", c);
        else
            putc(c, stream);
    }
    putc('"', stream);
}

/* What stands between this and what was written before; without a comma before what closes. */
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

void duet__json_put_number(struct duet__json_writer *writer, const char *key, double value)
{
    char digits[DUET__DIGITS_MAX];

    put_key(writer, key);
    if (!isfinite(value) && !writer->not_finite)
        writer->not_finite = key ? key : "";
    fputs(isfinite(value) ? duet__digits(value, digits) : "null", writer->stream);
}

void duet__json_put_digits(struct duet__json_writer *writer, const char *key, const char *digits)
{
    put_key(writer, key);
    fputs(digits, writer->stream);
}

void duet__json_put_integer(struct duet__json_writer *writer, const char *key, uint64_t value)
{
    put_key(writer, key);
    fprintf(writer->stream, "%" PRIu64, value);
}

void duet__json_put_boolean(struct duet__json_writer *writer, const char *key, bool value)
{
    put_key(writer, key);
    fputs(value ? "true" : "false", writer->stream);
}

void duet__json_put_string(struct duet__json_writer *writer, const char *key, const char *value)
{
    put_key(writer, key);
    if (value)
        put_text(writer->stream, value);
    else
        fputs("null", writer->stream);
}
