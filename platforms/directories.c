/* SPDX-License-Identifier: Apache-2.0 */
/* Finds built-in platforms: beside the installed code, then where it was built. */
#include <dlfcn.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "platforms/internal.h"
#include "platforms/directories.h"

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
