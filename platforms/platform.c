/* SPDX-License-Identifier: Apache-2.0 */
/* Finding, loading and asking platforms. */
#include <stdlib.h>
#include <string.h>
#include <dlfcn.h>

#include "platforms/internal.h"

static bool is_path(const char *name)
{
    return strchr(name, '/') != NULL || g_str_has_suffix(name, ".json") ||
           g_str_has_suffix(name, ".xml");
}

/* Returns the path of a built-in platform's file, NULL if there is none; free with g_free. */
static char *find_built_in(const char *name)
{
    g_auto(GStrv) directories = duet__platform_directories();
    g_autofree char *file = g_strconcat(name, ".json", NULL);
    for (char **directory = directories; *directory != NULL; directory++) {
        g_autofree char *path = g_build_filename(*directory, file, NULL);
        if (g_file_test(path, G_FILE_TEST_IS_REGULAR))
            return g_steal_pointer(&path);
    }
    return NULL;
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

char **duet__platform_names(void)
{
    g_auto(GStrv) directories = duet__platform_directories();
    GPtrArray *names = g_ptr_array_new();
    for (char **at = directories; *at != NULL; at++) {
        g_autoptr(GDir) directory = g_dir_open(*at, 0, NULL);
        const char *file;
        while (directory != NULL && (file = g_dir_read_name(directory)) != NULL) {
            g_autofree char *name =
                g_strndup(file, strlen(file) - MIN(strlen(file), strlen(".json")));
            if (g_str_has_suffix(file, ".json") && !g_str_has_suffix(file, ".kernels.json") &&
                !g_ptr_array_find_with_equal_func(names, name, g_str_equal, NULL))
                g_ptr_array_add(names, g_steal_pointer(&name));
        }
    }
    g_ptr_array_sort(names, by_text);
    g_ptr_array_add(names, NULL);
    return (char **)g_ptr_array_free(names, FALSE);
}

static int not_found(const char *name, struct duet_message *message)
{
    g_auto(GStrv) names = duet__platform_names();
    g_autofree char *list = g_strjoinv(", ", names);
    return duet_fail(message, DUET_ENOTFOUND,
                     "%s%.60s (known: %.300s; a path has a '/' or ends in .json, .xml)",
                     name[0] != '\0' ? "no platform is named "
                                     : "the name of the platform is empty",
                     name, list[0] != '\0' ? list : "none");
}

/* Adds the digest of a file to that of the platform. */
static void add_digest(struct duet__platform *platform, const char *text, size_t length)
{
    g_autofree char *digest =
        g_compute_checksum_for_data(G_CHECKSUM_SHA256, (const guchar *)text, length);
    g_autofree char *all = g_strconcat(digest, platform->digest, NULL);
    platform->digest = g_intern_string(all);
}

static int read_times(struct duet__platform *platform, const char *path, const char *name,
                      struct duet_message *message)
{
    g_autofree char *directory = g_path_get_dirname(path);
    g_autofree char *file = g_build_filename(directory, name, NULL), *text = NULL;
    size_t length = 0;
    int error = duet__read_file(file, &text, &length, message);
    if (!error)
        add_digest(platform, text, length);
    return error ? error : duet__read_calibration(platform, text, length, file, message);
}

/* Builds a machine, so that a bad description is refused when it is read, not when it is used. */
static int try_machine(const struct duet__platform *platform, const char *path,
                       struct duet_message *message)
{
    enum { ENOUGH = 64 }; /* GPUs; more would only take more memory and time */
    unsigned gpus = MIN(duet__platform_gpus(platform), duet__platform_cores(platform));
    const struct duet__platform_options options = {.cpus = -1, .gpus = (int)MIN(gpus, ENOUGH)};
    struct duet_machine machine = {.node_count = 0};
    struct duet_message why = {""};
    int error = duet__platform_build(platform, &options, &machine, &why);
    duet_machine_fini(&machine);
    if (error)
        duet_fail(message, error, "%s: %s", path, why.text);
    return error;
}

int duet__platform_parse(const char *text, size_t length, const char *path, bool xml,
                         struct duet__platform **out, struct duet_message *message)
{
    struct duet__platform *platform = g_new0(struct duet__platform, 1);
    g_autofree char *times = NULL;
    int error;
    if (xml)
        error = duet__read_xml(platform, text, length, path, &times, message);
    else
        error = duet__read_description(platform, text, length, path, &times, message);
    if (!error && times != NULL)
        error = read_times(platform, path, times, message);
    if (!error && !xml)
        error = try_machine(platform, path, message);
    if (error)
        g_clear_pointer(&platform, duet__platform_free);
    *out = platform;
    return error;
}

int duet__platform_load(const char *name, struct duet__platform **out, struct duet_message *message)
{
    g_autofree char *path = is_path(name) ? g_strdup(name) : find_built_in(name);
    g_autofree char *text = NULL;
    size_t length = 0;
    int error;
    *out = NULL;
    if (path == NULL)
        return not_found(name, message);
    error = duet__read_file(path, &text, &length, message);
    if (!error)
        error =
            duet__platform_parse(text, length, path, g_str_has_suffix(path, ".xml"), out, message);
    if (!error && is_path(name)) {
        g_autofree char *file = g_canonicalize_filename(path, NULL);
        (*out)->file = g_intern_string(file);
        add_digest(*out, text, length);
    }
    return error;
}

void duet__platform_fini(struct duet__platform *p)
{
    g_free(p->description);
    g_free(p->origin);
    g_free(p->archs);
    g_free(p->sockets);
    g_free(p->kinds);
    g_free(p->switches);
    g_free(p->gpus);
    g_free(p->order);
    duet__calibration_fini(&p->calibration);
    duet_machine_fini(&p->fixed);
    memset(p, 0, sizeof(*p));
}

void duet__platform_free(struct duet__platform *platform)
{
    if (platform != NULL)
        duet__platform_fini(platform);
    g_free(platform);
}

unsigned duet__platform_cores(const struct duet__platform *platform)
{
    unsigned cores = duet__is_fixed(platform) ? platform->fixed.worker_count : 0;
    for (unsigned i = 0; i < platform->socket_count; i++)
        cores += platform->sockets[i].cores;
    return cores;
}

unsigned duet__platform_gpus(const struct duet__platform *platform)
{
    return duet__is_fixed(platform) ? platform->fixed.node_count - 1 : platform->gpu_count;
}

char *duet__platform_origin(const struct duet__platform *p, const char *kernel, const char *arch)
{
    const struct duet__curve *curve = duet__calibration_find(&p->calibration, kernel, arch);
    const char *common = curve != NULL && curve->origin != NULL ? curve->origin : p->origin;
    GString *text = g_string_new(curve != NULL ? common : NULL);
    for (size_t i = 0; curve != NULL && i < curve->count; i++) {
        const struct duet__point *point = &curve->points[i];
        if (point->origin != NULL && g_strcmp0(point->origin, common) != 0)
            g_string_append_printf(text, "; at work %g: %s", point->work, point->origin);
    }
    return g_string_free(text, FALSE);
}

int duet__platform_build(const struct duet__platform *platform,
                         const struct duet__platform_options *options, struct duet_machine *machine,
                         struct duet_message *message)
{
    int error = duet__check_options(platform, options, message);
    memset(machine, 0, sizeof(*machine));
    if (error)
        return error;
    return duet__is_fixed(platform) ? duet__subset(platform, options, machine, message)
                                    : duet__derive(platform, options, machine, message);
}

/* ------------------------------------------------------------------------------------------- */
/* Finds built-in platforms: beside the installed code, then where it was built. */

#ifndef DUET_PLATFORM_DIRS
#error "define DUET_PLATFORM_DIRS: the directories of built-in platforms, separated by colons"
#endif

static void add_from(GPtrArray *list, const char *object, const char *const *ways)
{
    g_autofree char *directory = g_path_get_dirname(object);
    for (; *ways != NULL; ways++) {
        g_autofree char *path = g_build_filename(directory, *ways, NULL);
        char resolved[PATH_MAX];
        if (realpath(path, resolved) != NULL && g_file_test(resolved, G_FILE_TEST_IS_DIR))
            g_ptr_array_add(list, g_strdup(resolved));
    }
}

/* The object that holds this code is libduet.so or a program. The loader knows a program by the
 * name of its call, which has no directory if the shell searched PATH. */
void duet__beside_code(GPtrArray *list, const char *const *ways)
{
    static const char inside = 0;
    char object[PATH_MAX];
    Dl_info info;

    if (dladdr(&inside, &info) != 0 && info.dli_fname != NULL &&
        strchr(info.dli_fname, '/') != NULL && realpath(info.dli_fname, object) != NULL)
        add_from(list, object, ways);
    if (realpath("/proc/self/exe", object) != NULL)
        add_from(list, object, ways);
}

char **duet__platform_directories(void)
{
    /* Ways from PREFIX/bin and PREFIX/lib, and from PREFIX/lib/x86_64-linux-gnu. */
    static const char *const ways[] = {"../share/duet/platforms", "../../share/duet/platforms",
                                       NULL};
    GPtrArray *list = g_ptr_array_new();
    g_auto(GStrv) built_in = g_strsplit(DUET_PLATFORM_DIRS, ":", -1);
    duet__beside_code(list, ways);
    for (size_t i = 0; built_in[i] != NULL; i++)
        if (built_in[i][0] != '\0')
            g_ptr_array_add(list, g_strdup(built_in[i]));
    g_ptr_array_add(list, NULL);
    return (char **)g_ptr_array_free(list, FALSE);
}
