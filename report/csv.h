/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writing CSV (RFC 4180). The same calls write the heading, which has the names, and each line,
 * which has the values: a column is stated in one place.
 */
#ifndef DUET_REPORT_CSV_H
#define DUET_REPORT_CSV_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct duet__csv {
    FILE *stream;
    bool heading; /* names are written, and values not looked at */
    bool more;    /* a cell stands before the next one */
};

void duet__csv_text(struct duet__csv *csv, const char *name, const char *text); /* NULL: "" */
void duet__csv_number(struct duet__csv *csv, const char *name,
                      double value); /* empty: not finite */
void duet__csv_count(struct duet__csv *csv, const char *name, uint64_t value);
void duet__csv_flag(struct duet__csv *csv, const char *name, bool value);

/* Ends the line. What follows is no heading. */
void duet__csv_end(struct duet__csv *csv);

#endif
