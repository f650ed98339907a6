/* SPDX-License-Identifier: Apache-2.0 */
/* Random structs by the tables of their members, for tests of readers and writers. */
#ifndef DUET_PLATFORMS_TESTING_FIELDS_H
#define DUET_PLATFORMS_TESTING_FIELDS_H

#include <math.h>

#include "base/fields.h"
#include "report/testing_mutate.h"

/* Gives members, and those of objects, random values that their tables allow; custom ones stay. */
static inline void testing_fill(const struct duet__field *fields, void *into, GRand *random)
{
    for (; fields->key; fields++) {
        void *at = duet__field_at(fields, into);
        g_autofree char *words = testing_text(random, 1, MAX(fields->room, 2) - 1);
        const double least = MAX(fields->least, fields->most * 1e-18),
                     number = least * pow(fields->most / least, g_rand_double(random));
        if (fields->kind == DUET__NUMBER)
            *(double *)at = number;
        else if (fields->kind == DUET__INTEGER)
            *(uint64_t *)at = (uint64_t)number;
        else if (fields->kind == DUET__WORDS)
            (void)g_strlcpy(at, words, fields->room);
        else if (fields->kind == DUET__COPY)
            *(char **)at = testing_text(random, 0, 300);
        else if (fields->kind == DUET__OBJECT)
            testing_fill(fields->fields, at, random);
    }
}

static inline void testing_same(const struct duet__field *fields, const void *a, const void *b)
{
    for (; fields->key; fields++) {
        const void *left = duet__field_at(fields, a), *right = duet__field_at(fields, b);
        if (fields->kind == DUET__NUMBER || fields->kind == DUET__INTEGER)
            g_assert_cmpmem(left, 8, right, 8);
        else if (fields->kind == DUET__WORDS)
            g_assert_cmpstr(left, ==, right);
        else if (fields->kind == DUET__COPY)
            g_assert_cmpstr(*(char *const *)left, ==, *(char *const *)right);
        else if (fields->kind == DUET__OBJECT)
            testing_same(fields->fields, left, right);
    }
}

#endif
