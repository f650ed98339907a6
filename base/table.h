/* SPDX-License-Identifier: Apache-2.0 */
/* Aligned text on a terminal: columns as wide as they have to be, and lines that are broken. */
#ifndef DUET_BASE_TABLE_H
#define DUET_BASE_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <glib.h>

enum {
    DUET__PAGE = 100,      /* columns of a terminal that should be enough */
    DUET__WIDE_PAGE = 110, /* columns of texts that need more */
};

/* A column of a table. */
struct duet__column {
    char side;      /* 'l': left, 'r': right, 't': left, and may be cut */
    bool hidden;    /* left out */
    unsigned spare; /* left out if the page is too narrow, the highest first; 0: never */
    size_t width;   /* found by duet__table_put */
};

struct duet__table {
    struct duet__column *columns;
    size_t count;
    GPtrArray *cells; /* row by row, the heading's first */
    unsigned page;    /* columns that all of it may take; 0: as many as it needs */
};

/* Begins a table with as many columns as `sides` has letters. duet__table_put ends it. */
void duet__table_init(struct duet__table *table, const char *sides);

/* Adds a cell, after those before it; takes the text over. */
void duet__table_add(struct duet__table *table, char *text);
/* Adds a cell with a copy of the text. */
void duet__table_say(struct duet__table *table, const char *text);
/* Adds cells with texts made as by printf: a tab of the format begins the next cell, so that texts
 * that may have tabs are for duet__table_say. A cell that is a number that is not finite is "-". */
void duet__table_print(struct duet__table *table, const char *format, ...) G_GNUC_PRINTF(2, 3);
/* Fills the rest of the row with a remark, which reaches over its cells. */
void duet__table_remark(struct duet__table *table, const char *text);

/* Returns the text of a cell, NULL in a remark behind its first. */
const char *duet__table_cell(const struct duet__table *table, size_t row, size_t column);

/*
 * Shortens each of several different names, for g_free, so that they stay different: with `width` 0
 * words that are paths lose folder and suffix, "./own/best.so:x=1" becomes "best:x=1"; else names
 * wider than that lose what one of the others begins with, too, "choose_best" beside
 * "choose_second" becomes "~best". A name that would be another one's stays as it is.
 */
void duet__names_shorten(char **names, size_t count, size_t width);

/*
 * Prints the rows, `indent` columns from the left, and frees the table. Where the page is too
 * narrow, one space stands between columns rather than two, then paths lose their folders, then
 * columns that can be spared are left out, then long texts cut ("abcdefg~") to what differs.
 */
void duet__table_put(struct duet__table *table, FILE *stream, unsigned indent);

/* Returns the columns that a text takes on a terminal. */
size_t duet__text_width(const char *text);

/*
 * Writes text and a newline, broken between words so that no line is longer than DUET__WIDE_PAGE;
 * lines but the first begin with `indent` spaces. A word longer than a line is broken, too.
 */
void duet__put_wrapped(FILE *stream, const char *text, size_t indent);

/*
 * Prints "  label   text", the text, made as by printf, from column `column` on, broken at spaces
 * where it would pass DUET__PAGE. The label may be "".
 */
void duet__put_field(FILE *stream, const char *label, int column, const char *format, ...)
    G_GNUC_PRINTF(4, 5);

/* Digits after the point, at most 9, that make `significant` ones of a value above 0; else 0. */
int duet__decimals(double value, int significant);

/* "23.4 GiB"; free with g_free. */
char *duet__size_text(uint64_t bytes);

#endif
