/* SPDX-License-Identifier: Apache-2.0 */
/* Reading a machine and its kernel times, by the tables of keys.c (README.md documents the keys).
 */
#include <math.h>
#include <string.h>

#include "platforms/internal.h"

/* Reads work from "flops", "bytes" or "work" (either). All points of a curve use the same key. */
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

/* Checks that the machine has a curve's architecture: a misspelt one would lose the kernel. */
static int check_arch(const struct duet__json *parent, const struct duet__platform *p,
                      const char *name)
{
    struct duet__json at = duet__json_member(parent, "arch");
    const struct duet_arch *archs = duet__is_fixed(p) ? p->fixed.archs : p->archs;
    unsigned count = duet__is_fixed(p) ? p->fixed.arch_count : p->arch_count;
    g_autoptr(GString) list = g_string_new(NULL);
    for (unsigned i = 0; i < count; i++) {
        if (strcmp(archs[i].name, name) == 0)
            return DUET_OK;
        g_string_append_printf(list, "%s%s", i > 0 ? ", " : "", archs[i].name);
    }
    return duet__json_fail(&at, DUET_EPARSE, "%s has no architecture named %s (it has: %.200s)",
                           p->name, name, list->str);
}

/* True if the origin of times says that nobody measured them. */
static bool is_estimated(const char *origin)
{
    return origin != NULL && strstr(origin, "estimated") != NULL;
}

/* Reads the points of a curve. The key "conditions" of older files is ignored. */
static int read_points(const struct duet__json *at, struct duet__platform *p,
                       struct duet__curve *curve)
{
    struct duet__json list = duet__json_member(at, "points");
    struct duet_message why = {""};
    struct duet__point *points;
    const char *unit = NULL;
    unsigned count = 0;
    int error = duet__json_array(&list, 1, DUET__MAX_POINTS, &count);
    points = g_new0(struct duet__point, count);
    for (unsigned i = 0; i < count && !error; i++) {
        struct duet__json element = duet__json_element(&list, i);
        error = duet__part_read(&element, duet__point_fields, &points[i], p);
        if (!error)
            error = read_work(&element, &unit, &points[i].work);
        points[i].origin = g_intern_string(points[i].origin);
        if (is_estimated(points[i].origin ? points[i].origin
                         : curve->origin  ? curve->origin
                                          : p->origin))
            points[i].basis = DUET__ESTIMATED;
    }
    curve->points = points;
    curve->count = count;
    if (!error) {
        error = duet__calibration_add(&p->calibration, curve, &why);
        if (error)
            error = duet__json_fail(at, error == DUET_EINVAL ? DUET_EPARSE : error, "%s", why.text);
    }
    g_free(points);
    return error;
}

/* Adds curves, whose architectures must be among those of the machine, which has been read. */
static int read_curves(const struct duet__json *at, struct duet__platform *p)
{
    unsigned count = 0;
    int error = duet__json_array(at, 0, DUET__MAX_CURVES, &count);
    for (unsigned i = 0; i < count && !error; i++) {
        struct duet__json element = duet__json_element(at, i);
        struct duet__json origin = duet__json_member(&element, "origin");
        struct duet__curve curve = {.kernel = ""};
        error = duet__part_read(&element, duet__curve_fields, &curve, p);
        if (!error)
            error = check_arch(&element, p, curve.arch);
        if (!error && p->origin == NULL)
            error = duet__json_string(&origin, &curve.origin);
        curve.origin = g_intern_string(curve.origin);
        if (!error)
            error = read_points(&element, p, &curve);
    }
    return error;
}

/* Reads kernel times here, or the name (not a path) of a file beside this one that has them. */
static int read_times(const struct duet__json *root, struct duet__platform *p, char **calibration)
{
    struct duet__json name = duet__json_member(root, "calibration");
    struct duet__json curves = duet__json_member(root, "curves");
    char file[NAME_MAX + 1];
    int error;
    if (duet__json_present(&curves) && duet__json_present(&name))
        return duet__json_fail(&name, DUET_EPARSE, "the kernel times are in this file, too");
    if (duet__json_present(&curves))
        return read_curves(&curves, p);
    if (!duet__json_present(&name))
        return duet__json_fail(&curves, DUET_EPARSE,
                               "missing, expected kernel times here, or under calibration the name "
                               "of a file that has them");
    error = duet__json_name(&name, file, sizeof(file));
    if (!error)
        *calibration = g_strdup(file);
    return error;
}

/* Completes switches and GPUs from their kind of link; checks that each GPU has a switch. */
static int complete_switches(const struct duet__json *root, struct duet__platform *p)
{
    struct duet__json gpus = duet__json_member(root, "gpus");
    for (unsigned i = 0; i < p->switch_count; i++) {
        struct duet__platform_switch *sw = &p->switches[i];
        const struct duet__platform_link *kind = &p->kinds[sw->kind];
        if (sw->to_device_Bps == 0)
            sw->to_device_Bps = kind->to_device.bandwidth_Bps;
        if (sw->to_host_Bps == 0)
            sw->to_host_Bps = kind->to_host.bandwidth_Bps;
    }
    for (unsigned i = 0; i < p->gpu_count; i++) {
        struct duet__json gpu = duet__json_element(&gpus, i);
        struct duet__platform_gpu *g = &p->gpus[i];
        const struct duet__platform_link *kind;
        if (g->position == DUET__NOWHERE)
            return duet__json_fail(&gpu, DUET_EPARSE, "GPU %u is behind no switch", i);
        kind = &p->kinds[p->switches[g->position].kind];
        if (isnan(g->to_device.latency_s))
            g->to_device.latency_s = kind->to_device.latency_s;
        if (isnan(g->to_host.latency_s))
            g->to_host.latency_s = kind->to_host.latency_s;
    }
    return DUET_OK;
}

/* Opens a document and reads its schema and the members of a table. */
static int open_document(struct duet__platform *p, const char *text, size_t length,
                         const char *path, const struct duet__field *fields,
                         struct duet_message *message, struct duet__json *root)
{
    struct duet__json at;
    unsigned schema = 0;
    int error = duet__json_parse(text, length, path, message, root);
    if (error)
        return error;
    at = duet__json_member(root, "schema");
    error = duet__json_keys(root, NULL);
    if (!error) /* schema first: another one has other keys */
        error = duet__json_unsigned(&at, 1, DUET__MAX_SCHEMA, &schema);
    g_clear_pointer(&p->origin, g_free);
    if (!error)
        error = duet__fields_read(root, fields, p);
    return error;
}

int duet__read_description(struct duet__platform *p, const char *text, size_t length,
                           const char *path, char **calibration, struct duet_message *message)
{
    struct duet__json root;
    int error = open_document(p, text, length, path, duet__platform_fields, message, &root);
    if (!error)
        error = complete_switches(&root, p);
    if (!error)
        error = read_times(&root, p, calibration);
    duet__json_close(&root);
    return error;
}

int duet__read_calibration(struct duet__platform *p, const char *text, size_t length,
                           const char *path, struct duet_message *message)
{
    struct duet__json root, curves;
    int error = open_document(p, text, length, path, duet__times_fields, message, &root);
    curves = duet__json_member(&root, "curves");
    if (!error)
        error = read_curves(&curves, p);
    duet__json_close(&root);
    return error;
}
