/* SPDX-License-Identifier: Apache-2.0 */
/* Aligned text on a terminal. */
#include "base/table.h"

#include <math.h>
#include <string.h>

#include "base/texts.h"

enum { SHORTEST = 6 }; /* characters that are left of a text that is cut */

size_t duet__text_width(const char *text)
{
    return g_utf8_validate(text, -1, NULL) ? (size_t)g_utf8_strlen(text, -1) : strlen(text);
}

/* Returns the bytes of the first `width` characters. */
static size_t bytes_of(const char *text, size_t width)
{
    if (!g_utf8_validate(text, -1, NULL))
        return width;
    return (size_t)(g_utf8_offset_to_pointer(text, (glong)width) - text);
}

/* Writes a name without characters that a terminal would interpret. */
static void put_clean(FILE *stream, const char *text, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        putc((unsigned char)text[i] < 0x20 || text[i] == 0x7f ? ' ' : text[i], stream);
}

static void put_spaces(FILE *stream, size_t count)
{
    fprintf(stream, "%*s", (int)count, "");
}

/* Writes text, padded to `width`, or cut to it with a '~' at its end. */
static void put_padded(FILE *stream, const char *text, size_t width, bool left)
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

/* ------------------------------------------------------------------------------------------- */
/* Tables                                                                                       */

void duet__table_init(struct duet__table *table, const char *sides)
{
    *table = (struct duet__table){
        .columns = g_new0(struct duet__column, strlen(sides) + 1),
        .count = strlen(sides),
        .cells = g_ptr_array_new_with_free_func(g_free),
    };
    for (size_t i = 0; i < table->count; i++)
        table->columns[i].side = sides[i];
}

void duet__table_add(struct duet__table *table, char *text)
{
    g_ptr_array_add(table->cells, text);
}

void duet__table_say(struct duet__table *table, const char *text)
{
    duet__table_add(table, g_strdup(text));
}

void duet__table_print(struct duet__table *table, const char *format, ...)
{
    g_autofree char *row = NULL;
    g_auto(GStrv) cells = NULL;
    int count = 1;
    va_list args;
    for (const char *c = format; *c; c++)
        count += *c == '\t';
    va_start(args, format);
    row = g_strdup_vprintf(format, args);
    va_end(args);
    cells = g_strsplit(row, "\t", count);
    for (int i = 0; i < count; i++) {
        const char *cell = cells[i] ? cells[i] : ""; /* an empty text has no parts */
        const char *digits = cell + strspn(cell, "+-");
        duet__table_say(table,
                        g_str_equal(digits, "nan") || g_str_equal(digits, "inf") ? "-" : cell);
    }
}

void duet__table_remark(struct duet__table *table, const char *text)
{
    duet__table_say(table, text);
    while (table->cells->len % table->count) /* a cell that is NULL belongs to the one before it */
        duet__table_add(table, NULL);
}

static char **row_of(const struct duet__table *table, size_t row)
{
    return (char **)table->cells->pdata + row * table->count;
}

const char *duet__table_cell(const struct duet__table *table, size_t row, size_t column)
{
    return row_of(table, row)[column];
}

/* True if the text of a cell reaches over those behind it. */
static bool reaches(const struct duet__table *table, char *const *row, size_t column)
{
    return column + 1 < table->count && !row[column + 1];
}

static void measure(struct duet__table *table)
{
    for (size_t i = 0; i < table->cells->len; i++) {
        char *const *row = row_of(table, i / table->count);
        struct duet__column *column = &table->columns[i % table->count];
        if (row[i % table->count] && !reaches(table, row, i % table->count))
            column->width = MAX(column->width, duet__text_width(row[i % table->count]));
    }
}

/* Returns a text whose words that are paths lose folder and suffix. */
static char *without_folders(const char *text)
{
    g_auto(GStrv) words = g_strsplit(text, " ", -1);
    for (char **word = words; *word; word++) {
        const char *end = *word + strcspn(*word, ":");
        const char *slash = g_strrstr_len(*word, end - *word, "/");
        const char *dot = slash ? g_strrstr_len(slash, end - slash, ".") : NULL;
        if (!slash || slash + 1 == end)
            continue;
        char *base = g_strdup_printf("%.*s%s", (int)((dot > slash + 1 ? dot : end) - slash - 1),
                                     slash + 1, end);
        g_free(*word);
        *word = base;
    }
    return g_strjoinv(" ", words);
}

/* Returns a name from where no other one begins like it, if its beginning is too long. */
static char *behind_shared(char *const *names, size_t count, size_t own, size_t width)
{
    size_t shared = 0;
    for (size_t i = 0; i < count; i++) {
        size_t same = 0;
        while (names[own][same] && names[own][same] == names[i][same])
            same++;
        shared = i == own ? shared : MAX(shared, same);
    }
    while (shared && ((unsigned char)names[own][shared] & 0xc0) == 0x80)
        shared--; /* not within a character */
    return duet__text_width(names[own]) <= width || shared < 2 || !names[own][shared]
               ? g_strdup(names[own])
               : g_strconcat("~", names[own] + shared, NULL);
}

void duet__names_shorten(char **names, size_t count, size_t width)
{
    char **made = g_new0(char *, count + 1);
    bool *clash = g_new0(bool, count + 1);
    for (size_t i = 0; i < count; i++)
        made[i] = width ? behind_shared(names, count, i, width) : without_folders(names[i]);
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < count; k++)
            clash[i] |= i != k && (!strcmp(made[i], made[k]) || !strcmp(made[i], names[k]));
    for (size_t i = 0; i < count; i++) {
        g_free(clash[i] ? made[i] : names[i]);
        names[i] = clash[i] ? names[i] : made[i];
    }
    g_free(made);
    g_free(clash);
}

/* Shortens the texts of a column, below the heading: paths, or those wider than `width`. */
static void shorten(struct duet__table *table, size_t column, size_t width)
{
    struct duet__texts texts = duet__texts_new();
    unsigned *numbers = g_new0(unsigned, table->cells->len);
    for (size_t i = table->count + column; i < table->cells->len; i += table->count)
        if (table->cells->pdata[i])
            numbers[i] = duet__texts_number(&texts, table->cells->pdata[i]);
    duet__names_shorten((char **)texts.list->pdata, texts.list->len, width);
    for (size_t i = 0; i < table->cells->len; i++)
        if (numbers[i]) {
            g_free(table->cells->pdata[i]);
            table->cells->pdata[i] = g_strdup(texts.list->pdata[numbers[i] - 1]);
        }
    g_free(numbers);
    duet__texts_free(&texts);
}

/* Shortens all texts that may be cut: paths, or (`cut`) what is wider than its column. */
static void shorten_all(struct duet__table *table, bool cut)
{
    for (size_t i = 0; i < table->count; i++)
        if (table->columns[i].side == 't') {
            shorten(table, i, cut ? table->columns[i].width : 0);
            table->columns[i].width = cut ? table->columns[i].width : 0;
        }
    if (!cut)
        measure(table);
}

/* Width of all columns that are shown, with `space` between them. */
static size_t whole_width(const struct duet__table *table, size_t space)
{
    size_t whole = 0;
    for (size_t i = 0; i < table->count; i++)
        if (!table->columns[i].hidden)
            whole += table->columns[i].width + (whole ? space : 0);
    return whole;
}

/* Leaves out the most dispensable column, else cuts the longest text by one character; false:
 * neither is left. */
static bool narrow(struct duet__table *table)
{
    struct duet__column *spare = NULL, *text = NULL;
    for (size_t i = 0; i < table->count; i++) {
        struct duet__column *column = &table->columns[i];
        if (column->hidden)
            continue;
        if (column->spare > (spare ? spare->spare : 0))
            spare = column;
        if (column->side == 't' && column->width > (text ? text->width : SHORTEST))
            text = column;
    }
    if (spare)
        spare->hidden = true;
    else if (text)
        text->width--;
    return spare || text;
}

static void put_row(const struct duet__table *table, char *const *row, FILE *stream, size_t indent,
                    size_t space)
{
    size_t at = 0, count = table->count;
    while (count && row[count - 1] && !*row[count - 1])
        count--; /* no blanks at the end of a line */
    for (size_t i = 0; i < count && row[i]; i++) {
        const struct duet__column *column = &table->columns[i];
        bool left = column->side != 'r', rest = reaches(table, row, i);
        size_t width = column->width;
        if (column->hidden && !rest)
            continue;
        if (rest) {
            width = duet__text_width(row[i]);
            space = 2;
        } else if (left && i + 1 == table->count) {
            width = MIN(width, duet__text_width(row[i])); /* no blanks at the end of a line */
        }
        put_spaces(stream, at ? space : indent);
        at += at ? space : indent;
        if (rest && table->page)
            width = MIN(width, table->page - at);
        put_padded(stream, row[i], width, left);
        at += width;
    }
    putc('\n', stream);
}

void duet__table_put(struct duet__table *table, FILE *stream, unsigned indent)
{
    size_t space = 2;
    measure(table);
    if (table->page && whole_width(table, space) > table->page)
        space = 1;
    if (table->page && whole_width(table, space) > table->page) {
        shorten_all(table, false);
        while (whole_width(table, space) > table->page && narrow(table)) {
        }
        shorten_all(table, true);
    }
    for (size_t row = 0; row < table->cells->len / table->count; row++)
        put_row(table, row_of(table, row), stream, indent, space);
    g_free(table->columns);
    g_ptr_array_free(table->cells, TRUE);
}

/* ------------------------------------------------------------------------------------------- */
/* Lines                                                                                        */

/* Writes a text's words from column `at` on; other lines begin at `indent` and end before `page`.
 * Longer words are broken, or all of them if `all` would fit. */
static void put_words(FILE *stream, const char *text, size_t at, size_t indent, size_t page,
                      bool all)
{
    g_auto(GStrv) words = g_strsplit(text, " ", -1);
    for (size_t i = 0; words[i]; i++) {
        const char *word = words[i];
        size_t width = duet__text_width(word);
        if (i > 0 && at > indent && at + 1 + width > page) {
            fprintf(stream, "\n%*s", (int)indent, "");
            at = indent;
        } else if (i > 0) {
            putc(' ', stream);
            at++;
        }
        while (all && at + width > page) {
            size_t bytes = bytes_of(word, page - at);
            put_clean(stream, word, bytes);
            fprintf(stream, "\n%*s", (int)indent, "");
            word += bytes;
            width -= page - at;
            at = indent;
        }
        put_clean(stream, word, strlen(word));
        at += width;
    }
    putc('\n', stream);
}

void duet__put_wrapped(FILE *stream, const char *text, size_t indent)
{
    put_words(stream, text, 0, indent, DUET__WIDE_PAGE, true);
}

void duet__put_field(FILE *stream, const char *label, int column, const char *format, ...)
{
    g_autofree char *text = NULL;
    va_list args;
    int at;
    va_start(args, format);
    text = g_strdup_vprintf(format, args);
    va_end(args);
    at = fprintf(stream, "  %s", label);
    at += fprintf(stream, "%*s", MAX(column - at, *label ? 1 : 0), "");
    put_words(stream, text, (size_t)at, (size_t)column, DUET__PAGE, false);
}

int duet__decimals(double value, int significant)
{
    return value > 0 ? CLAMP(significant - 1 - (int)floor(log10(value)), 0, 9) : 0;
}

char *duet__size_text(uint64_t bytes)
{
    static const char *const units[] = {"bytes", "KiB", "MiB", "GiB", "TiB"};
    double value = (double)bytes;
    size_t unit = 0;
    while (value >= 1024 && unit + 1 < G_N_ELEMENTS(units)) {
        value /= 1024;
        unit++;
    }
    return g_strdup_printf("%.*f %s", unit && value < 100 ? 1 : 0, value,
                           bytes == 1 ? "byte" : units[unit]);
}
