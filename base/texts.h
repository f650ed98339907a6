/* SPDX-License-Identifier: Apache-2.0 */
/* Texts, each once, and their numbers: for those who put together what was recorded. */
#ifndef DUET_BASE_TEXTS_H
#define DUET_BASE_TEXTS_H

#include <glib.h>

struct duet__texts {
    GPtrArray *list;     /* char *, in the order in which they came; owned */
    GHashTable *numbers; /* the place of each there, and 1 */
};

static inline struct duet__texts duet__texts_new(void)
{
    return (struct duet__texts){g_ptr_array_new_with_free_func(g_free),
                                g_hash_table_new(g_str_hash, g_str_equal)};
}

static inline void duet__texts_free(struct duet__texts *texts)
{
    g_ptr_array_unref(texts->list);
    g_hash_table_unref(texts->numbers);
}

/* The number of a text, from 1, which is added where it is new. */
static inline unsigned duet__texts_number(struct duet__texts *texts, const char *text)
{
    unsigned found = GPOINTER_TO_UINT(g_hash_table_lookup(texts->numbers, text));
    if (!found) {
        g_ptr_array_add(texts->list, g_strdup(text));
        found = texts->list->len;
        g_hash_table_insert(texts->numbers, texts->list->pdata[found - 1], GUINT_TO_POINTER(found));
    }
    return found;
}

/* Frees it but for the texts, NULL-ended, which are the caller's. */
static inline const char **duet__texts_give(struct duet__texts *texts, size_t *count)
{
    *count = texts->list->len;
    g_hash_table_unref(texts->numbers);
    g_ptr_array_add(texts->list, NULL);
    return (const char **)(void *)g_ptr_array_free(texts->list, FALSE);
}

#endif
