/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Members of a struct as keys of an object: one table serves reader and writer. To add a field to a
 * machine, add a member to its struct and a line to its table (keys.c), then use it.
 */
#ifndef DUET_BASE_FIELDS_H
#define DUET_BASE_FIELDS_H

#include "base/json.h"

enum duet__kind {
    DUET__NUMBER,   /* double */
    DUET__MICROS,   /* double, written with three digits behind the point */
    DUET__INTEGER,  /* uint64_t */
    DUET__DIGITS,   /* uint64_t of all 64 bits, which numbers of JSON do not have: a text */
    DUET__UNSIGNED, /* unsigned */
    DUET__BOOLEAN,  /* bool */
    DUET__NAME,     /* char[room], of duet__json_name */
    DUET__WORDS,    /* char[room], any text of 1 to room - 1 bytes */
    DUET__TEXT,   /* const char *, of the document: 1 to room - 1 bytes, or any text with room 0 */
    DUET__COPY,   /* char *, of g_malloc */
    DUET__CHOICE, /* unsigned: which of the words of `choices` */
    DUET__INDEX,  /* unsigned: which element of `list`, by its name; the root has the list */
    DUET__OBJECT, /* a struct, by a table of its own */
    DUET__LIST,   /* an array of structs, see struct duet__list */
    DUET__VALUES, /* an array with a member of each element of a list: the one of `fields`, which
                     has no key; that of the first member makes the elements; null is read as an
                     empty one */
    DUET__ORIGIN, /* a text for readers; required unless the root has one for all at `offset` */
    DUET__CUSTOM, /* a known key; read and written by `read` and `write` where these are set */
};

struct duet__field {
    const char *key; /* NULL ends a table; if optional, the object may have other keys */
    enum duet__kind kind;
    enum {
        DUET__NEEDED,
        DUET__OPTIONAL, /* left out of the file where the value is `unsaid`, or empty */
    } when;
    size_t offset;
    double least, most; /* range of a number */
    bool or_zero;       /* 0 is also allowed */
    double unsaid; /* value of an optional number or truth value that is not in the file; NaN of a
                      needed number: it is read from null */
    unsigned room;
    const char *const *choices;       /* words of a DUET__CHOICE, NULL-ended */
    const struct duet__field *fields; /* table of a DUET__OBJECT; member of DUET__VALUES */
    bool partial;                     /* required members of the object may be missing */
    const struct duet__list *list;
    int (*read)(const struct duet__json *at, void *into, void *root);
    void (*write)(struct duet__json_writer *writer, const void *from, const void *root);
};

/* An array of structs, each of which begins with its name if the `list` of an index points here. */
struct duet__list {
    const char *what;    /* name of one element, for messages */
    size_t count, array; /* offsets of an unsigned and of a pointer (of g_malloc) */
    size_t size;         /* size of an element in bytes */
    unsigned least, most;
    const struct duet__field *fields;
    /* Called after an element has been read; may be NULL. */
    int (*check)(const struct duet__json *at, void *root, unsigned index);
    bool inside; /* the array is a member itself, of `most` elements; there is no count */
    bool grows;  /* an index with a new name adds an element */
    bool lines;  /* elements are written on a line each */
};

/* Ends a table of an object that may have keys which nobody reads. */
#define DUET__OTHER_KEYS                                                                           \
    {                                                                                              \
        .when = DUET__OPTIONAL                                                                     \
    }

/* Reads an object with the keys of `fields` and no others. DUET_EPARSE with a message. Where the
 * object is a part of a document, `root` is the struct of the whole. */
DUET_MUST_CHECK int duet__fields_read(const struct duet__json *at, const struct duet__field *fields,
                                      void *into);
DUET_MUST_CHECK int duet__part_read(const struct duet__json *at, const struct duet__field *fields,
                                    void *into, void *root);

/* Reads the one member that has this key, for readers of long documents. */
DUET_MUST_CHECK int duet__field_read(const struct duet__json *at, const struct duet__field *fields,
                                     const char *key, void *into);

/* Writes the members of an object that has been begun. */
void duet__fields_write(struct duet__json_writer *writer, const struct duet__field *fields,
                        const void *from, const void *root);

/* Writes an array with a value of this kind of each of `count` structs, or values, of `size` bytes;
 * that of the first is at `first`. */
void duet__values_write(struct duet__json_writer *writer, const char *key, enum duet__kind kind,
                        const void *first, size_t count, size_t size);
#define DUET__ARRAY_WRITE(writer, key, kind, values, count)                                        \
    duet__values_write(writer, key, kind, values, count, sizeof *(values))

/*
 * xml_document.c: turns the text at `at`, a member of an object, into the number or truth value
 * that `field` has, with SimGrid's units (1MBps). DUET_EPARSE if it is none. Does nothing in
 * documents that were not made from XML.
 */
DUET_MUST_CHECK int duet__xml_value(struct duet__json *at, const struct duet__field *field);

/* xml_document.c: turns a text that is an element of an array into an object: each word becomes the
 * member of the next key of `fields`. Does nothing in documents that were not made from XML. */
DUET_MUST_CHECK int duet__xml_record(struct duet__json *at, const struct duet__field *fields);

/* Returns the address of a table's member in a struct. */
static inline void *duet__field_at(const struct duet__field *field, const void *from)
{
    return (char *)(uintptr_t)from + field->offset;
}

#endif
