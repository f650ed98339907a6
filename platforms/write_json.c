/* SPDX-License-Identifier: Apache-2.0 */
/* Writing a measured machine and its kernel times, new or over an older pair of files. */
#include <errno.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include <glib/gstdio.h>

#include "platforms/description.h"

/* The two files. */
struct pair {
    const char *path;
    char *times_path; /* both of the calibration: freed */
    char *times_name;
};

static void free_pair(struct pair *pair)
{
    g_free(pair->times_path);
    g_free(pair->times_name);
    pair->times_path = pair->times_name = NULL;
}

static int name_files(const char *path, struct pair *pair, struct duet_message *message)
{
    size_t stem = strlen(path);

    *pair = (struct pair){.path = path};
    if (!g_str_has_suffix(path, ".json"))
        return duet_fail(message, DUET_EINVAL,
                         "%s: the name must end in .json, so that it can be read again", path);
    if (g_str_has_suffix(path, ".kernels.json"))
        return duet_fail(message, DUET_EINVAL,
                         "%s: names that end in .kernels.json are those of kernel times; choose "
                         "another, they are written beside it",
                         path);
    stem -= strlen(".json");
    pair->times_path = g_strdup_printf("%.*s.kernels.json", (int)stem, path);
    pair->times_name = g_path_get_basename(pair->times_path);
    if (stem == 0 || path[stem - 1] == '/' || !duet__good_name(pair->times_name, NAME_MAX)) {
        free_pair(pair);
        return duet_fail(message, DUET_EINVAL,
                         "%s: the file's name must have letters, digits or _-.:+ only", path);
    }
    return DUET_OK;
}

/* Is there anything of this name? A link that leads nowhere would be replaced, too. */
static bool is_there(const char *path)
{
    return g_file_test(path, G_FILE_TEST_EXISTS) || g_file_test(path, G_FILE_TEST_IS_SYMLINK);
}

/* What there is already, by what is to be done with it; *old is loaded where that is to merge. */
static int look(const struct pair *pair, enum duet_write how, struct duet_platform **old,
                struct duet_message *message)
{
    bool described = is_there(pair->path), timed = is_there(pair->times_path);

    if (how == DUET_WRITE_REPLACE || (!described && !timed))
        return DUET_OK;
    if (how == DUET_WRITE_NEW)
        return duet_fail(message, DUET_EINVAL,
                         "%s is there already: --replace writes over it, --merge keeps the kernel "
                         "times that are not measured again",
                         described ? pair->path : pair->times_path);
    if (!described)
        return duet_fail(message, DUET_EINVAL,
                         "%s is there without its machine, %s: nothing to merge with; --replace "
                         "writes over it",
                         pair->times_path, pair->path);
    return duet_platform_load(pair->path, NULL, old, message);
}

/* The draft's architectures, and those of `old` that only kernel times are of. */
static GArray *list_archs(const struct duet_draft *draft, const struct duet_platform *old,
                          const struct duet_calibration *times)
{
    GArray *archs = g_array_new(FALSE, FALSE, sizeof(struct duet_arch));

    if (draft->arch_count > 0)
        g_array_append_vals(archs, draft->archs, draft->arch_count);
    for (unsigned i = 0; old != NULL && i < old->machine.arch_count; i++) {
        const struct duet_arch *arch = &old->machine.archs[i];
        bool listed = false, needed = false;

        for (unsigned j = 0; j < draft->arch_count && !listed; j++)
            listed = strcmp(draft->archs[j].name, arch->name) == 0;
        for (size_t j = 0; j < times->count && !needed; j++)
            needed = strcmp(times->curves[j].arch, arch->name) == 0;
        if (needed && !listed)
            g_array_append_vals(archs, arch, 1);
    }
    return archs;
}

/*
 * What misses in caches cost was found for certain sizes of caches, and means nothing for others:
 * means are kept then.
 */
static void forget_misses(struct duet_platform *old, const struct duet_sharing *sharing)
{
    const struct duet_sharing *before = &old->machine.sharing;

    if (before->private_bytes == sharing->private_bytes &&
        before->shared_bytes == sharing->shared_bytes)
        return;
    for (size_t i = 0; i < old->calibration.count; i++) {
        for (size_t k = 0; k < old->calibration.curves[i].count; k++) {
            struct duet_point *point = &old->calibration.curves[i].points[k];

            point->base_s = 0;
            memset(point->near_s, 0, sizeof(point->near_s));
            memset(point->far_s, 0, sizeof(point->far_s));
        }
    }
}

/* The texts of both files, read back: what cannot be loaded is never written. */
static int format_pair(const struct duet_draft *draft, const struct duet_calibration *calibration,
                       const struct duet_platform *old, const struct pair *pair, char **text,
                       char **times, struct duet_message *message)
{
    struct duet_calibration all = {.count = 0};
    GPtrArray *origins = duet__origins_new();
    GArray *archs = NULL;
    int error = duet__merge(calibration, draft->origin != NULL ? draft->origin : "", old, &all,
                            origins, message);

    if (error == DUET_OK) {
        archs = list_archs(draft, old, &all);
        error = duet__format_description(draft, pair->times_name,
                                         (const struct duet_arch *)(void *)archs->data, archs->len,
                                         text, message);
        g_array_unref(archs);
    }
    if (error == DUET_OK) {
        *times = duet__format_calibration(&all, origins);
        error = duet__platform_check(*text, pair->path, *times, pair->times_path, message);
        error = error == DUET_EPARSE ? DUET_EINVAL : error; /* it is the draft that is wrong */
    }
    g_ptr_array_unref(origins);
    duet_calibration_fini(&all);
    return error;
}

int duet_platform_write(const struct duet_draft *draft, const struct duet_calibration *calibration,
                        const char *path, enum duet_write how, struct duet_message *message)
{
    struct duet_platform *old = NULL;
    struct pair pair;
    char *text = NULL, *times = NULL;
    int error = name_files(path, &pair, message);

    if (error != DUET_OK)
        return error;
    error = look(&pair, how, &old, message);
    if (error == DUET_OK && old != NULL)
        forget_misses(old, &draft->sharing);
    if (error == DUET_OK)
        error = format_pair(draft, calibration, old, &pair, &text, &times, message);
    if (error == DUET_OK) {
        const struct duet__file calibration_file = {pair.times_path, times};
        const struct duet__file description = {path, text};

        error = duet__replace_files(&calibration_file, &description, message);
    }
    g_free(text);
    g_free(times);
    duet_platform_free(old);
    free_pair(&pair);
    return error;
}

int duet_platform_may_write(const char *path, enum duet_write how, struct duet_message *message)
{
    struct duet_platform *old = NULL;
    struct pair pair;
    char *folder;
    int error = name_files(path, &pair, message);

    if (error != DUET_OK)
        return error;
    error = look(&pair, how, &old, message);
    folder = g_path_get_dirname(path);
    if (error == DUET_OK && !g_file_test(folder, G_FILE_TEST_IS_DIR))
        error = duet_fail(message, DUET_EIO, "%s: there is no folder %s", path, folder);
    else if (error == DUET_OK && g_access(folder, W_OK) != 0)
        error = duet_fail(message, DUET_EIO, "%s: cannot write: %s", path, g_strerror(errno));
    g_free(folder);
    duet_platform_free(old);
    free_pair(&pair);
    return error;
}
