/* SPDX-License-Identifier: Apache-2.0 */
/* Reading calibration files: measured kernel times, and where they come from. */
#include <string.h>

#include "platforms/description.h"
#include "platforms/json.h"

/* What a point says about its origin, if anything. */
static int read_point_origin(const struct duet__json *at, double work, struct duet__origin *origin)
{
    struct duet__json member = duet__json_member(at, "origin");
    const char *text = NULL;
    int error;

    if (!duet__json_present(&member))
        return DUET_OK;
    error = duet__json_string(&member, &text);
    if (error == DUET_OK)
        duet__origin_add(origin, work, text);
    return error;
}

static int read_points(const struct duet__json *at, struct duet_point **points, unsigned *count,
                       struct duet__origin *origin)
{
    struct duet__json list = duet__json_member(at, "points");
    const char *unit = NULL;
    int error = duet__json_array(&list, 1, DUET__MAX_POINTS, count);

    if (error != DUET_OK)
        return error;
    *points = g_new0(struct duet_point, *count);
    for (unsigned i = 0; i < *count && error == DUET_OK; i++) {
        struct duet__json element = duet__json_element(&list, i);
        struct duet_point *point = &(*points)[i];

        error = duet__read_point(&element, &unit, point);
        if (error == DUET_OK)
            error = read_point_origin(&element, point->work, origin);
    }
    if (error == DUET_OK)
        duet__origin_join(origin, unit);
    return error;
}

/* The architecture of a curve, one of the machine's. */
static int read_arch(const struct duet__json *parent, const struct duet_platform *platform,
                     char name[DUET_NAME_MAX])
{
    const struct duet_arch *archs = platform->fixed ? platform->xml.archs : platform->machine.archs;
    unsigned count = platform->fixed ? platform->xml.arch_count : platform->machine.arch_count;
    struct duet__json at = duet__json_member(parent, "arch");
    GString *list;
    int error = duet__json_name(&at, name, DUET_NAME_MAX);

    if (error != DUET_OK)
        return error;
    for (unsigned i = 0; i < count; i++)
        if (strcmp(archs[i].name, name) == 0)
            return DUET_OK;
    list = g_string_new(NULL);
    for (unsigned i = 0; i < count; i++)
        g_string_append_printf(list, "%s%s", i > 0 ? ", " : "", archs[i].name);
    error = duet__json_fail(&at, DUET_EPARSE, "%s has no architecture named %s (it has: %.200s)",
                            platform->name, name, list->str);
    g_string_free(list, TRUE);
    return error;
}

/* Kernel, architecture and context ("" where there is none). */
static int read_names(const struct duet__json *at, const struct duet_platform *platform,
                      struct duet_curve *curve)
{
    struct duet__json member = duet__json_member(at, "kernel");
    int error = duet__json_name(&member, curve->kernel, sizeof(curve->kernel));

    if (error == DUET_OK)
        error = read_arch(at, platform, curve->arch);
    if (error != DUET_OK)
        return error;
    member = duet__json_member(at, "context");
    return duet__json_present(&member)
               ? duet__json_name(&member, curve->context, sizeof(curve->context))
               : DUET_OK;
}

static int read_curve(const struct duet__json *at, struct duet_platform *platform)
{
    static const char *const known[] = {"kernel", "arch", "context", "origin", "points", NULL};
    struct duet_message why = {""};
    struct duet_curve names = {.kernel = "", .arch = "", .context = ""};
    struct duet_point *points = NULL;
    struct duet__json member;
    const char *text = NULL;
    struct duet__origin *origin = NULL;
    unsigned count = 0;
    int error = duet__json_keys(at, known);

    if (error == DUET_OK)
        error = read_names(at, platform, &names);
    if (error != DUET_OK)
        return error;
    member = duet__json_member(at, "origin");
    error = duet__json_string(&member, &text);
    if (error != DUET_OK)
        return error;
    origin = duet__origin_new(text);
    error = read_points(at, &points, &count, origin);
    if (error == DUET_OK) {
        error = duet_calibration_add_context(&platform->calibration, names.kernel, names.arch,
                                             names.context, points, count, &why);
        if (error != DUET_OK)
            error = duet__json_fail(at, error == DUET_EINVAL ? DUET_EPARSE : error, "%s", why.text);
    }
    if (error == DUET_OK)
        g_ptr_array_add(platform->origins, origin);
    else
        duet__origin_free(origin);
    g_free(points);
    return error;
}

int duet__read_calibration(struct duet_platform *platform, const char *text, size_t length,
                           const char *path, struct duet_message *message)
{
    static const char *const known[] = {"schema", "curves", NULL};
    struct duet__json root;
    struct duet__json at;
    unsigned number = 0;
    int error = duet__json_parse(text, length, path, message, &root);

    if (error != DUET_OK)
        return error;
    error = duet__json_keys(&root, known);
    if (error != DUET_OK)
        goto parsed;
    at = duet__json_member(&root, "schema");
    error = duet__json_unsigned(&at, 1, DUET__MAX_SCHEMA, &number);
    if (error != DUET_OK)
        goto parsed;
    at = duet__json_member(&root, "curves");
    error = duet__json_array(&at, 0, DUET__MAX_CURVES, &number);
    for (unsigned i = 0; i < number && error == DUET_OK; i++) {
        struct duet__json element = duet__json_element(&at, i);

        error = read_curve(&element, platform);
    }
parsed:
    duet__json_close(&root);
    return error;
}
