/* SPDX-License-Identifier: Apache-2.0 */
/* Writes a measured machine, as a new file or over an older one whose kernel times may stay. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <glib/gstdio.h>

#include "base/files.h"
#include "platforms/internal.h"

/* Two works this close are the same: a count of flops that was rounded in another place. */
static const double SAME_WORK = 1e-9;

static int check_path(const char *path, struct duet_message *message)
{
    g_autofree char *name = g_path_get_basename(path);
    if (!g_str_has_suffix(path, ".json"))
        return duet_fail(message, DUET_EINVAL,
                         "%s: the name must end in .json, so that it can be read again", path);
    if (g_str_has_suffix(path, ".kernels.json"))
        return duet_fail(message, DUET_EINVAL,
                         "%s: names that end in .kernels.json are those of kernel times; choose "
                         "another",
                         path);
    if (name[0] == '.' || !duet__good_name(name, NAME_MAX))
        return duet_fail(message, DUET_EINVAL,
                         "%s: the file's name must have letters, digits or _-.:+ only", path);
    return DUET_OK;
}

/* Checks the path and the existing file, by what is to be done with it; loads *old for a merge. */
static int look_at_file(const char *path, enum duet__write how, struct duet__platform **old,
                        struct duet_message *message)
{
    int error = check_path(path, message);
    /* a link that leads nowhere would also be replaced */
    bool there = g_file_test(path, G_FILE_TEST_EXISTS) || g_file_test(path, G_FILE_TEST_IS_SYMLINK);
    if (error || how == DUET_WRITE_REPLACE || !there)
        return error;
    if (how == DUET_WRITE_NEW)
        return duet_fail(message, DUET_EINVAL,
                         "%s is there already: --replace writes over it, --merge keeps the kernel "
                         "times that are not measured again",
                         path);
    return duet__platform_load(path, old, message);
}

/* Forgets the cost of cache misses, which was found for certain sizes of caches, if these have
 * changed; means stay. */
static void forget_misses(struct duet__platform *old, const struct duet_sharing *sharing)
{
    if (old->sharing.shared_bytes == sharing->shared_bytes)
        return;
    for (size_t i = 0; i < old->calibration.count; i++) {
        for (size_t k = 0; k < old->calibration.curves[i].count; k++) {
            struct duet__point *point = &old->calibration.curves[i].points[k];
            point->base_s = point->memory_s = point->noise = 0;
        }
    }
}

/* Returns the curve of the same kernel, architecture and context; NULL: there is none. */
static const struct duet__curve *counterpart(const struct duet__calibration *calibration,
                                             const struct duet__curve *curve)
{
    for (size_t i = 0; i < calibration->count; i++) {
        const struct duet__curve *other = &calibration->curves[i];
        if (strcmp(other->kernel, curve->kernel) == 0 && strcmp(other->arch, curve->arch) == 0 &&
            strcmp(other->context, curve->context) == 0)
            return other;
    }
    return NULL;
}

/* Returns the point of this work; NULL: there is none. */
static struct duet__point *find_work(const struct duet__curve *curve, double work)
{
    for (size_t i = 0; i < curve->count; i++)
        if (fabs(curve->points[i].work - work) <= SAME_WORK * work)
            return &curve->points[i];
    return NULL;
}

/* Adds to `all` the measured curve with the points that only `old` has; either curve may be NULL.
 * Old points keep their origin, else get `origin`. */
static int curves_join(const struct duet__curve *measured, const struct duet__curve *old,
                       const char *origin, struct duet__calibration *all,
                       struct duet_message *message)
{
    struct duet__curve curve = measured != NULL ? *measured : *old;
    g_autoptr(GArray) points = g_array_new(FALSE, FALSE, sizeof(struct duet__point));
    if (old != NULL && old->origin != NULL)
        origin = old->origin;
    if (measured != NULL)
        g_array_append_vals(points, measured->points, (guint)measured->count);
    else
        curve.origin = origin;
    for (size_t i = 0; old != NULL && i < old->count; i++) {
        struct duet__point point = old->points[i];
        if (measured != NULL && find_work(measured, point.work) != NULL)
            continue;
        if (measured != NULL && point.origin == NULL)
            point.origin = origin;
        g_array_append_val(points, point);
    }
    curve.points = (struct duet__point *)(void *)points->data;
    curve.count = points->len;
    return duet__calibration_add(all, &curve, message);
}

/* Keeps the architectures of kept kernel times, as names. */
static void keep_archs(struct duet__platform *p, const struct duet__platform *old)
{
    for (unsigned i = 0; i < old->arch_count; i++) {
        bool listed = false, needed = false;
        for (unsigned k = 0; k < p->arch_count && !listed; k++)
            listed = strcmp(p->archs[k].name, old->archs[i].name) == 0;
        for (size_t k = 0; k < p->calibration.count && !needed; k++)
            needed = strcmp(p->calibration.curves[k].arch, old->archs[i].name) == 0;
        if (!needed || listed)
            continue;
        p->archs = g_renew(struct duet_arch, p->archs, p->arch_count + 1);
        p->archs[p->arch_count++] = old->archs[i];
    }
}

/* Adds to `p` the kernel times that only `old` has. */
static int platform_merge(struct duet__platform *p, struct duet__platform *old,
                          struct duet_message *message)
{
    struct duet__calibration all = {.count = 0};
    const struct duet__calibration *measured = &p->calibration;
    const char *origin = g_intern_string(old->origin);
    int error = DUET_OK;
    forget_misses(old, &p->sharing);
    for (size_t i = 0; i < measured->count && !error; i++)
        error =
            curves_join(&measured->curves[i], counterpart(&old->calibration, &measured->curves[i]),
                        origin, &all, message);
    for (size_t i = 0; i < old->calibration.count && !error; i++)
        if (counterpart(measured, &old->calibration.curves[i]) == NULL)
            error = curves_join(NULL, &old->calibration.curves[i], origin, &all, message);
    if (error) {
        duet__calibration_fini(&all);
        return error;
    }
    all.states = measured->states.runs ? measured->states : old->calibration.states;
    duet__calibration_fini(&p->calibration);
    p->calibration = all;
    keep_archs(p, old);
    return DUET_OK;
}

/* ------------------------------------------------------------------------------------------- */
/* Histories                                                                                    */

/* A value's mean and deviation over a number of executions. */
struct sample {
    double count, mean, deviation;
};

static struct sample pool(struct sample a, struct sample b)
{
    double count = a.count + b.count, apart = b.mean - a.mean;
    double squares = (a.count - 1) * a.deviation * a.deviation +
                     (b.count - 1) * b.deviation * b.deviation +
                     apart * apart * a.count * b.count / count;
    return (struct sample){count, a.mean + apart * b.count / count, sqrt(squares / (count - 1))};
}

/* Returns the weighted mean of both, or the one that is known. */
static double weighted_mean(double a, double a_count, double b, double b_count)
{
    return a > 0 && b > 0 ? (a * a_count + b * b_count) / (a_count + b_count) : fmax(a, b);
}

static double expected(const struct duet__point *point)
{
    return point->base_s > 0 ? point->base_s + point->memory_s : point->mean_s;
}

/* Returns measured times relative to what is now expected. */
static struct sample relative_sample(const struct duet__point *point, double expected_s)
{
    double noise = point->noise > 0 ? point->noise : point->deviation_s / point->mean_s;
    double ratio = expected(point) / expected_s;
    return (struct sample){(double)point->samples, ratio, noise * ratio};
}

static void pool_points(struct duet__point *into, const struct duet__point *more)
{
    enum { NOISE_MOST = 10 };
    const struct duet__point old = *into;
    double count = (double)MAX(old.samples, 1), new_count = (double)MAX(more->samples, 1);
    struct sample times = pool((struct sample){count, old.mean_s, old.deviation_s},
                               (struct sample){new_count, more->mean_s, more->deviation_s});
    bool both = old.base_s > 0 && more->base_s > 0;
    into->mean_s = times.mean;
    into->deviation_s = times.deviation;
    into->median_s = 0;
    into->samples += more->samples;
    into->rejected += more->rejected;
    into->base_s = weighted_mean(old.base_s, count, more->base_s, new_count);
    into->memory_s = both
                         ? (old.memory_s * count + more->memory_s * new_count) / (count + new_count)
                         : old.memory_s + more->memory_s;
    into->busy_ratio = weighted_mean(old.busy_ratio, count, more->busy_ratio, new_count);
    /* one run tells nothing of other problems */
    into->uncertainty = old.uncertainty > 0 ? old.uncertainty : more->uncertainty;
    into->noise =
        fmin(pool(relative_sample(&old, expected(into)), relative_sample(more, expected(into)))
                 .deviation,
             NOISE_MOST);
}

/* Adds to `all` the curve of a run and the old one (may be NULL), as one. */
static int pool_curves(const struct duet__curve *run, const struct duet__curve *old,
                       const char *common, const char *origin, struct duet__calibration *all,
                       struct duet_message *message)
{
    struct duet__curve curve = old != NULL ? *old : *run;
    g_autoptr(GArray) points = g_array_new(FALSE, FALSE, sizeof(struct duet__point));
    if (old == NULL && strstr(common, origin) == NULL)
        curve.origin = origin;
    if (old != NULL)
        common = old->origin != NULL ? old->origin : common;
    g_array_append_vals(points, curve.points, old != NULL ? (guint)old->count : 0);
    for (size_t i = 0; i < run->count; i++) {
        curve.points = (struct duet__point *)(void *)points->data;
        curve.count = points->len;
        struct duet__point *same = find_work(&curve, run->points[i].work), added = run->points[i];
        const char *from = same != NULL && same->origin != NULL ? same->origin : common;
        g_autofree char *too = g_strconcat(from, ", and ", origin, NULL);
        bool said = strstr(from, origin) != NULL;
        if (same != NULL)
            pool_points(same, &added);
        if (same != NULL && !said)
            same->origin = g_intern_string(too);
        added.origin = old != NULL && !said ? origin : NULL;
        if (same == NULL)
            g_array_append_val(points, added);
    }
    curve.points = (struct duet__point *)(void *)points->data;
    curve.count = points->len;
    return duet__calibration_add(all, &curve, message);
}

int duet__platform_pool(struct duet__platform *platform, const struct duet__calibration *run,
                        const char *origin, struct duet_message *message)
{
    const struct duet__calibration *old = &platform->calibration;
    const char *common = platform->origin != NULL ? platform->origin : "";
    struct duet__calibration all = {.count = 0};
    int error = DUET_OK;
    for (size_t i = 0; i < old->count && !error; i++) {
        const struct duet__curve *more = counterpart(run, &old->curves[i]);
        error = more == NULL ? duet__calibration_add(&all, &old->curves[i], message)
                             : pool_curves(more, &old->curves[i], common, origin, &all, message);
    }
    for (size_t i = 0; i < run->count && !error; i++)
        if (counterpart(old, &run->curves[i]) == NULL)
            error = pool_curves(&run->curves[i], NULL, common, origin, &all, message);
    if (!error) {
        all.states = old->states;
        duet__calibration_fini(&platform->calibration);
        platform->calibration = all;
    } else {
        duet__calibration_fini(&all);
    }
    return error;
}

/* ------------------------------------------------------------------------------------------- */

/* Returns the text of the file, which has been read back and built: what fails is never written. */
static int format_checked(const struct duet__platform *p, const char *path, char **text,
                          struct duet_message *message)
{
    static const struct duet__platform_options whole = {.cpus = -1, .gpus = -1};
    struct duet__platform *again = NULL;
    struct duet_machine machine = {.node_count = 0};
    struct duet_message why = {""};
    int error;
    *text = duet__platform_text(p);
    error = duet__platform_parse(*text, strlen(*text), path, false, &again, message);
    if (!error) {
        error = duet__platform_build(again, &whole, &machine, &why);
        if (error)
            duet_fail(message, error, "%s: %s", path, why.text);
    }
    duet_machine_fini(&machine);
    duet__platform_free(again);
    return error == DUET_EPARSE ? DUET_EINVAL : error; /* the machine is wrong, not the text */
}

int duet__platform_write(struct duet__platform *platform, const char *path, enum duet__write how,
                         struct duet_message *message)
{
    struct duet__platform *old = NULL;
    char *text = NULL;
    int error = look_at_file(path, how, &old, message);
    if (!error && old != NULL)
        error = platform_merge(platform, old, message);
    if (!error)
        error = format_checked(platform, path, &text, message);
    if (!error)
        error = duet__write_file(path, text, message);
    free(text);
    duet__platform_free(old);
    return error;
}

int duet__platform_may_write(const char *path, enum duet__write how, struct duet_message *message)
{
    struct duet__platform *old = NULL;
    g_autofree char *folder = g_path_get_dirname(path);
    int error = look_at_file(path, how, &old, message);
    if (!error && !g_file_test(folder, G_FILE_TEST_IS_DIR))
        error = duet_fail(message, DUET_EIO, "%s: there is no folder %s", path, folder);
    else if (!error && g_access(folder, W_OK) != 0)
        error = duet_fail(message, DUET_EIO, "%s: cannot write: %s", path, g_strerror(errno));
    duet__platform_free(old);
    return error;
}

int duet__read_file(const char *path, char **text, size_t *length, struct duet_message *message)
{
    return duet__read_all(path, DUET__MAX_FILE_MIB, text, length, message);
}

static void put_text(FILE *stream, const void *text)
{
    fputs(text, stream);
}

int duet__write_file(const char *path, const char *text, struct duet_message *message)
{
    if (strlen(text) > (size_t)DUET__MAX_FILE_MIB << 20)
        return duet_fail(message, DUET_EIO,
                         "%s: would be larger than %d MiB, the most that can be read back", path,
                         DUET__MAX_FILE_MIB);
    return duet__file_write(path, put_text, text, message);
}

/* ------------------------------------------------------------------------------------------- */
/* Writes machines and kernel times as text, by the tables of keys.c. */

/* Returns an origin, or NULL if it is that of the curve or of all the file. */
static const char *own_origin(const char *own, const char *common)
{
    return g_strcmp0(own, common) != 0 ? own : NULL;
}

static void write_curve(struct duet__json_writer *w, const struct duet__platform *p,
                        struct duet__curve curve)
{
    const char *origin = curve.origin != NULL ? curve.origin : p->origin != NULL ? p->origin : "";
    curve.origin = own_origin(origin, p->origin);
    duet__json_begin(w, NULL, '{');
    duet__fields_write(w, duet__curve_fields, &curve, p);
    duet__json_begin(w, "points", '[');
    for (size_t i = 0; i < curve.count; i++) {
        struct duet__point point = curve.points[i];
        point.samples = MAX(point.samples, 1); /* a point without samples was given, not measured */
        point.origin = own_origin(point.origin, origin);
        duet__json_print(w, "\n    {work: %g", point.work);
        duet__fields_write(w, duet__point_fields, &point, p);
        duet__json_end(w, '}');
    }
    duet__json_print(w, "]}");
}

/* Writes the members of a table, then the kernel times. */
static char *format_json(const struct duet__platform *p, const struct duet__field *fields)
{
    char *text = NULL;
    size_t length = 0;
    struct duet__json_writer w = {.stream = open_memstream(&text, &length), .indented = true};
    duet__json_print(&w, "{schema: %u", (unsigned)DUET__MAX_SCHEMA);
    duet__fields_write(&w, fields, p, p);
    duet__json_begin(&w, "curves", '[');
    for (size_t i = 0; i < p->calibration.count; i++)
        write_curve(&w, p, p->calibration.curves[i]);
    duet__json_print(&w, "]}");
    fclose(w.stream);
    return text;
}

/* Leaves out figures that switches and GPUs share with their kind of link, and limits without
 * effect. */
static void leave_out_defaults(struct duet__platform *p)
{
    for (unsigned i = 0; i < p->gpu_count; i++) {
        struct duet__platform_gpu *gpu = &p->gpus[i];
        const struct duet__platform_switch *sw;
        const struct duet__platform_link *kind;
        if (gpu->position >= p->switch_count || p->switches[gpu->position].kind >= p->kind_count)
            continue; /* the reader refuses this text */
        sw = &p->switches[gpu->position];
        kind = &p->kinds[sw->kind];
        if (gpu->to_device.latency_s == kind->to_device.latency_s)
            gpu->to_device.latency_s = NAN;
        if (gpu->to_host.latency_s == kind->to_host.latency_s)
            gpu->to_host.latency_s = NAN;
        if (gpu->to_device.bandwidth_Bps >= sw->to_device_Bps)
            gpu->to_device.bandwidth_Bps = 0;
        if (gpu->to_host.bandwidth_Bps >= sw->to_host_Bps)
            gpu->to_host.bandwidth_Bps = 0;
    }
    for (unsigned i = 0; i < p->switch_count; i++) {
        struct duet__platform_switch *sw = &p->switches[i];
        if (sw->kind >= p->kind_count)
            continue;
        if (sw->to_device_Bps == p->kinds[sw->kind].to_device.bandwidth_Bps)
            sw->to_device_Bps = 0;
        if (sw->to_host_Bps == p->kinds[sw->kind].to_host.bandwidth_Bps)
            sw->to_host_Bps = 0;
    }
}

char *duet__platform_text(const struct duet__platform *platform)
{
    struct duet__platform p = *platform;
    char *text;
    if (duet__is_fixed(platform))
        return NULL;
    p.switches = g_memdup2(p.switches, p.switch_count * sizeof(*p.switches));
    p.gpus = g_memdup2(p.gpus, p.gpu_count * sizeof(*p.gpus));
    leave_out_defaults(&p);
    text = format_json(&p, duet__platform_fields);
    g_free(p.switches);
    g_free(p.gpus);
    return text;
}

char *duet__format_times(const struct duet__platform *from)
{
    static char origin[] = "copied from the platform it was made from";
    const struct duet__platform p = {.origin = from->origin ? from->origin : origin,
                                     .calibration = from->calibration};
    return format_json(&p, duet__times_fields);
}
