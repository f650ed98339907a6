/* SPDX-License-Identifier: Apache-2.0 */
/* Mutated texts, for the tests of readers. */
#ifndef DUET_TESTING_MUTATE_H
#define DUET_TESTING_MUTATE_H

#include <string.h>

#include <glib.h>

/* Returns a text of `least` to `most` bytes, some of which writers escape; for g_free. */
static inline char *testing_text(GRand *random, gsize least, gsize most)
{
    static const char *const pieces[] = {"a",
                                         "Z",
                                         "0",
                                         "_",
                                         " ",
                                         "\"",
                                         "\\",
                                         "/",
                                         "<",
                                         ">",
                                         "&",
                                         "%s",
                                         "'",
                                         ",",
                                         ";",
                                         ":",
                                         "=",
                                         "{",
                                         "]",
                                         "\n",
                                         "\t",
                                         "\x01",
                                         "\x7f",
                                         "\xc3\xa4",
                                         "\xe2\x82\xac",
                                         "\xf0\x9f\x98\x80"};
    const gsize length = (gsize)g_rand_int_range(random, (gint32)least, (gint32)most + 1);
    GString *text = g_string_new(NULL);
    while (text->len < length) {
        const char *piece = pieces[g_rand_int_range(random, 0, G_N_ELEMENTS(pieces))];
        g_string_append(text, text->len + strlen(piece) <= length ? piece : ".");
    }
    return g_string_free(text, FALSE);
}

/* Changes a few places: bytes, parts lost, doubled or inserted, digits. */
static inline void testing_mutate(GString *text, GRand *random)
{
    /* what parsers are known to trip over */
    static const char *const pieces[] = {"\"",         "{",        "}",
                                         "[",          "]",        ",",
                                         ":",          "-",        "null",
                                         "true",       "1e999",    "-1",
                                         "4294967296", "NaN",      "0x10",
                                         "\\ud800",    "\\u00",    "/*",
                                         "//",         "'",        "<",
                                         ">",          "&amp;",    "&x;",
                                         "<!--",       "]]>",      "<![CDATA[",
                                         "<zone>",     "</zone>",  "\xff",
                                         "\xc3",       "\xf0\x9f", "0",
                                         "1e-400",     "<prop/>",  "id=\"\"",
                                         "=",          "/>",       "9007199254740993",
                                         "\t",         "\n",       "18446744073709551616",
                                         "[[[[[[[[",   "{\"\":",   "\"\": ",
                                         "1e15"};
    int changes = g_rand_int_range(random, 1, 6);
    for (int i = 0; i < changes && text->len > 0; i++) {
        gssize at = g_rand_int_range(random, 0, (gint32)text->len);
        gssize wanted = g_rand_int_range(random, 1, 60);
        gssize length = MIN(wanted, (gssize)text->len - at);
        g_autofree char *piece = g_strndup(text->str + at, (gsize)length);
        switch (g_rand_int_range(random, 0, 5)) {
        case 0:
            text->str[at] = (char)g_rand_int_range(random, 0, 256);
            break;
        case 1:
            g_string_erase(text, at, length);
            break;
        case 2:
            g_string_insert(text, at, pieces[g_rand_int_range(random, 0, G_N_ELEMENTS(pieces))]);
            break;
        case 3:
            g_string_insert(text, g_rand_int_range(random, 0, (gint32)text->len), piece);
            break;
        default: /* another digit for a digit, so that ranges and references are reached */
            while (at < (gssize)text->len && !g_ascii_isdigit(text->str[at]))
                at++;
            if (at < (gssize)text->len)
                text->str[at] = (char)('0' + g_rand_int_range(random, 0, 10));
        }
    }
}

#endif
