/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading JSON with errors that name the file and the key ("idgraf.json: switches[1].gpus[0]:
 * ..."). A `struct duet__json` is a place in a document: small, on the stack, valid while its
 * parent is.
 */
#ifndef DUET_PLATFORMS_JSON_H
#define DUET_PLATFORMS_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <json-glib/json-glib.h>

#include <duet/error.h>

struct duet__json {
    const struct duet__json *up; /* NULL at the root */
    const char *key;             /* name in `up`, NULL for an element of an array */
    unsigned index;              /* position in `up`, for an element */
    JsonNode *node;              /* NULL: there is nothing at this place */
    const char *path;            /* of the file */
    struct duet_message *message;
};

/*
 * Parses `text` (length bytes and a final zero). Strict where json-glib is not: no comments, no
 * unpaired surrogates, 64 levels at most. On success *parser owns the tree (g_object_unref) and
 * *root is its place. Errors: DUET_EPARSE with the line.
 */
DUET_MUST_CHECK int duet__json_parse(const char *text, size_t length, const char *path,
                                     struct duet_message *message, JsonParser **parser,
                                     struct duet__json *root);

/* Writes "file: place: ..." into the message and returns `error`. */
int duet__json_fail(const struct duet__json *at, int error, const char *format, ...)
    DUET_PRINTF(3, 4);

/* A place inside an object or array that duet__json_keys or duet__json_array accepted. */
struct duet__json duet__json_member(const struct duet__json *at, const char *key);
struct duet__json duet__json_element(const struct duet__json *at, unsigned index);
bool duet__json_present(const struct duet__json *at);

/* Each of these fails with DUET_EPARSE where the value is missing, has another type or range. */

/* An object with no other keys than those of `known` (NULL-ended). */
DUET_MUST_CHECK int duet__json_keys(const struct duet__json *at, const char *const *known);
DUET_MUST_CHECK int duet__json_array(const struct duet__json *at, unsigned least, unsigned most,
                                     unsigned *count);
DUET_MUST_CHECK int duet__json_number(const struct duet__json *at, double least, double most,
                                      double *value);
DUET_MUST_CHECK int duet__json_integer(const struct duet__json *at, uint64_t least, uint64_t most,
                                       uint64_t *value);
DUET_MUST_CHECK int duet__json_unsigned(const struct duet__json *at, unsigned least, unsigned most,
                                        unsigned *value);
DUET_MUST_CHECK int duet__json_boolean(const struct duet__json *at, bool *value);
/* Any text; the pointer belongs to the document. */
DUET_MUST_CHECK int duet__json_string(const struct duet__json *at, const char **value);
/* A name: letters, digits, _-.:+ and at most size - 1 bytes, copied into `name`. */
DUET_MUST_CHECK int duet__json_name(const struct duet__json *at, char *name, size_t size);

#endif
