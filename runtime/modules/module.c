/* SPDX-License-Identifier: Apache-2.0 */
/* Finds modules beside the running code, and opens them. */
#include "runtime/modules/module.h"

#include <dlfcn.h>

#include <glib.h>

#include "platforms/platform.h"

char *duet__module_path(const char *name)
{
    /* ways from the library, from the program, and from either in a build */
    static const char *const ways[] = {"duet", DUET_MODULE_WAY, "modules", NULL};
    g_autoptr(GPtrArray) folders = g_ptr_array_new_with_free_func(g_free);
    g_autofree char *file = g_strdup_printf("libduet-%s.so", name);
    duet__beside_code(folders, ways);
    g_ptr_array_add(folders, g_strdup(DUET_MODULE_DIR));
    for (guint i = 0; i < folders->len; i++) {
        g_autofree char *path = g_build_filename(folders->pdata[i], file, NULL);
        if (g_file_test(path, G_FILE_TEST_EXISTS))
            return g_steal_pointer(&path);
    }
    return NULL;
}

/* Returns what this build lacks for a part, and what to do about it; NULL: nothing. */
static const char *lacking(const char *name)
{
    static const char *const parts[][2] = {
        {"blas",
         "BLAS, which kernels and checks of results need: build it where libopenblas-dev is"},
        {"mpi",
         "MPI, which nodes need: build it where libopenmpi-dev is, or simulate the nodes, or "
         "share a study by --shard"},
        {"simgrid", "SimGrid, which networks of files and the network engine simgrid need: install "
                    "libsimgrid-dev and build duet again"},
    };
    for (size_t i = 0; i < G_N_ELEMENTS(parts); i++)
        if (!strcmp(parts[i][0], name) && strstr(DUET_LACKING, name))
            return parts[i][1];
    return NULL;
}

const void *duet__module_open(const char *name, struct duet_message *message)
{
    g_autofree char *path = duet__module_path(name);
    const struct duet__module *module;
    void *object;
    if (lacking(name)) {
        duet_fail(message, DUET_EABSENT, "this duet was built without %s", lacking(name));
        return NULL;
    }
    if (!path) {
        duet_fail(message, DUET_EABSENT,
                  "a part of duet, libduet-%s.so, is neither beside the program nor in %s: install "
                  "duet again",
                  name, DUET_MODULE_DIR);
        return NULL;
    }
    object = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!object) {
        duet_fail(message, DUET_EABSENT, "cannot open a part of duet: %s", dlerror());
        return NULL;
    }
    module = dlsym(object, "duet__module");
    if (module && !strcmp(module->build, DUET_MODULE_BUILD))
        return module;
    duet_fail(message, DUET_EABSENT,
              "libduet-%s.so is of another duet (%s, this is %s): install duet again", name,
              module ? module->build : "unknown", DUET_MODULE_BUILD);
    return NULL;
}
