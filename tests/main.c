/* SPDX-License-Identifier: Apache-2.0 */
/* Runs the functions of a test: main functions of tests call this. */
#include <string.h>

#include <glib.h>

#include "tests/main.h"

int run_tests(int argc, char **argv, const char *names, void (*const *functions)(void),
              void (*add)(const char *path, void (*function)(void)))
{
    g_auto(GStrv) each = g_strsplit(names, ",", -1);
    g_test_init(&argc, &argv, NULL);
    for (size_t i = 0; each[i] != NULL; i++) {
        const char *name = g_strstrip(each[i]);
        g_autofree char *path = g_strconcat("/", name, NULL);
        if (g_str_has_prefix(name, "subprocess_")) {
            path[strlen("/subprocess")] = '/';
        } else if (g_str_has_prefix(name, "test_")) {
            memmove(path + 1, name + strlen("test_"), strlen(name + strlen("test_")) + 1);
        }
        (add != NULL ? add : g_test_add_func)(path, functions[i]);
    }
    return g_test_run();
}
