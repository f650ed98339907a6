/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading large JSON from its beginning to its end, without a tree of it in memory: traces have
 * millions of values. Strict, as RFC 8259 says, and without recursion.
 *
 * What is wrong is kept, so that readers are straight: after an error every function does nothing
 * and says false, and the last one asks for the error. Messages name the file and the line.
 */
#ifndef DUET_JSON_READER_H
#define DUET_JSON_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <glib.h>

#include <duet/error.h>

/* Bytes of a file that is read: more is refused. */
#define DUET__READER_MOST (INT64_C(512) << 20)

struct duet__reader {
    const char *path; /* for messages */
    const char *text, *at, *end;
    struct duet_message *message; /* may be NULL */
    int error;
    unsigned depth;   /* objects and arrays that are open */
    uint64_t objects; /* a bit for each: it is an object */
    bool fresh;       /* nothing has been read in the innermost one */
    GString *key, *word;
};

/*
 * Reads a whole file, or what a pipe gives; *text ends with a zero that *length does not count.
 * Free with g_free. DUET_EIO, DUET_ENOMEM; *text is then NULL.
 */
DUET_MUST_CHECK int duet__reader_load(const char *path, char **text, size_t *length,
                                      struct duet_message *message);

/* Begins to read a text, which has to stay, with a zero behind it. */
void duet__reader_begin(struct duet__reader *json, const char *text, size_t length,
                        const char *path, struct duet_message *message);

/* Ends: nothing may follow. 0 or the first error. To be called once, even after an error. */
DUET_MUST_CHECK int duet__reader_end(struct duet__reader *json);

/* Notes the error, DUET_EPARSE, with the line that is being read. Returns false. */
bool duet__reader_wrong(struct duet__reader *json, const char *format, ...) DUET_PRINTF(2, 3);

/* An object: duet__reader_key while it is true, and a value after each. */
bool duet__reader_object(struct duet__reader *json);
/* The next name, valid until the next one is read; false at the object's end. */
bool duet__reader_key(struct duet__reader *json, const char **key);
/* An array: duet__reader_next while it is true, and a value after each. */
bool duet__reader_array(struct duet__reader *json);
bool duet__reader_next(struct duet__reader *json);

/* Values. A text is valid until the next one is read, and has no zero inside. */
bool duet__reader_text(struct duet__reader *json, const char **value);
bool duet__reader_number(struct duet__reader *json, double *value);
/* A whole number below 2^53. */
bool duet__reader_count(struct duet__reader *json, uint64_t most, uint64_t *value);
bool duet__reader_flag(struct duet__reader *json, bool *value);
/* Whether null is there, which is then read. */
bool duet__reader_null(struct duet__reader *json);
/* Any value, checked, and left. */
bool duet__reader_skip(struct duet__reader *json);

#endif
