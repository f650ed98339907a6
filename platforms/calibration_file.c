/* SPDX-License-Identifier: Apache-2.0 */
/* Calibration files: measured kernel times as JSON, read and written. */
#include <string.h>

#include "platforms/description.h"
#include "platforms/json.h"

static const double MOST_WORK = 1e24;
static const double MOST_SECONDS = 1e9;
static const uint64_t MOST_SAMPLES = UINT64_C(1) << 53;

/* Work is under "flops", "bytes" or "work" (either); a curve has the one of its first point. */
static int read_work(const struct duet__json *at, const char **unit, double *work)
{
    static const char *const units[] = {"flops", "bytes", "work"};
    const char *own = NULL;
    struct duet__json member;

    for (size_t i = 0; i < G_N_ELEMENTS(units); i++) {
        member = duet__json_member(at, units[i]);
        if (!duet__json_present(&member))
            continue;
        if (own != NULL)
            return duet__json_fail(at, DUET_EPARSE, "has both %s and %s", own, units[i]);
        own = units[i];
    }
    if (own == NULL)
        return duet__json_fail(at, DUET_EPARSE, "expected one of flops, bytes and work");
    if (*unit != NULL && strcmp(*unit, own) != 0)
        return duet__json_fail(at, DUET_EPARSE, "has %s where the points before have %s", own,
                               *unit);
    *unit = own;
    member = duet__json_member(at, own);
    return duet__json_number(&member, 1e-9, MOST_WORK, work);
}

/* Reads one point; adds what it says about its origin, if anything, to `origin`. */
static int read_point(const struct duet__json *at, const char **unit, struct duet_point *point,
                      GString *origin)
{
    static const char *const known[] = {"size",        "flops",   "bytes",  "work", "mean_s",
                                        "deviation_s", "samples", "origin", NULL};
    struct duet__json member;
    const char *text;
    int error = duet__json_keys(at, known);

    if (error == DUET_OK)
        error = read_work(at, unit, &point->work);
    if (error != DUET_OK)
        return error;
    member = duet__json_member(at, "size");
    error = duet__json_number(&member, 0, MOST_WORK, &point->size);
    if (error != DUET_OK)
        return error;
    member = duet__json_member(at, "mean_s");
    error = duet__json_number(&member, 1e-12, MOST_SECONDS, &point->mean_s);
    if (error != DUET_OK)
        return error;
    member = duet__json_member(at, "deviation_s");
    error = duet__json_number(&member, 0, MOST_SECONDS, &point->deviation_s);
    if (error != DUET_OK)
        return error;
    member = duet__json_member(at, "samples");
    error = duet__json_integer(&member, 1, MOST_SAMPLES, &point->samples);
    if (error != DUET_OK)
        return error;
    member = duet__json_member(at, "origin");
    if (!duet__json_present(&member))
        return DUET_OK;
    error = duet__json_string(&member, &text);
    if (error == DUET_OK)
        g_string_append_printf(origin, "; at %g %s: %s", point->work, *unit, text);
    return error;
}

static int read_points(const struct duet__json *at, struct duet_point **points, unsigned *count,
                       GString *origin)
{
    struct duet__json list = duet__json_member(at, "points");
    const char *unit = NULL;
    int error = duet__json_array(&list, 1, DUET__MAX_POINTS, count);

    if (error != DUET_OK)
        return error;
    *points = g_new0(struct duet_point, *count);
    for (unsigned i = 0; i < *count && error == DUET_OK; i++) {
        struct duet__json element = duet__json_element(&list, i);

        error = read_point(&element, &unit, &(*points)[i], origin);
    }
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

static int read_curve(const struct duet__json *at, struct duet_platform *platform)
{
    static const char *const known[] = {"kernel", "arch", "origin", "points", NULL};
    struct duet_message why = {""};
    struct duet_point *points = NULL;
    struct duet__json member;
    char kernel[DUET_NAME_MAX];
    char arch[DUET_NAME_MAX];
    const char *text = NULL;
    GString *origin = NULL;
    unsigned count = 0;
    int error = duet__json_keys(at, known);

    if (error != DUET_OK)
        return error;
    member = duet__json_member(at, "kernel");
    error = duet__json_name(&member, kernel, sizeof(kernel));
    if (error != DUET_OK)
        return error;
    error = read_arch(at, platform, arch);
    if (error != DUET_OK)
        return error;
    member = duet__json_member(at, "origin");
    error = duet__json_string(&member, &text);
    if (error != DUET_OK)
        return error;
    origin = g_string_new(text);
    error = read_points(at, &points, &count, origin);
    if (error == DUET_OK) {
        error = duet_calibration_add(&platform->calibration, kernel, arch, points, count, &why);
        if (error == DUET_EINVAL)
            error = duet__json_fail(at, DUET_EPARSE, "%s", why.text);
    }
    if (error == DUET_OK)
        g_ptr_array_add(platform->origins, g_strdup(origin->str));
    g_string_free(origin, TRUE);
    g_free(points);
    return error;
}

int duet__read_calibration(struct duet_platform *platform, const char *text, size_t length,
                           const char *path, struct duet_message *message)
{
    static const char *const known[] = {"schema", "curves", NULL};
    JsonParser *parser;
    struct duet__json root;
    struct duet__json at;
    unsigned number = 0;
    int error = duet__json_parse(text, length, path, message, &parser, &root);

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
    g_object_unref(parser);
    return error;
}

/* Appends `"key": value` with all the digits it takes to read the same number back. */
static void append_number(GString *text, const char *key, double value)
{
    char buffer[G_ASCII_DTOSTR_BUF_SIZE];

    g_string_append_printf(text, ", \"%s\": %s", key,
                           g_ascii_formatd(buffer, sizeof(buffer), "%.17g", value));
}

char *duet__format_calibration(const struct duet_calibration *calibration)
{
    GString *text = g_string_new("{\n  \"schema\": 1,\n  \"curves\": [");

    for (size_t i = 0; i < calibration->count; i++) {
        const struct duet_curve *curve = &calibration->curves[i];

        g_string_append_printf(text,
                               "%s\n    {\n      \"kernel\": \"%s\",\n      \"arch\": \"%s\",\n"
                               "      \"origin\": \"copied from the platform it was made from\",\n"
                               "      \"points\": [",
                               i > 0 ? "," : "", curve->kernel, curve->arch);
        for (size_t j = 0; j < curve->count; j++) {
            const struct duet_point *p = &curve->points[j];

            g_string_append_printf(text, "%s\n        {\"samples\": %" G_GUINT64_FORMAT,
                                   j > 0 ? "," : "", p->samples > 0 ? p->samples : 1);
            append_number(text, "size", p->size);
            append_number(text, "work", p->work);
            append_number(text, "mean_s", p->mean_s);
            append_number(text, "deviation_s", p->deviation_s);
            g_string_append_c(text, '}');
        }
        g_string_append(text, "\n      ]\n    }");
    }
    g_string_append(text, "\n  ]\n}\n");
    return g_string_free(text, FALSE);
}
