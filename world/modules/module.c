/* SPDX-License-Identifier: Apache-2.0 */
/* Finds modules beside the running code, and opens them. */
#include "world/modules/module.h"

#include <dlfcn.h>
#include <string.h>

#include <glib.h>

#include "platforms/directories.h"

/* Opens the first file of this name in the folders. NULL: there is none, or the message says more.
 */
static void *open_first(const GPtrArray *folders, const char *file, struct duet_message *message)
{
    for (guint i = 0; i < folders->len; i++) {
        g_autofree char *path = g_build_filename(folders->pdata[i], file, NULL);
        if (!g_file_test(path, G_FILE_TEST_EXISTS))
            continue;
        void *object = dlopen(path, RTLD_NOW | RTLD_LOCAL);
        if (!object)
            duet_fail(message, DUET_EABSENT, "cannot open a part of duet: %s", dlerror());
        return object;
    }
    duet_fail(message, DUET_EABSENT,
              "a part of duet, %s, is neither beside the program nor in %s: install duet again",
              file, DUET_MODULE_DIR);
    return NULL;
}

const void *duet__module_open(const char *name, struct duet_message *message)
{
    /* from the library, from the program, and from either in a build */
    static const char *const ways[] = {"duet", DUET_MODULE_WAY, "modules", NULL};
    g_autoptr(GPtrArray) folders = g_ptr_array_new_with_free_func(g_free);
    g_autofree char *file = g_strdup_printf("libduet-%s.so", name);
    duet__beside_code(folders, ways);
    g_ptr_array_add(folders, g_strdup(DUET_MODULE_DIR));
    void *object = open_first(folders, file, message);
    if (!object)
        return NULL;
    const struct duet__module *module = dlsym(object, "duet__module");
    if (module && !strcmp(module->build, DUET_MODULE_BUILD))
        return module;
    duet_fail(message, DUET_EABSENT, "%s is of another duet (%s, this is %s): install duet again",
              file, module ? module->build : "unknown", DUET_MODULE_BUILD);
    return NULL;
}
