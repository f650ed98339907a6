/* SPDX-License-Identifier: Apache-2.0 */
/* CSV, cell after cell. */
#include "report/csv.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "platforms/json.h"

/* A text, quoted where it has to be. */
static void put(struct duet__csv *csv, const char *text)
{
    if (!text[strcspn(text, ",\"\r\n")]) {
        fputs(text, csv->stream);
        return;
    }
    putc('"', csv->stream);
    for (; *text; text++) {
        if (*text == '"')
            putc('"', csv->stream);
        putc(*text, csv->stream);
    }
    putc('"', csv->stream);
}

/* Begins a cell; false: it is one of the heading, and written. */
static bool begin(struct duet__csv *csv, const char *name)
{
    if (csv->more)
        putc(',', csv->stream);
    csv->more = true;
    if (csv->heading)
        put(csv, name);
    return !csv->heading;
}

void duet__csv_text(struct duet__csv *csv, const char *name, const char *text)
{
    if (begin(csv, name) && text)
        put(csv, text);
}

void duet__csv_number(struct duet__csv *csv, const char *name, double value)
{
    char digits[DUET__DIGITS_MAX];

    if (begin(csv, name) && isfinite(value))
        fputs(duet__digits(value, digits), csv->stream);
}

void duet__csv_count(struct duet__csv *csv, const char *name, uint64_t value)
{
    if (begin(csv, name))
        fprintf(csv->stream, "%" PRIu64, value);
}

void duet__csv_flag(struct duet__csv *csv, const char *name, bool value)
{
    duet__csv_text(csv, name, value ? "true" : "false");
}

void duet__csv_end(struct duet__csv *csv)
{
    putc('\n', csv->stream);
    csv->more = csv->heading = false;
}
