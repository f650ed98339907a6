/* SPDX-License-Identifier: Apache-2.0 */
/* Where the points of curves come from: a text for each curve, and for points that say other. */
#include "platforms/internal.h"

#include <string.h>

/* By names and work, so that it does not matter which curves there are. Free with g_free. */
static char *key_of(const struct duet_curve *curve, double work)
{
    return g_strdup_printf("%s %s %s %.17g", curve->kernel, curve->arch, curve->context, work);
}

void duet__origin_set(struct duet_platform *p, const struct duet_curve *curve, double work,
                      const char *text)
{
    if (p->origins == NULL)
        p->origins = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    g_hash_table_insert(p->origins, key_of(curve, work), g_strdup(text));
}

static const char *find(const struct duet_platform *p, const struct duet_curve *curve, double work)
{
    g_autofree char *key = key_of(curve, work);

    return p->origins != NULL ? g_hash_table_lookup(p->origins, key) : NULL;
}

const char *duet__curve_origin(const struct duet_platform *p, const struct duet_curve *curve)
{
    const char *text = find(p, curve, 0);

    return text != NULL ? text : p->origin != NULL ? p->origin : "";
}

const char *duet__point_origin(const struct duet_platform *p, const struct duet_curve *curve,
                               double work)
{
    const char *text = find(p, curve, work);

    return text != NULL ? text : duet__curve_origin(p, curve);
}

char *duet_platform_origin(const struct duet_platform *p, const char *kernel, const char *arch)
{
    const struct duet_curve *curve = duet_calibration_find(&p->calibration, kernel, arch);
    GString *text;

    if (curve == NULL)
        return g_strdup("");
    text = g_string_new(duet__curve_origin(p, curve));
    for (size_t i = 0; i < curve->count; i++) {
        double work = curve->points[i].work;
        const char *own = duet__point_origin(p, curve, work);

        if (strcmp(own, duet__curve_origin(p, curve)) != 0)
            g_string_append_printf(text, "; at work %g: %s", work, own);
    }
    return g_string_free(text, FALSE);
}
