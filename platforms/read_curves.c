/* SPDX-License-Identifier: Apache-2.0 */
/* Reading measured kernel times, and where they come from. */
#include <string.h>

#include "platforms/description.h"
#include "platforms/tables.h"

/* Work is under "flops", "bytes" or "work" (either); a curve has the one of its first point. */
static int read_work(const struct duet__json *at, const char **unit, double *work)
{
    static const char *const units[] = {"flops", "bytes", "work"};
    const struct duet__field *field = &duet__work_field;
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
    return duet__json_number(&member, field->least, field->most, work);
}

static int check_quantiles(const struct duet__json *at, const double quantiles[DUET_QUANTILES])
{
    struct duet__json list = duet__json_member(at, "quantiles");

    for (unsigned i = 1; i < DUET_QUANTILES; i++) {
        if (quantiles[i] < quantiles[i - 1]) {
            struct duet__json element = duet__json_element(&list, i);

            return duet__json_fail(&element, DUET_EPARSE,
                                   "%g after %g, expected them in ascending order", quantiles[i],
                                   quantiles[i - 1]);
        }
    }
    return DUET_OK;
}

/* What older files say of single conditions is of no use any more. */
static int read_point(const struct duet__json *at, const char **unit, struct duet_point *point)
{
    int error = duet__fields_read(at, duet__point_fields, point);

    if (error == DUET_OK)
        error = read_work(at, unit, &point->work);
    return error == DUET_OK ? check_quantiles(at, point->quantiles) : error;
}

/* Notes what a curve (work 0) or point says about its origin. */
static int read_origin(const struct duet__json *at, struct duet_platform *p,
                       const struct duet_curve *curve, double work, bool needed)
{
    struct duet__json member = duet__json_member(at, "origin");
    const char *text = NULL;
    int error;

    if (!needed && !duet__json_present(&member))
        return DUET_OK;
    error = duet__json_string(&member, &text);
    if (error == DUET_OK)
        duet__origin_set(p, curve, work, text);
    return error;
}

/* The architecture of a curve is one of the machine's: a misspelt one would lose the kernel. */
static int check_arch(const struct duet__json *parent, const struct duet_platform *p,
                      const char *name)
{
    struct duet__json at = duet__json_member(parent, "arch");
    const struct duet_arch *archs = duet__is_fixed(p) ? p->fixed.archs : p->archs;
    unsigned count = duet__is_fixed(p) ? p->fixed.arch_count : p->arch_count;
    GString *list;
    int error;

    for (unsigned i = 0; i < count; i++)
        if (strcmp(archs[i].name, name) == 0)
            return DUET_OK;
    list = g_string_new(NULL);
    for (unsigned i = 0; i < count; i++)
        g_string_append_printf(list, "%s%s", i > 0 ? ", " : "", archs[i].name);
    error = duet__json_fail(&at, DUET_EPARSE, "%s has no architecture named %s (it has: %.200s)",
                            p->name, name, list->str);
    g_string_free(list, TRUE);
    return error;
}

static int read_points(const struct duet__json *at, struct duet_platform *p,
                       const struct duet_curve *names)
{
    struct duet__json list = duet__json_member(at, "points");
    struct duet_message why = {""};
    struct duet_point *points;
    const char *unit = NULL;
    unsigned count = 0;
    int error = duet__json_array(&list, 1, DUET__MAX_POINTS, &count);

    if (error != DUET_OK)
        return error;
    points = g_new0(struct duet_point, count);
    for (unsigned i = 0; i < count && error == DUET_OK; i++) {
        struct duet__json element = duet__json_element(&list, i);

        error = read_point(&element, &unit, &points[i]);
        if (error == DUET_OK)
            error = read_origin(&element, p, names, points[i].work, false);
    }
    if (error == DUET_OK) {
        error = duet_calibration_add_context(&p->calibration, names->kernel, names->arch,
                                             names->context, points, count, &why);
        if (error != DUET_OK)
            error = duet__json_fail(at, error == DUET_EINVAL ? DUET_EPARSE : error, "%s", why.text);
    }
    g_free(points);
    return error;
}

int duet__read_curves(const struct duet__json *at, struct duet_platform *p)
{
    unsigned count = 0;
    int error = duet__json_array(at, 0, DUET__MAX_CURVES, &count);

    for (unsigned i = 0; i < count && error == DUET_OK; i++) {
        struct duet__json element = duet__json_element(at, i);
        struct duet_curve names = {.kernel = ""};

        error = duet__fields_read(&element, duet__curve_fields, &names);
        if (error == DUET_OK)
            error = check_arch(&element, p, names.arch);
        if (error == DUET_OK)
            error = read_origin(&element, p, &names, 0, p->origin == NULL);
        if (error == DUET_OK)
            error = read_points(&element, p, &names);
    }
    return error;
}

int duet__read_calibration(struct duet_platform *p, const char *text, size_t length,
                           const char *path, struct duet_message *message)
{
    struct duet__json root;
    int error = duet__json_parse(text, length, path, message, &root);

    if (error != DUET_OK)
        return error;
    error = duet__read_head(&root, duet__times_fields, p);
    if (error == DUET_OK) {
        struct duet__json curves = duet__json_member(&root, "curves");

        error = duet__read_curves(&curves, p);
    }
    duet__json_close(&root);
    return error;
}
