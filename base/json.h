/* SPDX-License-Identifier: Apache-2.0 */
/*
 * JSON, in and out: the one place of the product that knows how it is read (by jansson) and
 * written.
 *
 * Reading is strict: UTF-8, no comments, no key twice, numbers that are finite and whole ones
 * exact, one value and nothing behind it. What is wrong with the text is said with file and line
 * ("idgraf.json:14: ..."), what is wrong with a value with file and place ("idgraf.json:
 * switches[1].gpus[0]: ...").
 *
 * A `struct duet__json` is a place in a document: small, on the stack, valid while its parent is.
 */
#ifndef DUET_BASE_JSON_H
#define DUET_BASE_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <duet/error.h>

struct json_t; /* jansson's */

struct duet__json {
    const struct duet__json *up; /* the place around it; NULL at the root */
    const char *key;             /* name in `up`, NULL for an element of an array */
    unsigned index;              /* position in `up`, for an element */
    struct json_t *node;         /* NULL: there is nothing at this place */
    const char *path;            /* path of the file, for messages */
    /* Lines of objects, in a document made from XML, where all values are texts; else NULL. */
    struct _GHashTable *lines;
    struct duet_message *message;
};

/* Most MiB to which a compressed file is decompressed, as a small one may stand for any size. */
#define DUET__GZIP_MOST_MIB 2048

/*
 * files.c: reads a regular file of at most `most_mib` MiB, or a pipe that is /dev/stdin or
 * /dev/fd/N; free with g_free. A file that gzip has compressed is decompressed, up to the lower of
 * that and DUET__GZIP_MOST_MIB. DUET_EIO, DUET_EPARSE (damaged) with a message.
 */
DUET_MUST_CHECK int duet__read_all(const char *path, size_t most_mib, char **text, size_t *length,
                                   struct duet_message *message);

/*
 * Parses `text`, one object or array. `path` is for messages and stays, as `message` does, while
 * the document is used. On success *root is its place, to be closed; on error (DUET_EPARSE with the
 * line) there is nothing to close.
 */
DUET_MUST_CHECK int duet__json_parse(const char *text, size_t length, const char *path,
                                     struct duet_message *message, struct duet__json *root);

/* Frees a document, whose places are then invalid. Safe on a zeroed or closed one. */
void duet__json_close(struct duet__json *root);

/* Writes "file: place: ..." into the message and returns `error`. */
int duet__json_fail(const struct duet__json *at, int error, const char *format, ...)
    DUET_PRINTF(3, 4);

/* Replaces control characters, so that a message can quote the text. Returns `text`. */
char *duet__json_clean(char *text);

/* Returns a place inside an object or array that duet__json_keys or duet__json_array accepted. */
struct duet__json duet__json_member(const struct duet__json *at, const char *key);
struct duet__json duet__json_element(const struct duet__json *at, unsigned index);

/* Type of the value, for readers that accept several; all are false if there is no value. */
bool duet__json_present(const struct duet__json *at);
bool duet__json_is_null(const struct duet__json *at);
bool duet__json_is_array(const struct duet__json *at);
bool duet__json_is_string(const struct duet__json *at);

/* Readers of values fail with DUET_EPARSE: no value, another type, or out of range. */

/* Accepts an object whose keys are all in `known` (NULL-ended; NULL: any keys). */
DUET_MUST_CHECK int duet__json_keys(const struct duet__json *at, const char *const *known);
/* Returns the key after `key` of the object at `at`; the first for NULL, NULL after the last. */
const char *duet__json_next(const struct duet__json *at, const char *key);
DUET_MUST_CHECK int duet__json_array(const struct duet__json *at, unsigned least, unsigned most,
                                     unsigned *count);
DUET_MUST_CHECK int duet__json_number(const struct duet__json *at, double least, double most,
                                      double *value);
/* A whole number, also when written as 1e9; below 2^63. */
DUET_MUST_CHECK int duet__json_integer(const struct duet__json *at, uint64_t least, uint64_t most,
                                       uint64_t *value);
DUET_MUST_CHECK int duet__json_unsigned(const struct duet__json *at, unsigned least, unsigned most,
                                        unsigned *value);
DUET_MUST_CHECK int duet__json_boolean(const struct duet__json *at, bool *value);
/* Any text; the pointer belongs to the document. */
DUET_MUST_CHECK int duet__json_string(const struct duet__json *at, const char **value);
/* A name: letters, digits, _-.:+ and at most size - 1 bytes, copied into `name`. */
DUET_MUST_CHECK int duet__json_name(const struct duet__json *at, char *name, size_t size);

/* Reads a value, which is freed afterwards. An error ends the reading. */
typedef int duet__json_each_fn(const struct duet__json *at, const char *key, void *data);

/* Calls `each` on every element of an array, with the key of the array. */
DUET_MUST_CHECK int duet__json_elements(const struct duet__json *at, duet__json_each_fn *each,
                                        void *data);

/*
 * Reads a long document (a trace has millions of values) with only one value at a time in memory:
 * one object, length bytes and a final zero. `each` is called with each member and its key; of an
 * array, with each element. Members whose place is in `inside` (NULL-ended, "workflow" before
 * "workflow.execution"; NULL: none) are objects whose members are read in the same way, with their
 * place as a key. Messages about a value begin with the line of its first character
 * ("trace.json:17: args.node: ..."). DUET_EPARSE, or what `each` returned.
 */
DUET_MUST_CHECK int duet__json_each(const char *text, size_t length, const char *path,
                                    const char *const *inside, duet__json_each_fn *each, void *data,
                                    struct duet_message *message);

/*
 * Writing, into a stream and without a tree. The writer knows where a comma belongs; the caller
 * says where lines end. `key` is NULL in arrays and at the root. Errors stay with the stream
 * (ferror). Numbers are written with the fewest digits that read back as the same number, with a
 * '.' in every locale; what is not finite is null. Zero-initialise but for `stream` and
 * `indented`.
 */
struct duet__json_writer {
    FILE *stream;
    /* the writer ends lines itself: each member of an object has one, indented by its depth, and so
     * has each element of an array, with all in it; a newline stands at the end */
    bool indented;
    bool dense; /* no blanks behind commas and keys */
    enum {
        DUET__CSV_NONE,
        DUET__CSV_HEADING, /* writes a line of CSV with the keys, whatever the values */
        DUET__CSV_LINE,    /* writes a line of CSV with the values */
    } csv;
    unsigned depth; /* number of open objects and arrays */
    unsigned flat;  /* depth of the object or array that is written on one line; 0: none */
    bool more;      /* something stands before the next item: it needs a comma */
    unsigned line;  /* 1 + indentation of the next item on a new line; 0: it stays on this line */
};

/* Begins and ends an object ('{' and '}') or array ('[' and ']'). */
void duet__json_begin(struct duet__json_writer *writer, const char *key, char bracket);
void duet__json_end(struct duet__json_writer *writer, char bracket);
/* Begins a new line before the next item or closing bracket, indented by this many blanks. */
void duet__json_break(struct duet__json_writer *writer, unsigned indent);

void duet__json_put_number(struct duet__json_writer *writer, const char *key, double value);
/* Writes a number that is formatted already. */
void duet__json_put_digits(struct duet__json_writer *writer, const char *key, const char *digits);
/* Writes thousandths as a number with three digits behind the point. */
void duet__json_put_thousandths(struct duet__json_writer *writer, const char *key, int64_t value);
void duet__json_put_integer(struct duet__json_writer *writer, const char *key, uint64_t value);
void duet__json_put_boolean(struct duet__json_writer *writer, const char *key, bool value);
/* Writes null for NULL. '<' is escaped, so that the text may stand inside HTML. */
void duet__json_put_string(struct duet__json_writer *writer, const char *key, const char *value);
/* Ends a line of CSV (RFC 4180). All calls but those for objects and arrays write its cells, so
 * that a column is stated once. null is an empty cell. Later lines are no headings. */
void duet__csv_end(struct duet__json_writer *writer);

/*
 * Writes several members at once, by a text that looks like the result without the quotes around
 * keys:
 *
 *     duet__json_print(json, "median: %g, runs: %zu, cause: {name: %s, known: %d}", ...);
 *
 * As in the calls above, %g is a number, %u, %zu and %" PRIu64 " are whole ones, %s is a text or
 * null, and %d is a truth value, written as true or false. Any other word is written as it is
 * ("schema: 1, rounds: null"). A key may be an argument, too ("%s: %g"). Brackets begin and end
 * objects and arrays, also ones that other calls end or have begun. A new line in the text is
 * duet__json_break with the blanks that follow it; other blanks and commas mean nothing.
 */
void duet__json_print(struct duet__json_writer *writer, const char *format, ...) DUET_PRINTF(2, 3);

enum { DUET__DIGITS_MAX = 32 };

/* Returns true if `name` has 1 to size - 1 bytes, all of them letters, digits or one of _-.:+ */
bool duet__good_name(const char *name, size_t size);

/*
 * Reads a whole number of decimal digits into *out; false where the text is none, or the number is
 * not from `least` to `most`. g_ascii_string_to_unsigned is not used, as it fails in one of several
 * threads that call it first: the set-up of GLib's locale changes errno.
 */
bool duet__scan_whole(const char *text, uint64_t least, uint64_t most, uint64_t *out);

/* Formats `value` in the fewest digits that read back as it, always with a '.'. Returns
 * `buffer`. */
const char *duet__digits(double value, char buffer[DUET__DIGITS_MAX]);

#endif
