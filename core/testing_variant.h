/* SPDX-License-Identifier: Apache-2.0 */
/* Variants of a test that is text: "{x|y}" stands for x in its first one and for y in the second.
 */
#ifndef DUET_CORE_TESTING_VARIANT_H
#define DUET_CORE_TESTING_VARIANT_H

#include <string.h>

#include <glib.h>

/* Returns the text with choice `number` of each "{x|y}". *count, 1 at first: number of choices. */
static inline char *script_variant(const char *text, unsigned number, unsigned *count)
{
    GString *made = g_string_new(NULL);
    for (const char *open; (open = strchr(text, '{')); text = strchr(open, '}') + 1) {
        g_autofree char *inner = g_strndup(open + 1, (size_t)(strchr(open, '}') - open - 1));
        g_auto(GStrv) choices = g_strsplit(inner, "|", -1);
        g_assert_true(*count == 1 || *count == g_strv_length(choices));
        *count = g_strv_length(choices);
        g_string_append_len(made, text, open - text);
        g_string_append(made, choices[number]);
    }
    g_string_append(made, text);
    return g_string_free(made, FALSE);
}

#endif
