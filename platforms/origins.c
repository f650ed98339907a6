/* SPDX-License-Identifier: Apache-2.0 */
/* Where the points of curves come from: the text of the curve, and those of single points. */
#include "platforms/description.h"

static void clear_point(gpointer data)
{
    struct duet__point_origin *origin = data;

    g_free(origin->text);
}

struct duet__origin *duet__origin_new(const char *curve)
{
    struct duet__origin *origin = g_new0(struct duet__origin, 1);

    origin->curve = g_strdup(curve);
    origin->points = g_array_new(FALSE, FALSE, sizeof(struct duet__point_origin));
    g_array_set_clear_func(origin->points, clear_point);
    return origin;
}

void duet__origin_add(struct duet__origin *origin, double work, const char *text)
{
    struct duet__point_origin own = {.work = work, .text = g_strdup(text)};

    g_array_append_val(origin->points, own);
}

const char *duet__origin_own(const struct duet__origin *origin, double work)
{
    for (unsigned i = 0; i < origin->points->len; i++) {
        const struct duet__point_origin *own =
            &g_array_index(origin->points, struct duet__point_origin, i);

        if (own->work == work)
            return own->text;
    }
    return NULL;
}

void duet__origin_join(struct duet__origin *origin, const char *unit)
{
    GString *all = g_string_new(origin->curve);

    for (unsigned i = 0; i < origin->points->len; i++) {
        const struct duet__point_origin *own =
            &g_array_index(origin->points, struct duet__point_origin, i);

        g_string_append_printf(all, "; at %g %s: %s", own->work, unit, own->text);
    }
    origin->all = g_string_free(all, FALSE);
}

void duet__origin_free(void *data)
{
    struct duet__origin *origin = data;

    if (origin == NULL)
        return;
    g_array_unref(origin->points);
    g_free(origin->curve);
    g_free(origin->all);
    g_free(origin);
}

GPtrArray *duet__origins_new(void)
{
    return g_ptr_array_new_with_free_func(duet__origin_free);
}
