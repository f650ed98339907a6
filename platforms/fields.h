/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Members of a struct as keys of a JSON object: one table serves reader and writer. To add a field
 * to a machine, add a member to its struct and a line to its table (tables.c), then use it.
 */
#ifndef DUET_PLATFORMS_FIELDS_H
#define DUET_PLATFORMS_FIELDS_H

#include "platforms/json.h"

enum duet__kind {
    DUET__NUMBER,   /* double */
    DUET__INTEGER,  /* uint64_t */
    DUET__UNSIGNED, /* unsigned */
    DUET__BOOLEAN,  /* bool */
    DUET__NAME,     /* char[room] */
    DUET__TEXT,    /* const char *, of the document: 1 to room - 1 bytes, or any text with room 0 */
    DUET__NUMBERS, /* double[room], of which the file has those up to the last that is not 0 */
    DUET__ALL,     /* double[room], of which the file has all */
    DUET__OBJECT,  /* a struct, by a table of its own */
    DUET__ELSEWHERE, /* a known key, read and written by other code */
};

struct duet__field {
    const char *key; /* NULL ends a table; an optional NULL one of which other keys may be there */
    enum duet__kind kind;
    enum {
        DUET__NEEDED,
        DUET__OPTIONAL, /* not in the file where it has the value `unsaid`, or is empty */
    } when;
    size_t offset;
    double least, most; /* of numbers */
    bool or_zero;       /* 0 is allowed, too */
    double unsaid;      /* of an optional number that is not in the file */
    unsigned room;
    const struct duet__field *fields; /* of an object */
};

/* Ends a table of an object that may have keys which nobody reads. */
#define DUET__OTHERS                                                                               \
    {                                                                                              \
        .when = DUET__OPTIONAL                                                                     \
    }

/* The text `known` of duet__json_keys and these values: DUET_EPARSE where one is wrong. */
DUET_MUST_CHECK int duet__fields_read(const struct duet__json *at, const struct duet__field *fields,
                                      void *into);

/* Writes the members of an object that has been begun. */
void duet__fields_write(struct duet__json_writer *writer, const struct duet__field *fields,
                        const void *from);

/* Where the member of a table is in its struct. */
static inline void *duet__field_at(const struct duet__field *field, const void *from)
{
    return (char *)(uintptr_t)from + field->offset;
}

#endif
