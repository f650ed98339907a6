/* SPDX-License-Identifier: Apache-2.0 */
/* JSON in tests: documents that have to be valid, and values by their places, "runs.1.policy". */
#ifndef DUET_REPORT_TESTING_JSON_H
#define DUET_REPORT_TESTING_JSON_H

#include <stdlib.h>

#include <glib.h>
#include <jansson.h>

/* Returns a document, in which no key is there twice, and all numbers are real ones. */
static inline json_t *json_of(const char *text, size_t length)
{
    json_error_t problem;
    json_t *root =
        json_loadb(text, length, JSON_REJECT_DUPLICATES | JSON_DECODE_INT_AS_REAL, &problem);
    if (!root)
        g_error("%s: %s", problem.text, text);
    return root;
}

/* Returns the value at a place; NULL: there is none. */
static inline json_t *json_at(const json_t *root, const char *place)
{
    g_auto(GStrv) names = g_strsplit(place, ".", -1);
    json_t *at = (json_t *)(uintptr_t)root;
    for (char **name = names; at && *name; name++)
        at = json_is_array(at) ? json_array_get(at, strtoul(*name, NULL, 10))
                               : json_object_get(at, *name);
    return at;
}

static inline const char *text_at(const json_t *root, const char *place)
{
    return json_string_value(json_at(root, place));
}

static inline double number_at(const json_t *root, const char *place)
{
    return json_number_value(json_at(root, place));
}

static inline size_t count_at(const json_t *root, const char *place)
{
    return json_array_size(json_at(root, place));
}

#endif
