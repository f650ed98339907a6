/* SPDX-License-Identifier: Apache-2.0 */
/* Tables for terminals whose columns may be left out or cut until they fit. */
#include "report/validation_table.h"

#include <string.h>

#include <glib.h>

enum { SHORTEST = 6 }; /* columns that are left of a text that is cut */

size_t duet__text_width(const char *text)
{
    return g_utf8_validate(text, -1, NULL) ? (size_t)g_utf8_strlen(text, -1) : strlen(text);
}

/* Bytes of the first `width` characters. */
static size_t bytes_of(const char *text, size_t width)
{
    if (!g_utf8_validate(text, -1, NULL))
        return width;
    return (size_t)(g_utf8_offset_to_pointer(text, (glong)width) - text);
}

/* A name may hold anything, a terminal should not see it. */
static void put_clean(FILE *stream, const char *text, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        putc((unsigned char)text[i] < 0x20 || text[i] == 0x7f ? ' ' : text[i], stream);
}

static void put_spaces(FILE *stream, size_t count)
{
    fprintf(stream, "%*s", (int)count, "");
}

void duet__put_padded(FILE *stream, const char *text, size_t width, bool left)
{
    size_t own = duet__text_width(text);

    if (own > width) {
        put_clean(stream, text, bytes_of(text, width - 1));
        putc('~', stream);
        return;
    }
    if (!left)
        put_spaces(stream, width - own);
    put_clean(stream, text, strlen(text));
    if (left)
        put_spaces(stream, width - own);
}

void duet__put_wrapped(FILE *stream, const char *text, size_t indent)
{
    size_t at = 0;
    char **words = g_strsplit(text, " ", -1);

    for (size_t i = 0; words[i]; i++) {
        const char *word = words[i];
        size_t width = duet__text_width(word);

        if (at > indent && at + 1 + width > DUET__PAGE) {
            putc('\n', stream);
            put_spaces(stream, indent);
            at = indent;
        } else if (i > 0) {
            putc(' ', stream);
            at++;
        }
        while (at + width > DUET__PAGE) {
            size_t bytes = bytes_of(word, DUET__PAGE - at);

            put_clean(stream, word, bytes);
            word += bytes;
            width -= DUET__PAGE - at;
            putc('\n', stream);
            put_spaces(stream, indent);
            at = indent;
        }
        put_clean(stream, word, strlen(word));
        at += width;
    }
    putc('\n', stream);
    g_strfreev(words);
}

/* Width of all columns that are shown, with `space` between them. */
static size_t whole_width(const struct duet__column *columns, const size_t *widths, size_t count,
                          size_t space)
{
    size_t whole = 0, shown = 0;

    for (size_t i = 0; i < count; i++) {
        if (!columns[i].shown)
            continue;
        whole += widths[i];
        shown++;
    }
    return whole + (shown ? (shown - 1) * space : 0);
}

/* Leaves out the column that can best be spared; false: none. */
static bool spare_one(struct duet__column *columns, size_t count)
{
    struct duet__column *best = NULL;

    for (size_t i = 0; i < count; i++)
        if (columns[i].shown && columns[i].spare && (!best || columns[i].spare > best->spare))
            best = &columns[i];
    if (best)
        best->shown = false;
    return best != NULL;
}

/* Cuts the longest text by one; false: none is long enough. */
static bool cut_one(const struct duet__column *columns, size_t *widths, size_t count)
{
    size_t longest = count;

    for (size_t i = 0; i < count; i++)
        if (columns[i].shown && columns[i].text && widths[i] > SHORTEST &&
            (longest == count || widths[i] > widths[longest]))
            longest = i;
    if (longest < count)
        widths[longest]--;
    return longest < count;
}

static void put_line(FILE *stream, const struct duet__column *columns, const size_t *widths,
                     size_t count, size_t space, const char *const *cells, const char *remark,
                     size_t remark_at)
{
    size_t at = 0;

    for (size_t i = 0; i < count && !(remark && i >= remark_at); i++) {
        if (!columns[i].shown)
            continue;
        if (at) {
            put_spaces(stream, space);
            at += space;
        }
        duet__put_padded(stream, cells[i], widths[i], columns[i].text);
        at += widths[i];
    }
    if (remark) {
        put_spaces(stream, 2);
        at += 2;
        duet__put_padded(stream, remark, MIN(DUET__PAGE - at, duet__text_width(remark)), true);
    }
    putc('\n', stream);
}

void duet__columns_put(FILE *stream, struct duet__column *columns, size_t count,
                       const char *const *cells, size_t rows, const char *const *remarks,
                       size_t remark_at)
{
    size_t *widths = g_new0(size_t, count + 1), space = 2;
    const char **heads = g_new0(const char *, count + 1);

    for (size_t i = 0; i < count; i++) {
        widths[i] =
            MAX(duet__text_width(columns[i].heads[0]), duet__text_width(columns[i].heads[1]));
        for (size_t row = 0; row < rows; row++)
            if (!remarks[row] || i < remark_at)
                widths[i] = MAX(widths[i], duet__text_width(cells[row * count + i]));
    }
    if (whole_width(columns, widths, count, space) > DUET__PAGE)
        space = 1;
    while (whole_width(columns, widths, count, space) > DUET__PAGE &&
           (spare_one(columns, count) || cut_one(columns, widths, count))) {
    }
    for (int line = 0; line < 2; line++) {
        for (size_t i = 0; i < count; i++)
            heads[i] = columns[i].heads[line];
        put_line(stream, columns, widths, count, space, heads, NULL, 0);
    }
    for (size_t row = 0; row < rows; row++)
        put_line(stream, columns, widths, count, space, cells + row * count, remarks[row],
                 remark_at);
    g_free(widths);
    g_free(heads);
}
