/* SPDX-License-Identifier: Apache-2.0 */
/* Aligned text on a terminal: columns as wide as they have to be, and lines that are broken. */
#ifndef DUET_CLI_TABLE_H
#define DUET_CLI_TABLE_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <glib.h>

enum { DUET__PAGE = 100 }; /* columns of a terminal that should be enough */

struct duet__table {
    const char *sides; /* a letter a column: 'l' left, 'r' right */
    size_t columns;
    GPtrArray *cells; /* row by row, the heading first */
};

/* Begins a table with as many columns as `sides` has letters. duet__table_put ends it. */
void duet__table_init(struct duet__table *table, const char *sides);

/* Adds a cell, after those before it; takes the text over. */
void duet__table_add(struct duet__table *table, char *text);
/* The same with a copy. */
void duet__table_say(struct duet__table *table, const char *text);

/* Prints the rows, `indent` columns from the left, and frees the table. */
void duet__table_put(struct duet__table *table, FILE *stream, int indent);

/*
 * Prints "  label   text", the text from column `column` on, broken at spaces where it would pass
 * DUET__PAGE. The label may be "".
 */
void duet__put_field(FILE *stream, const char *label, int column, const char *text);

/* "23.4 GiB"; free with g_free. */
char *duet__size_text(uint64_t bytes);

#endif
