/* SPDX-License-Identifier: Apache-2.0 */
/* Tables for terminals whose columns may be left out or cut until they fit. */
#ifndef DUET_VALIDATION_TABLE_H
#define DUET_VALIDATION_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

enum { DUET__PAGE = 110 }; /* columns of a terminal that should be enough */

/* One column. */
struct duet__column {
    const char *heads[2]; /* two lines */
    bool text;            /* to the left, and may be cut; else to the right and whole */
    bool shown;
    unsigned spare; /* left out where the page is too narrow, the highest first; 0: never */
};

/*
 * Writes `rows` rows of `count` cells each, row by row, at most DUET__PAGE columns wide: with one
 * space between columns rather than two, then without those that can be spared, then with long
 * texts cut ("abcdefg~"). A row of `remarks` that is not NULL stands in place of its cells from
 * column `remark_at` on. Clears `shown` of columns that were left out.
 */
void duet__columns_put(FILE *stream, struct duet__column *columns, size_t count,
                       const char *const *cells, size_t rows, const char *const *remarks,
                       size_t remark_at);

/* Columns that a text takes on a terminal. */
size_t duet__text_width(const char *text);

/* Writes text, padded to `width`, or cut to it with a '~' at its end. */
void duet__put_padded(FILE *stream, const char *text, size_t width, bool left);

/*
 * Writes text and a newline, broken between words so that no line is longer than DUET__PAGE; lines
 * but the first begin with `indent` spaces. A word longer than a line is broken, too.
 */
void duet__put_wrapped(FILE *stream, const char *text, size_t indent);

#endif
