/* SPDX-License-Identifier: Apache-2.0 */
/* Aligned text on a terminal. */
#include "cli/table.h"

#include <stdbool.h>
#include <string.h>

void duet__table_init(struct duet__table *table, const char *sides)
{
    *table = (struct duet__table){
        .sides = sides,
        .columns = strlen(sides),
        .cells = g_ptr_array_new_with_free_func(g_free),
    };
}

void duet__table_add(struct duet__table *table, char *text)
{
    g_ptr_array_add(table->cells, text);
}

void duet__table_say(struct duet__table *table, const char *text)
{
    duet__table_add(table, g_strdup(text));
}

static int characters(const char *text)
{
    glong count = g_utf8_validate(text, -1, NULL) ? g_utf8_strlen(text, -1) : (glong)strlen(text);

    return (int)count;
}

static void put_cell(FILE *stream, const char *text, char side, int width, bool last)
{
    int space = width - characters(text);

    if (side == 'r')
        fprintf(stream, "%*s%s", space, "", text);
    else
        fprintf(stream, "%s%*s", text, last ? 0 : space, "");
}

void duet__table_put(struct duet__table *table, FILE *stream, int indent)
{
    int *widths = g_new0(int, table->columns);

    for (size_t i = 0; i < table->cells->len; i++) {
        int width = characters(table->cells->pdata[i]);

        widths[i % table->columns] = MAX(widths[i % table->columns], width);
    }
    for (size_t i = 0; i < table->cells->len; i++) {
        size_t column = i % table->columns;
        bool last = column + 1 == table->columns;

        fprintf(stream, "%*s", column ? 2 : indent, "");
        put_cell(stream, table->cells->pdata[i], table->sides[column], widths[column], last);
        if (last)
            putc('\n', stream);
    }
    g_free(widths);
    g_ptr_array_free(table->cells, TRUE);
}

void duet__put_field(FILE *stream, const char *label, int column, const char *text)
{
    g_auto(GStrv) words = g_strsplit(text, " ", -1);
    int at = fprintf(stream, "  %s", label);

    for (char **word = words; *word; word++) {
        int width = characters(*word);

        if (word != words && at + 1 + width > DUET__PAGE && at > column) {
            putc('\n', stream);
            at = 0;
        } else if (word != words) {
            putc(' ', stream);
            at++;
        }
        if (at < column)
            at += fprintf(stream, "%*s", column - at, "");
        fputs(*word, stream);
        at += width;
    }
    putc('\n', stream);
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
